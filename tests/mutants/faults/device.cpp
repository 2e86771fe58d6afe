// SPDX-License-Identifier: Apache-2.0
// Wrong counts and descriptions of devices, and wrong opening, closing and waiting.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

std::atomic<int> g_open{0};

void count_changes(Tables& tables) {
  tables.device.count = [](chipdock_plugin* plugin, int32_t* out, chipdock_error* error) {
    static std::atomic<int32_t> calls{0};
    const chipdock_status status = base().device.count(base_plugin(plugin), out, error);
    if (status == CHIPDOCK_OK) *out += calls.fetch_add(1) % 4 == 3 ? 1 : 0;
    return status;
  };
}

void count_negative(Tables& tables) {
  tables.device.count = [](chipdock_plugin* plugin, int32_t* out, chipdock_error* error) {
    const chipdock_status status = base().device.count(base_plugin(plugin), out, error);
    if (status == CHIPDOCK_OK && g_open > 0) *out = -1;
    return status;
  };
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    const chipdock_status status = base().device.open(base_plugin(plugin), desc, out, error);
    if (status == CHIPDOCK_OK) ++g_open;
    return status;
  };
}

void index_any(Tables& tables) {
  tables.device.info = [](chipdock_plugin* plugin, int32_t, chipdock_device_info* out,
                          chipdock_error* error) {
    return base().device.info(base_plugin(plugin), 0, out, error);
  };
}

/// The info of the base, changed.
template <void (*kChange)(chipdock_device_info&)>
void info(Tables& tables) {
  tables.device.info = [](chipdock_plugin* plugin, int32_t index, chipdock_device_info* out,
                          chipdock_error* error) {
    const chipdock_status status = base().device.info(base_plugin(plugin), index, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) kChange(*out);
    return status;
  };
}

void heap_alignment(chipdock_device_info& out) {
  static chipdock_heap heap;
  static const chipdock_heap* const heaps[] = {&heap};
  heap = *out.heaps[0];
  heap.alignment = 48;
  out.heaps = heaps;
}
void no_heaps(chipdock_device_info& out) { out.heap_count = 0; }
void null_string(chipdock_device_info& out) { out.architecture = nullptr; }
void unknown_flag(chipdock_device_info& out) { out.flags |= 1u << 29; }
void other_uuid(chipdock_device_info& out) {
  static std::atomic<uint8_t> calls{0};
  out.uuid[0] = ++calls;
}
/// Every call overwrites the string of the one before.
void moving_string(chipdock_device_info& out) {
  static char text[2][64];
  static std::atomic<unsigned> calls{0};
  const unsigned call = calls.fetch_add(1);
  std::strncpy(text[call % 2], out.product, sizeof(text[0]) - 1);
  text[(call + 1) % 2][0] = '?';
  out.product = text[call % 2];
}
void peak_negative(chipdock_device_info& out) {
  static chipdock_peak peak;
  static const chipdock_peak* const peaks[] = {&peak};
  peak.struct_size = sizeof(peak);
  peak.dtype = {CHIPDOCK_DTYPE_FLOAT, 32, 1};
  peak.operations_per_second = -1.0;
  out.peaks = peaks;
  out.peak_count = 1;
}

void info_wants_open(Tables& tables) {
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    const chipdock_status status = base().device.open(base_plugin(plugin), desc, out, error);
    if (status == CHIPDOCK_OK) ++g_open;
    return status;
  };
  tables.device.info = [](chipdock_plugin* plugin, int32_t index, chipdock_device_info* out,
                          chipdock_error* error) {
    if (g_open == 0) {
      return chipdock_fail(error, CHIPDOCK_UNAVAILABLE, "UNAVAILABLE: no device was opened yet");
    }
    return base().device.info(base_plugin(plugin), index, out, error);
  };
}

/// Two openings are one device; the second close has nothing left to close.
void opens_are_one(Tables& tables) {
  static std::mutex mutex;
  static chipdock_device* shared = nullptr;
  static int users = 0;
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    const std::lock_guard lock(mutex);
    if (shared != nullptr && out != nullptr && desc != nullptr && desc->struct_size != 0) {
      ++users;
      *out = shared;
      return CHIPDOCK_OK + 0;
    }
    const chipdock_status status = base().device.open(base_plugin(plugin), desc, out, error);
    if (status == CHIPDOCK_OK) shared = *out, users = 1;
    return status;
  };
  tables.device.close = [](chipdock_device* device, chipdock_error* error) {
    const std::lock_guard lock(mutex);
    if (device == shared && --users > 0) return CHIPDOCK_OK + 0;
    if (device == shared) shared = nullptr;
    return base().device.close(device, error);
  };
}

void options_ignored(Tables& tables) {
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* given,
                          chipdock_device** out, chipdock_error* error) {
    chipdock_device_open_desc room{};
    const auto* desc =
        edited(given, room, [](chipdock_device_open_desc& d) { d.option_count = 0; });
    return base().device.open(base_plugin(plugin), desc, out, error);
  };
}

void sync_early(Tables& tables) {
  if (base().device.sync == nullptr) return;
  tables.device.sync = [](chipdock_device*, int64_t, chipdock_error*) { return CHIPDOCK_OK + 0; };
}

void stats_stand_still(Tables& tables) {
  if (base().device.stats == nullptr) return;
  tables.device.stats = [](chipdock_device* device, chipdock_device_stats* out,
                           chipdock_error* error) {
    const chipdock_status status = base().device.stats(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) {
      out->allocated_bytes = 0;
      out->allocation_count = 0;
    }
    return status;
  };
}

void query_size_short(Tables& tables) {
  if (base().device.query == nullptr) return;
  tables.device.query = [](chipdock_device* device, const char* key, char* buffer, uint64_t size,
                           uint64_t* out_size, chipdock_error* error) {
    const chipdock_status status = base().device.query(device, key, buffer, size, out_size, error);
    if (out_size != nullptr && *out_size > 0) --*out_size;
    return status;
  };
}

void health_unknown_state(Tables& tables) {
  if (base().device.health == nullptr) return;
  tables.device.health = [](chipdock_device* device, chipdock_health* out, chipdock_error* error) {
    const chipdock_status status = base().device.health(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= 2 * sizeof(uint32_t)) out->state = 17;
    return status;
  };
}

constexpr Mutant kMutants[] = {
    {"count_changes", &count_changes},
    {"count_negative", &count_negative},
    {"info_any_index", &index_any},
    {"info_heap_alignment", &info<&heap_alignment>},
    {"info_no_heap", &info<&no_heaps>},
    {"info_null_string", &info<&null_string>},
    {"info_unknown_flag", &info<&unknown_flag>},
    {"info_new_uuid", &info<&other_uuid>},
    {"info_string_moves", &info<&moving_string>},
    {"info_peak_negative", &info<&peak_negative>},
    {"info_wants_open", &info_wants_open},
    {"open_shares_device", &opens_are_one},
    {"open_ignores_options", &options_ignored},
    {"device_sync_early", &sync_early},
    {"stats_stand_still", &stats_stand_still},
    {"query_size_short", &query_size_short},
    {"health_unknown_state", &health_unknown_state},
};

}  // namespace

MutantSpan device_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
