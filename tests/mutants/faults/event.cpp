// SPDX-License-Identifier: Apache-2.0
// Events that are lost, reached too early or never, or tell a wrong time.
#include <mutex>
#include <set>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

std::mutex g_mutex;
std::set<chipdock_event*> g_recorded;

bool absent() { return base().event.create == nullptr; }

void record_lost(Tables& tables) {
  if (absent()) return;
  tables.event.record = [](chipdock_event* event, chipdock_stream* stream, chipdock_error* error) {
    return event == nullptr ? base().event.record(event, stream, error) : CHIPDOCK_OK + 0;
  };
}

void record_at_once(Tables& tables) {
  if (absent()) return;
  tables.event.record = [](chipdock_event* event, chipdock_stream*, chipdock_error* error) {
    return base().event.record(event, nullptr, error);
  };
}

/// Forgets an event before its handle may come back for a new one.
void forget_on_destroy(Tables& tables) {
  tables.event.destroy = [](chipdock_event* event, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      g_recorded.erase(event);
    }
    return base().event.destroy(event, error);
  };
}

void second_record_ignored(Tables& tables) {
  if (absent()) return;
  forget_on_destroy(tables);
  tables.event.record = [](chipdock_event* event, chipdock_stream* stream, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      if (event != nullptr && !g_recorded.insert(event).second) return CHIPDOCK_OK + 0;
    }
    return base().event.record(event, stream, error);
  };
}

/// An event that was never recorded is not reached.
void fresh_not_reached(Tables& tables) {
  if (absent()) return;
  forget_on_destroy(tables);
  tables.event.record = [](chipdock_event* event, chipdock_stream* stream, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      g_recorded.insert(event);
    }
    return base().event.record(event, stream, error);
  };
  tables.event.query = [](chipdock_event* event, chipdock_error* error) {
    {
      const std::lock_guard lock(g_mutex);
      if (event != nullptr && g_recorded.count(event) == 0) return CHIPDOCK_NOT_READY + 0;
    }
    return base().event.query(event, error);
  };
}

void query_never(Tables& tables) {
  if (absent()) return;
  tables.event.query = [](chipdock_event* event, chipdock_error* error) {
    const chipdock_status status = base().event.query(event, error);
    return status == CHIPDOCK_OK ? CHIPDOCK_NOT_READY + 0 : status;
  };
}

void query_ready(Tables& tables) {
  if (absent()) return;
  tables.event.query = [](chipdock_event* event, chipdock_error* error) {
    const chipdock_status status = base().event.query(event, error);
    return status == CHIPDOCK_NOT_READY ? CHIPDOCK_OK + 0 : status;
  };
}

void sync_early(Tables& tables) {
  if (absent()) return;
  tables.event.sync = [](chipdock_event* event, int64_t, chipdock_error* error) {
    const chipdock_status status = base().event.query(event, error);
    return status == CHIPDOCK_NOT_READY ? CHIPDOCK_OK + 0 : status;
  };
}

void sync_timeout_ignored(Tables& tables) {
  if (absent()) return;
  tables.event.sync = [](chipdock_event* event, int64_t, chipdock_error* error) {
    return base().event.sync(event, -1, error);
  };
}

/// The event of a failed stream is reached, and that is all.
void failure_is_ok(Tables& tables) {
  if (absent()) return;
  tables.event.query = [](chipdock_event* event, chipdock_error* error) {
    const chipdock_status status = base().event.query(event, nullptr);
    if (event == nullptr) return base().event.query(event, error);
    return status == CHIPDOCK_NOT_READY ? status : CHIPDOCK_OK + 0;
  };
  tables.event.sync = [](chipdock_event* event, int64_t timeout_ns, chipdock_error* error) {
    if (event == nullptr) return base().event.sync(event, timeout_ns, error);
    const chipdock_status status = base().event.sync(event, timeout_ns, nullptr);
    return status == CHIPDOCK_TIMEOUT
               ? chipdock_fail(error, status, "TIMEOUT: the event is not reached")
               : CHIPDOCK_OK + 0;
  };
}

void destroy_waits(Tables& tables) {
  if (absent()) return;
  tables.event.destroy = [](chipdock_event* event, chipdock_error* error) {
    if (event != nullptr) base().event.sync(event, -1, nullptr);
    return base().event.destroy(event, error);
  };
}

template <int64_t (*kChange)(int64_t)>
void elapsed(Tables& tables) {
  if (base().event.elapsed == nullptr) return;
  tables.event.elapsed = [](chipdock_event* start, chipdock_event* end, int64_t* out,
                            chipdock_error* error) {
    const chipdock_status status = base().event.elapsed(start, end, out, error);
    if (status == CHIPDOCK_OK) *out = kChange(*out);
    return status;
  };
}
int64_t negative(int64_t time) { return -time - 1; }
int64_t in_microseconds(int64_t time) { return time / 1000; }

/// Events without TIMING are timed too.
void elapsed_any(Tables& tables) {
  if (base().event.elapsed == nullptr) return;
  tables.event.elapsed = [](chipdock_event* start, chipdock_event* end, int64_t* out,
                            chipdock_error* error) {
    const chipdock_status status = base().event.elapsed(start, end, out, error);
    if (status != CHIPDOCK_INVALID_ARGUMENT || start == nullptr || end == nullptr ||
        out == nullptr) {
      return status;
    }
    *out = 0;
    return CHIPDOCK_OK + 0;
  };
}

constexpr Mutant kMutants[] = {
    {"event_record_lost", &record_lost},
    {"event_record_at_once", &record_at_once},
    {"event_second_record_ignored", &second_record_ignored},
    {"event_fresh_not_reached", &fresh_not_reached},
    {"event_query_never", &query_never},
    {"event_query_ready", &query_ready},
    {"event_sync_early", &sync_early},
    {"event_timeout_ignored", &sync_timeout_ignored},
    {"event_failure_is_ok", &failure_is_ok},
    {"event_destroy_waits", &destroy_waits},
    {"event_elapsed_negative", &elapsed<&negative>},
    {"event_elapsed_microseconds", &elapsed<&in_microseconds>},
    {"event_elapsed_untimed", &elapsed_any},
};

}  // namespace

MutantSpan event_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
