// SPDX-License-Identifier: Apache-2.0
// The memory table: allocation and everything that is not a copy (transfer.cpp) or sharing
// (sharing.cpp).
//
// In strict mode an allocation is mapped twice: `address` gives a mapping without access rights,
// kernels and copies use the other. Host code that reads a device address faults here, on a laptop,
// and not first on a customer's chip.
#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "topology.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kHugeFrom = 2 * kHugePage;  // Smaller blocks would waste too much of a page.
constexpr uint64_t kMaxAlignment = uint64_t{1} << 30;
constexpr int kPoison = 0xcb;

std::string mib(uint64_t bytes) {
  std::ostringstream text;
  text.precision(1);
  text << std::fixed << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return text.str();
}

uint64_t free_bytes(const chipdock_device& device) {
  const uint64_t used = device.allocated.load();
  return used < device.memory_limit ? device.memory_limit - used : 0;
}

[[noreturn]] void out_of_memory(const chipdock_device& device, uint64_t size, const char* why) {
  kit::fail(CHIPDOCK_OUT_OF_MEMORY, "alloc of ", size, " bytes (", mib(size),
            ") on cpu:", device.index, " failed, ", mib(free_bytes(device)), " of ",
            mib(device.memory_limit), " free (", why, "); free memory or raise the option memory");
}

/// Counts `size` against the limit, or throws.
void charge(chipdock_device& device, uint64_t size) {
  uint64_t used = device.allocated.load(std::memory_order_relaxed);
  do {
    if (size > device.memory_limit || used > device.memory_limit - size) {
      out_of_memory(device, size, "limit of the device");
    }
  } while (!device.allocated.compare_exchange_weak(used, used + size));
  device.allocations.fetch_add(1);
  uint64_t peak = device.peak.load();
  while (peak < used + size && !device.peak.compare_exchange_weak(peak, used + size)) {
  }
}

void allocate_heap(chipdock_memory& memory, uint64_t alignment) {
  uint64_t size = (memory.size + kAlignment - 1) / kAlignment * kAlignment;
  if (size >= kHugeFrom) {
    alignment = std::max(alignment, kHugePage);
    size = (size + kHugePage - 1) / kHugePage * kHugePage;
  }
  void* block = nullptr;
  if (posix_memalign(&block, std::max(alignment, kAlignment), size) != 0) {
    out_of_memory(memory.device, memory.size, "posix_memalign: ENOMEM");
  }
  // Advice only: a kernel without huge pages refuses it, and nothing is lost.
  if (size >= kHugeFrom) madvise(block, size, MADV_HUGEPAGE);
  memory.base = memory.handed = static_cast<char*>(block);
  memory.mapped = size;
}

void allocate_mapped(chipdock_memory& memory, bool shared, bool strict) {
  const uint64_t size = whole_pages(memory.size);
  const int fd = memfd_create("chipdock_cpu", MFD_CLOEXEC);
  if (fd < 0) out_of_memory(memory.device, memory.size, std::strerror(errno));
  memory.fd = fd;
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
    out_of_memory(memory.device, memory.size, std::strerror(errno));
  }
  map_memory(memory, size, strict);
  if (!shared) {
    close(fd);  // The mappings keep the memory; thousands of open files would hit a limit.
    memory.fd = -1;
  }
  if (strict) std::memset(memory.base, kPoison, size);
}

chipdock_status alloc(chipdock_device* device, const chipdock_alloc_desc* given,
                      chipdock_memory** out_memory, chipdock_error* error) {
  return kit::guard(error, [&] {
    chipdock_memory*& out = deref(out_memory, "out_memory");
    const auto desc = read_alloc_desc(given);
    kit::require(desc.stream == nullptr, "alloc takes no stream; use alloc_async");
    out = allocate(deref(device, "device"), desc);
  });
}

chipdock_status free_memory(chipdock_device* device, chipdock_memory* memory,
                            chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(memory, "memory");
    deref(device, "device").memories.take(memory);
  });
}

chipdock_status info(chipdock_device* device, chipdock_memory_info* out_info,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    kit::require(out_info != nullptr &&
                     out_info->struct_size >= CHIPDOCK_CPU_FIRST(chipdock_memory_info, total_bytes),
                 "out_info is NULL or too small [BASE-5]");
    kit::require(out_info->heap == 0, "heap ", out_info->heap,
                 " does not exist, there is heap 0 only");
    chipdock_memory_info value{};
    value.total_bytes = device->memory_limit;
    const uint64_t available = available_memory();
    value.free_bytes = free_bytes(*device);
    if (available > 0) value.free_bytes = std::min(value.free_bytes, available);
    kit::write_struct(out_info, value, "out_info");
  });
}

chipdock_status trim(chipdock_device* device, chipdock_error* error) {
  // The plugin caches no memory; what the C library holds back goes to the system.
  return kit::guard(error, [&] {
    deref(device, "device");
    release_free_pages();
  });
}

chipdock_status host_alloc(chipdock_device* device, uint64_t size, void** out_host,
                           chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    void*& out = deref(out_host, "out_host");
    kit::require(size > 0, "host_alloc of 0 bytes");
    void* block = nullptr;
    if (size > device->instance.machine.memory_bytes ||
        posix_memalign(&block, kAlignment, size) != 0) {
      out_of_memory(*device, size, "host memory");
    }
    out = block;
  });
}

chipdock_status host_free(chipdock_device* device, void* host, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    kit::require(host != nullptr, "host is NULL");
    std::free(host);
  });
}

chipdock_status address(chipdock_device* device, chipdock_memory* memory, void** out_address,
                        chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    deref(out_address, "out_address") = deref(memory, "memory").handed;
  });
}

/// Host and kernels share one memory: there is nothing to flush, but the range is checked.
chipdock_status flush(chipdock_device* device, chipdock_memory* memory, uint64_t offset,
                      uint64_t size, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    resolve(deref(memory, "memory"), offset, size, "flush");
  });
}

}  // namespace

uint64_t whole_pages(uint64_t size) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

void map_memory(chipdock_memory& memory, uint64_t size, bool strict) {
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
  if (base == MAP_FAILED) out_of_memory(memory.device, memory.size, std::strerror(errno));
  memory.kind = chipdock_memory::Kind::kMapped;
  memory.base = memory.handed = static_cast<char*>(base);
  memory.mapped = size;
  if (!strict) return;
  memory.handed = nullptr;
  void* handed = mmap(nullptr, size, PROT_NONE, MAP_SHARED, memory.fd, 0);
  if (handed == MAP_FAILED) out_of_memory(memory.device, memory.size, std::strerror(errno));
  memory.handed = static_cast<char*>(handed);
}

chipdock_memory* allocate(chipdock_device& device, const chipdock_alloc_desc& desc) {
  auto memory = std::make_unique<chipdock_memory>(device);
  memory->size = desc.size;
  charge(device, desc.size);
  memory->charged = desc.size;
  const bool shared = (desc.usage & CHIPDOCK_USAGE_SHARED) != 0;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (shared || device.settings.strict) {
    if (desc.alignment > page) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "shared memory and strict mode align to ", page,
                " bytes, asked was ", desc.alignment);
    }
    allocate_mapped(*memory, shared, device.settings.strict);
  } else {
    allocate_heap(*memory, desc.alignment);
  }
  return device.memories.add(std::move(memory));
}

chipdock_alloc_desc read_alloc_desc(const chipdock_alloc_desc* given) {
  const auto desc = kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_alloc_desc, correlation_id),
                                     "alloc desc");
  constexpr uint32_t kUsages = CHIPDOCK_USAGE_WEIGHTS | CHIPDOCK_USAGE_WORKSPACE |
                               CHIPDOCK_USAGE_TRANSFER | CHIPDOCK_USAGE_SHARED;
  check_flags(desc.flags, 0, "alloc desc");
  check_flags(desc.usage, kUsages, "usage of alloc desc");
  kit::require(desc.heap == 0, "heap ", desc.heap, " does not exist, there is heap 0 only");
  kit::require(desc.size > 0, "alloc of 0 bytes");
  kit::require((desc.alignment & (desc.alignment - 1)) == 0 && desc.alignment <= kMaxAlignment,
               "alignment ", desc.alignment, " is not a power of two up to ", kMaxAlignment);
  return desc;
}

char* resolve(const chipdock_memory& memory, uint64_t offset, uint64_t size, const char* what) {
  if (offset > memory.size || size > memory.size - offset) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, what, " uses bytes ", offset, " to ", offset, "+", size,
              " of an allocation of ", memory.size, " bytes [MEM-3]");
  }
  return memory.base + offset;
}

const chipdock_memory_api kMemoryApi = {CHIPDOCK_TABLE(MEMORY, memory),
                                        alloc,
                                        free_memory,
                                        copy,
                                        alloc_async,
                                        free_async,
                                        copy_2d,
                                        fill,
                                        info,
                                        trim,
                                        host_alloc,
                                        host_free,
                                        address,
                                        flush,
                                        flush,
                                        export_memory,
                                        import_memory};

}  // namespace chipdock::plugin::cpu

chipdock_memory::~chipdock_memory() {
  if (handed != nullptr && handed != base) munmap(handed, mapped);
  if (kind == Kind::kHeap) std::free(base);
  if (kind == Kind::kMapped && base != nullptr) munmap(base, mapped);
  if (fd >= 0) close(fd);
  if (charged > 0) {
    device.allocated.fetch_sub(charged);
    device.allocations.fetch_sub(1);
  }
}
