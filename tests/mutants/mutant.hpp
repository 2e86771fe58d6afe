// SPDX-License-Identifier: Apache-2.0
// What a mutant is: a name and a function that puts faults into a copy of the base plugin's tables.
// Handles are the base's own and pass through untouched.
#ifndef CHIPDOCK_TESTS_MUTANTS_MUTANT_HPP_
#define CHIPDOCK_TESTS_MUTANTS_MUTANT_HPP_

#include <atomic>
#include <cstdint>
#include <cstring>

#include "chipdock/chipdock.h"

namespace chipdock::mutants {

/// Faults of query, get_table and the instance, which are no slots of a table.
struct PluginFaults {
  bool ignores_versions = false;
  bool fresh_uuid = false;
  bool fresh_tables = false;
  bool any_major = false;
  bool short_header = false;
  bool null_plugin_ok = false;
  bool signal_handler = false;
  bool keeps_thread = false;
};

struct Tables {
  chipdock_device_api device{};
  chipdock_memory_api memory{};
  chipdock_stream_api stream{};
  chipdock_event_api event{};
  chipdock_kernel_api kernel{};
  chipdock_graph_api graph{};
  chipdock_compile_api compile{};
  chipdock_profiler_api profiler{};
  PluginFaults plugin;
};

/// The base's own slots. A table that it lacks is all NULL.
const Tables& base();
/// The base's instance behind an instance of ours.
chipdock_plugin* base_plugin(chipdock_plugin* plugin);

struct Mutant {
  const char* name;
  void (*apply)(Tables& tables);  ///< Runs once, before the first instance is handed out.
};

struct MutantSpan {
  const Mutant* first;
  uint64_t count;
};
template <uint64_t kCount>
constexpr MutantSpan span_of(const Mutant (&mutants)[kCount]) {
  return {mutants, kCount};
}

/// A struct that came in with one change, kept in `room`; as given if it is NULL or not of today's
/// size, for the base to judge.
template <class T, class Edit>
const T* edited(const T* given, T& room, Edit edit) {
  if (given == nullptr || given->struct_size != sizeof(T)) return given;
  room = *given;
  edit(room);
  return &room;
}

/// Turns one status into OK without a trace in the error record.
template <class Call>
chipdock_status forgiving(chipdock_status forgiven, chipdock_error* error, Call call) {
  chipdock_error own{};
  own.struct_size = error == nullptr ? 0 : error->struct_size;
  if (error == nullptr || own.struct_size < sizeof(uint32_t) || own.struct_size > sizeof(own)) {
    return call(error);
  }
  const chipdock_status status = call(&own);
  if (status == forgiven) return CHIPDOCK_OK;
  if (status != CHIPDOCK_OK) std::memcpy(error, &own, own.struct_size);
  return status;
}

/// Counts calls: true from the `first`th on.
class Countdown {
 public:
  constexpr explicit Countdown(int first) : left_(first) {}
  bool due() { return left_.fetch_sub(1, std::memory_order_relaxed) <= 1; }

 private:
  std::atomic<int> left_;
};

}  // namespace chipdock::mutants

#endif  // CHIPDOCK_TESTS_MUTANTS_MUTANT_HPP_
