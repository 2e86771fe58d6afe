// SPDX-License-Identifier: Apache-2.0
// Wrong copies and fills.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Copy = chipdock_copy_desc;

/// A copy whose desc is changed first.
template <void (*kEdit)(Copy&)>
void copy(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* given, chipdock_error* error) {
    Copy room{};
    return base().memory.copy(device, edited(given, room, kEdit), error);
  };
}

void last_byte(Copy& desc) { desc.size -= desc.size > 0 ? 1 : 0; }
void odd_last_byte(Copy& desc) { desc.size -= desc.size > 1 && desc.size % 2 == 1 ? 1 : 0; }
void large_last_page(Copy& desc) { desc.size -= desc.size >= 1 << 20 ? 4096 : 0; }
void inline_always(Copy& desc) { desc.stream = nullptr; }

/// Both places one byte on.
void first_byte(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* given, chipdock_error* error) {
    Copy room{};
    chipdock_place places[2];
    const Copy* desc = edited(given, room, [&](Copy& d) {
      if (d.size == 0 || d.source == nullptr || d.target == nullptr) return;
      places[0] = *d.source;
      places[1] = *d.target;
      for (chipdock_place& place : places) {
        if (place.host != nullptr) place.host = static_cast<char*>(place.host) + 1;
        if (place.memory != nullptr) place.offset += 1;
      }
      d.source = &places[0];
      d.target = &places[1];
      d.size -= 1;
    });
    return base().memory.copy(device, desc, error);
  };
}

/// One byte more wherever both sides are device memory or the source is the host's to read.
void byte_too_many(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* given, chipdock_error* error) {
    Copy room{};
    const Copy* desc = edited(given, room, [](Copy& d) {
      if (d.size > 0 && d.target != nullptr && d.target->memory != nullptr) d.size += 1;
    });
    const chipdock_status status = base().memory.copy(device, desc, nullptr);
    return status == CHIPDOCK_OK ? status : base().memory.copy(device, given, error);
  };
}

void offset_rounded(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* given, chipdock_error* error) {
    Copy room{};
    chipdock_place target{};
    const Copy* desc = edited(given, room, [&](Copy& d) {
      if (d.target == nullptr || d.target->memory == nullptr) return;
      target = *d.target;
      target.offset = target.offset / 256 * 256;
      d.target = &target;
    });
    return base().memory.copy(device, desc, error);
  };
}

void empty_unchecked(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* desc, chipdock_error* error) {
    if (desc != nullptr && desc->struct_size == sizeof(*desc) && desc->size == 0) {
      return CHIPDOCK_OK + 0;
    }
    return base().memory.copy(device, desc, error);
  };
}

/// A copy to the device without a stream ends some time after the call.
void ends_late(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* desc, chipdock_error* error) {
    const bool delayed = desc != nullptr && desc->struct_size == sizeof(*desc) &&
                         desc->stream == nullptr && desc->size > 0 && desc->source != nullptr &&
                         desc->target != nullptr && desc->source->host != nullptr &&
                         desc->target->memory != nullptr;
    if (!delayed) return base().memory.copy(device, desc, error);
    const auto* bytes = static_cast<const char*>(desc->source->host);
    std::thread([device, target = *desc->target,
                 held = std::vector<char>(bytes, bytes + desc->size)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      chipdock_place source{};
      source.struct_size = sizeof(source);
      source.host = held.data();
      Copy late{};
      late.struct_size = sizeof(late);
      late.source = &source;
      late.target = &target;
      late.size = held.size();
      base().memory.copy(device, &late, nullptr);
    }).detach();
    return CHIPDOCK_OK + 0;
  };
}

/// Copies from the host pass through one buffer that all threads share.
void shared_scratch(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const Copy* given, chipdock_error* error) {
    static char scratch[1 << 16];
    Copy room{};
    chipdock_place source{};
    const Copy* desc = edited(given, room, [&](Copy& d) {
      if (d.source == nullptr || d.source->host == nullptr || d.size > sizeof(scratch)) return;
      if (d.stream != nullptr) return;
      source = *d.source;
      std::memcpy(scratch, source.host, d.size);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      source.host = scratch;
      d.source = &source;
    });
    return base().memory.copy(device, desc, error);
  };
}

using Copy2d = chipdock_copy_2d_desc;
template <void (*kEdit)(Copy2d&)>
void copy_2d(Tables& tables) {
  if (base().memory.copy_2d == nullptr) return;
  tables.memory.copy_2d = [](chipdock_device* device, const Copy2d* given, chipdock_error* error) {
    Copy2d room{};
    return base().memory.copy_2d(device, edited(given, room, kEdit), error);
  };
}
void source_pitch(Copy2d& desc) {
  if (desc.source_pitch >= desc.row_bytes) desc.source_pitch = desc.row_bytes;
}
void last_row(Copy2d& desc) { desc.rows -= desc.rows > 1 ? 1 : 0; }
void small_pitch(Copy2d& desc) {
  desc.source_pitch = std::max(desc.source_pitch, desc.row_bytes);
  desc.target_pitch = std::max(desc.target_pitch, desc.row_bytes);
}

using Fill = chipdock_fill_desc;
template <void (*kEdit)(Fill&)>
void fill(Tables& tables) {
  if (base().memory.fill == nullptr) return;
  tables.memory.fill = [](chipdock_device* device, const Fill* given, chipdock_error* error) {
    Fill room{};
    return base().memory.fill(device, edited(given, room, kEdit), error);
  };
}
void fill_tail(Fill& desc) {
  if (desc.pattern_size <= 16 && desc.size > desc.pattern_size) desc.size -= desc.pattern_size;
}
void fill_half_pattern(Fill& desc) {
  if (desc.pattern_size == 16) std::memcpy(desc.pattern + 8, desc.pattern, 8);
}
void fill_any_pattern(Fill& desc) {
  if (desc.pattern_size == 3) desc.pattern_size = 1;
}

/// The slot is there and refuses.
void fill_claimed(Tables& tables) {
  tables.memory.fill = [](chipdock_device*, const Fill*, chipdock_error* error) {
    return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: fill comes with the next chip");
  };
}
void copy_2d_claimed(Tables& tables) {
  tables.memory.copy_2d = [](chipdock_device*, const Copy2d*, chipdock_error* error) {
    return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no rectangles");
  };
}

constexpr Mutant kMutants[] = {
    {"copy_first_byte", &first_byte},
    {"copy_last_byte", &copy<&last_byte>},
    {"copy_odd_sizes", &copy<&odd_last_byte>},
    {"copy_large_sizes", &copy<&large_last_page>},
    {"copy_byte_too_many", &byte_too_many},
    {"copy_offset_rounded", &offset_rounded},
    {"copy_empty_unchecked", &empty_unchecked},
    {"copy_ends_late", &ends_late},
    {"copy_out_of_order", &copy<&inline_always>},
    {"copy_shared_scratch", &shared_scratch},
    {"copy_2d_source_pitch", &copy_2d<&source_pitch>},
    {"copy_2d_last_row", &copy_2d<&last_row>},
    {"copy_2d_small_pitch", &copy_2d<&small_pitch>},
    {"copy_2d_claimed", &copy_2d_claimed},
    {"fill_tail", &fill<&fill_tail>},
    {"fill_half_pattern", &fill<&fill_half_pattern>},
    {"fill_any_pattern", &fill<&fill_any_pattern>},
    {"fill_claimed", &fill_claimed},
};

}  // namespace

MutantSpan transfer_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
