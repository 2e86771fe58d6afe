// SPDX-License-Identifier: Apache-2.0
// Records with wrong ids and times, lost records, and sinks called when they may not be.
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Record = chipdock_profiler_record;
using Session = chipdock_profiler_session;
using Sink = decltype(chipdock_profiler_desc::sink);

/// The host's sink behind ours; lives as long as the process, since a fault may call it late.
struct Tap {
  Sink sink;
  void* context;
};
std::mutex g_mutex;
std::map<Session*, Tap*> g_taps;

bool absent() { return base().profiler.start == nullptr; }

/// Every batch of records is copied and changed before the host sees it.
template <void (*kChange)(std::vector<Record>&)>
void records(Tables& tables) {
  if (absent()) return;
  tables.profiler.start = [](chipdock_device* device, const chipdock_profiler_desc* given,
                             Session** out, chipdock_error* error) {
    chipdock_profiler_desc room{};
    const auto* desc = edited(given, room, [](chipdock_profiler_desc& d) {
      if (d.sink == nullptr) return;
      d.context = new Tap{d.sink, d.context};
      d.sink = [](void* context, const Record* const* given_records, uint64_t count) {
        const auto* tap = static_cast<Tap*>(context);
        std::vector<Record> copies;
        for (uint64_t i = 0; i < count; ++i) copies.push_back(*given_records[i]);
        kChange(copies);
        std::vector<const Record*> pointers;
        for (const Record& copy : copies) pointers.push_back(&copy);
        if (!pointers.empty()) tap->sink(tap->context, pointers.data(), pointers.size());
      };
    });
    const chipdock_status status = base().profiler.start(device, desc, out, error);
    const std::lock_guard lock(g_mutex);
    if (status == CHIPDOCK_OK && desc == &room) g_taps[*out] = static_cast<Tap*>(room.context);
    return status;
  };
}

template <class Change>
void each(std::vector<Record>& records, Change change) {
  for (Record& record : records) {
    if (record.kind != CHIPDOCK_PROFILER_DROPPED) change(record);
  }
}
void other_ids(std::vector<Record>& records) {
  each(records, [](Record& record) { record.correlation_id += 1; });
}
void no_ids(std::vector<Record>& records) {
  each(records, [](Record& record) { record.correlation_id = 0; });
}
void no_parents(std::vector<Record>& records) {
  each(records, [](Record& record) { record.parent_id = 0; });
}
void backwards(std::vector<Record>& records) {
  each(records, [](Record& record) { std::swap(record.start_ns, record.end_ns); });
}
void no_times(std::vector<Record>& records) {
  each(records, [](Record& record) { record.start_ns = record.end_ns = 0; });
}
void bytes_off(std::vector<Record>& records) {
  each(records, [](Record& record) { record.bytes /= 2; });
}
void unknown_kinds(std::vector<Record>& records) {
  each(records, [](Record& record) { record.kind = 40; });
}
void last_lost(std::vector<Record>& records) {
  if (!records.empty()) records.pop_back();
}
void unchanged(std::vector<Record>&) {}

void kinds_ignored(Tables& tables) {
  if (absent()) return;
  tables.profiler.start = [](chipdock_device* device, const chipdock_profiler_desc* given,
                             Session** out, chipdock_error* error) {
    chipdock_profiler_desc room{};
    const auto* desc = edited(given, room, [](chipdock_profiler_desc& d) {
      if (d.kinds >> 9 == 0) d.kinds = 0;
    });
    return base().profiler.start(device, desc, out, error);
  };
}

/// One more record a while after stop has returned, as of a late thread of a driver.
void sink_after_stop(Tables& tables) {
  if (absent()) return;
  records<&unchanged>(tables);
  tables.profiler.stop = [](Session* session, chipdock_error* error) {
    const chipdock_status status = base().profiler.stop(session, error);
    Tap* tap = nullptr;
    {
      const std::lock_guard lock(g_mutex);
      const auto found = g_taps.find(session);
      if (found != g_taps.end()) tap = found->second;
    }
    if (tap == nullptr) return status;
    std::thread([tap] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      Record record{};
      record.struct_size = sizeof(record);
      record.kind = CHIPDOCK_PROFILER_DROPPED;
      record.bytes = 1;
      const Record* pointer = &record;
      tap->sink(tap->context, &pointer, 1);
    }).detach();
    return status;
  };
}

/// Records come with stop only.
void flush_delivers_nothing(Tables& tables) {
  if (absent()) return;
  tables.profiler.flush = [](Session* session, int64_t timeout_ns, chipdock_error* error) {
    return session == nullptr ? base().profiler.flush(session, timeout_ns, error) : CHIPDOCK_OK + 0;
  };
}

template <void (*kChange)(chipdock_clock_sample&)>
void clock(Tables& tables) {
  if (absent()) return;
  tables.profiler.clock = [](chipdock_device* device, chipdock_clock_sample* out,
                             chipdock_error* error) {
    const chipdock_status status = base().profiler.clock(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) kChange(*out);
    return status;
  };
}
void steps_back(chipdock_clock_sample& sample) {
  static std::atomic<int64_t> calls{0};
  sample.device_ns -= calls.fetch_add(1) * 1000000000;
}
void host_crossed(chipdock_clock_sample& sample) {
  sample.host_before_ns = sample.host_after_ns + 1000;
}

constexpr Mutant kMutants[] = {
    {"profiler_other_ids", &records<&other_ids>},
    {"profiler_no_ids", &records<&no_ids>},
    {"profiler_no_parents", &records<&no_parents>},
    {"profiler_backwards", &records<&backwards>},
    {"profiler_no_times", &records<&no_times>},
    {"profiler_bytes_off", &records<&bytes_off>},
    {"profiler_unknown_kinds", &records<&unknown_kinds>},
    {"profiler_last_lost", &records<&last_lost>},
    {"profiler_kinds_ignored", &kinds_ignored},
    {"profiler_sink_after_stop", &sink_after_stop},
    {"profiler_flush_nothing", &flush_delivers_nothing},
    {"profiler_clock_steps_back", &clock<&steps_back>},
    {"profiler_clock_crossed", &clock<&host_crossed>},
};

}  // namespace

MutantSpan profiler_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
