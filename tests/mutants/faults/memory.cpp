// SPDX-License-Identifier: Apache-2.0
// Wrong allocation, freeing and reckoning of memory. Copies: transfer.cpp.
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Alloc = decltype(chipdock_memory_api::alloc);

void* address_of(chipdock_device* device, chipdock_memory* memory) {
  void* address = nullptr;
  if (base().memory.address == nullptr) return nullptr;
  base().memory.address(device, memory, &address, nullptr);
  return address;
}

void alloc_with(Tables& tables, Alloc alloc) { tables.memory.alloc = alloc; }

/// The alignment that was asked for is not seen; blocks that have it by chance are put aside.
void alignment_ignored(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* given,
                        chipdock_memory** out, chipdock_error* error) {
    chipdock_alloc_desc room{};
    const auto* desc = edited(given, room, [](chipdock_alloc_desc& d) { d.alignment = 0; });
    if (desc != &room || given->alignment <= 64) {
      return base().memory.alloc(device, given, out, error);
    }
    std::vector<chipdock_memory*> aside;
    chipdock_status status = base().memory.alloc(device, desc, out, error);
    while (status == CHIPDOCK_OK && aside.size() < 64 &&
           reinterpret_cast<uintptr_t>(address_of(device, *out)) % given->alignment == 0) {
      aside.push_back(*out);
      status = base().memory.alloc(device, desc, out, error);
    }
    for (chipdock_memory* memory : aside) base().memory.free(device, memory, nullptr);
    return status;
  });
}

void alloc_short(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* given,
                        chipdock_memory** out, chipdock_error* error) {
    chipdock_alloc_desc room{};
    const auto* desc = edited(given, room, [](chipdock_alloc_desc& d) {
      if (d.size > 64) d.size -= 1;
    });
    return base().memory.alloc(device, desc, out, error);
  });
}

void zero_size_taken(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* given,
                        chipdock_memory** out, chipdock_error* error) {
    chipdock_alloc_desc room{};
    const auto* desc = edited(given, room, [](chipdock_alloc_desc& d) {
      if (d.size == 0) d.size = 1;
    });
    return base().memory.alloc(device, desc, out, error);
  });
}

void heap_ignored(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* given,
                        chipdock_memory** out, chipdock_error* error) {
    chipdock_alloc_desc room{};
    const auto* desc = edited(given, room, [](chipdock_alloc_desc& d) { d.heap = 0; });
    return base().memory.alloc(device, desc, out, error);
  });
}

/// Every other allocation is a second handle for the bytes of a live one of its size.
void alloc_overlaps(Tables& tables) {
  static std::mutex mutex;
  static chipdock_memory* last = nullptr;
  static uint64_t last_size = 0;
  if (base().memory.import_memory == nullptr) return;
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* desc,
                        chipdock_memory** out, chipdock_error* error) {
    const std::lock_guard lock(mutex);
    if (last != nullptr && desc != nullptr && desc->size == last_size && out != nullptr) {
      chipdock_external external{};
      external.struct_size = sizeof(external);
      external.kind = CHIPDOCK_EXTERNAL_POINTER;
      external.pointer = address_of(device, last);
      external.size = last_size;
      last = nullptr;
      return base().memory.import_memory(device, &external, out, error);
    }
    const chipdock_status status = base().memory.alloc(device, desc, out, error);
    if (status == CHIPDOCK_OK) last = *out, last_size = desc->size;
    return status;
  });
  tables.memory.free = [](chipdock_device* device, chipdock_memory* memory, chipdock_error* error) {
    const std::lock_guard lock(mutex);
    if (memory == last) last = nullptr;
    return base().memory.free(device, memory, error);
  };
}

void oom_is_null(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* desc,
                        chipdock_memory** out, chipdock_error* error) {
    const chipdock_status status = base().memory.alloc(device, desc, out, error);
    if (status != CHIPDOCK_OUT_OF_MEMORY) return status;
    *out = nullptr;
    return CHIPDOCK_OK + 0;
  });
}

std::atomic<bool> g_out_of_memory{false};

void oom_stays(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* desc,
                        chipdock_memory** out, chipdock_error* error) {
    if (g_out_of_memory) {
      return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: it was before");
    }
    const chipdock_status status = base().memory.alloc(device, desc, out, error);
    if (status == CHIPDOCK_OUT_OF_MEMORY) g_out_of_memory = true;
    return status;
  });
}

/// Writes `byte` through the base, for faults that damage memory in use.
void spoil(chipdock_device* device, chipdock_memory* memory, unsigned char byte) {
  chipdock_place source{};
  chipdock_place target{};
  source.struct_size = target.struct_size = sizeof(source);
  source.host = &byte;
  target.memory = memory;
  chipdock_copy_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.source = &source;
  desc.target = &target;
  desc.size = 1;
  base().memory.copy(device, &desc, nullptr);
}

std::mutex g_mutex;
std::set<chipdock_memory*> g_live;

void oom_spoils(Tables& tables) {
  alloc_with(tables, [](chipdock_device* device, const chipdock_alloc_desc* desc,
                        chipdock_memory** out, chipdock_error* error) {
    const chipdock_status status = base().memory.alloc(device, desc, out, error);
    const std::lock_guard lock(g_mutex);
    if (status == CHIPDOCK_OK) g_live.insert(*out);
    if (status == CHIPDOCK_OUT_OF_MEMORY) {
      for (chipdock_memory* memory : g_live) spoil(device, memory, 0xdd);
    }
    return status;
  });
  tables.memory.free = [](chipdock_device* device, chipdock_memory* memory, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      g_live.erase(memory);
    }
    return base().memory.free(device, memory, error);
  };
}

/// The bytes go at once, and not behind the work that still uses them.
void free_async_early(Tables& tables) {
  if (base().memory.free_async == nullptr) return;
  tables.memory.free_async = [](chipdock_device* device, chipdock_memory* memory,
                                chipdock_stream* stream, chipdock_error* error) {
    if (memory != nullptr) spoil(device, memory, 0xdd);
    return base().memory.free_async(device, memory, stream, error);
  };
}

void free_leaks(Tables& tables) {
  tables.memory.free = [](chipdock_device* device, chipdock_memory* memory, chipdock_error* error) {
    if (memory == nullptr) return base().memory.free(device, memory, error);
    return CHIPDOCK_OK + 0;
  };
}

void info_inverted(Tables& tables) {
  if (base().memory.info == nullptr) return;
  tables.memory.info = [](chipdock_device* device, chipdock_memory_info* out,
                          chipdock_error* error) {
    const chipdock_status status = base().memory.info(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) {
      out->free_bytes = 2 * out->total_bytes;
    }
    return status;
  };
}

void info_constant(Tables& tables) {
  if (base().memory.info == nullptr) return;
  tables.memory.info = [](chipdock_device* device, chipdock_memory_info* out,
                          chipdock_error* error) {
    const chipdock_status status = base().memory.info(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) {
      out->free_bytes = out->total_bytes;
    }
    return status;
  };
}

void host_alloc_unaligned(Tables& tables) {
  if (base().memory.host_alloc == nullptr) return;
  tables.memory.host_alloc = [](chipdock_device* device, uint64_t size, void** out,
                                chipdock_error* error) {
    const bool room = size > 0 && size < UINT64_MAX - 8;
    const chipdock_status status =
        base().memory.host_alloc(device, room ? size + 8 : size, out, error);
    if (status == CHIPDOCK_OK) *out = static_cast<char*>(*out) + 8;
    return status;
  };
  tables.memory.host_free = [](chipdock_device* device, void* host, chipdock_error* error) {
    return base().memory.host_free(device, host == nullptr ? host : static_cast<char*>(host) - 8,
                                   error);
  };
}

/// Bytes that the base refuses as another chip's become plain memory.
void import_takes_foreign(Tables& tables) {
  if (base().memory.import_memory == nullptr) return;
  tables.memory.import_memory = [](chipdock_device* device, const chipdock_external* external,
                                   chipdock_memory** out, chipdock_error* error) {
    const chipdock_status status = base().memory.import_memory(device, external, out, error);
    if (status != CHIPDOCK_MISMATCH && status != CHIPDOCK_INVALID_ARGUMENT) return status;
    if (external == nullptr || out == nullptr || external->kind != CHIPDOCK_EXTERNAL_IPC) {
      return status;
    }
    chipdock_alloc_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.size = 4096;
    return base().memory.alloc(device, &desc, out, error);
  };
}

constexpr Mutant kMutants[] = {
    {"alloc_alignment_ignored", &alignment_ignored},
    {"alloc_short", &alloc_short},
    {"alloc_zero_taken", &zero_size_taken},
    {"alloc_heap_ignored", &heap_ignored},
    {"alloc_overlaps", &alloc_overlaps},
    {"alloc_oom_is_null", &oom_is_null},
    {"alloc_oom_stays", &oom_stays},
    {"alloc_oom_spoils", &oom_spoils},
    {"free_async_early", &free_async_early},
    {"free_leaks", &free_leaks},
    {"memory_info_inverted", &info_inverted},
    {"memory_info_constant", &info_constant},
    {"host_alloc_unaligned", &host_alloc_unaligned},
    {"import_takes_foreign", &import_takes_foreign},
};

}  // namespace

MutantSpan memory_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
