// SPDX-License-Identifier: Apache-2.0
// Wrong order, waiting, failing and ending of streams. The whole table comes or none of it, so each
// fault asks for one slot of the base only.
#include <map>
#include <mutex>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using HostFunction = chipdock_host_function_desc;

bool absent() { return base().stream.create == nullptr; }

void sync_early(Tables& tables) {
  if (absent()) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t, chipdock_error* error) {
    const chipdock_status status = base().stream.query(stream, error);
    return status == CHIPDOCK_NOT_READY ? CHIPDOCK_OK + 0 : status;
  };
}

void query_ready(Tables& tables) {
  if (absent()) return;
  tables.stream.query = [](chipdock_stream* stream, chipdock_error* error) {
    const chipdock_status status = base().stream.query(stream, error);
    return status == CHIPDOCK_NOT_READY ? CHIPDOCK_OK + 0 : status;
  };
}

void query_blocks(Tables& tables) {
  if (absent()) return;
  tables.stream.query = [](chipdock_stream* stream, chipdock_error* error) {
    return base().stream.sync(stream, -1, error);
  };
}

void timeout_ignored(Tables& tables) {
  if (absent()) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t, chipdock_error* error) {
    return base().stream.sync(stream, -1, error);
  };
}

void timeout_is_ok(Tables& tables) {
  if (absent()) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
    return forgiving(CHIPDOCK_TIMEOUT, error, [&](chipdock_error* own) {
      return base().stream.sync(stream, timeout_ns, own);
    });
  };
}

void wait_ignored(Tables& tables) {
  if (absent()) return;
  tables.stream.wait_event = [](chipdock_stream* stream, chipdock_event* event,
                                chipdock_error* error) {
    if (stream == nullptr || event == nullptr) {
      return base().stream.wait_event(stream, event, error);
    }
    return CHIPDOCK_OK + 0;
  };
}

/// A wait on the event of a failed stream is no wait.
void failure_stays(Tables& tables) {
  if (absent()) return;
  tables.stream.wait_event = [](chipdock_stream* stream, chipdock_event* event,
                                chipdock_error* error) {
    if (stream != nullptr && event != nullptr) {
      const chipdock_status status = base().event.query(event, nullptr);
      if (status != CHIPDOCK_OK && status != CHIPDOCK_NOT_READY) return CHIPDOCK_OK + 0;
    }
    return base().stream.wait_event(stream, event, error);
  };
}

/// Changes what is queued in place of a host function.
template <chipdock_status (*kQueue)(chipdock_stream*, const HostFunction&, chipdock_error*)>
void host_function(Tables& tables) {
  if (base().stream.host_function == nullptr) return;
  tables.stream.host_function = [](chipdock_stream* stream, const HostFunction* desc,
                                   chipdock_error* error) {
    const bool good = stream != nullptr && desc != nullptr && desc->struct_size == sizeof(*desc) &&
                      desc->function != nullptr && desc->flags == 0;
    return good ? kQueue(stream, *desc, error) : base().stream.host_function(stream, desc, error);
  };
}

chipdock_status twice(chipdock_stream* stream, const HostFunction& desc, chipdock_error* error) {
  const chipdock_status status = base().stream.host_function(stream, &desc, error);
  if (status != CHIPDOCK_OK) return status;
  return base().stream.host_function(stream, &desc, error);
}
chipdock_status dropped(chipdock_stream*, const HostFunction&, chipdock_error*) {
  return CHIPDOCK_OK;
}
chipdock_status at_once(chipdock_stream*, const HostFunction& desc, chipdock_error*) {
  desc.function(desc.context, CHIPDOCK_OK);
  return CHIPDOCK_OK;
}
chipdock_status state_ok(chipdock_stream* stream, const HostFunction& given,
                         chipdock_error* error) {
  HostFunction desc = given;
  desc.context = new HostFunction(given);
  desc.function = [](void* context, chipdock_status) {
    const auto* real = static_cast<HostFunction*>(context);
    real->function(real->context, CHIPDOCK_OK);
    delete real;
  };
  return base().stream.host_function(stream, &desc, error);
}

/// The first cause is told once.
void error_told_once(Tables& tables) {
  if (absent()) return;
  static std::mutex mutex;
  static std::map<chipdock_stream*, bool> told;
  tables.stream.sync = [](chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
    {
      const std::lock_guard lock(mutex);
      if (stream != nullptr && told[stream]) return CHIPDOCK_OK + 0;
    }
    const chipdock_status status = base().stream.sync(stream, timeout_ns, error);
    const std::lock_guard lock(mutex);
    if (status != CHIPDOCK_OK && status != CHIPDOCK_TIMEOUT && stream != nullptr) {
      told[stream] = true;
    }
    return status;
  };
  tables.stream.destroy = [](chipdock_stream* stream, chipdock_error* error) {
    {
      const std::lock_guard lock(mutex);
      told.erase(stream);
    }
    return base().stream.destroy(stream, error);
  };
}

/// Work for a failed stream is taken and forgotten.
void failed_takes_work(Tables& tables) {
  if (absent()) return;
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* desc,
                          chipdock_error* error) {
    return forgiving(CHIPDOCK_FAILED_PRECONDITION, error,
                     [&](chipdock_error* own) { return base().memory.copy(device, desc, own); });
  };
  tables.event.record = [](chipdock_event* event, chipdock_stream* stream, chipdock_error* error) {
    return forgiving(CHIPDOCK_FAILED_PRECONDITION, error,
                     [&](chipdock_error* own) { return base().event.record(event, stream, own); });
  };
}

void correlation_lost(Tables& tables) {
  if (absent()) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
    const chipdock_status status = base().stream.sync(stream, timeout_ns, error);
    if (status != CHIPDOCK_OK && error != nullptr && error->struct_size >= sizeof(*error)) {
      error->correlation_id = 0;
    }
    return status;
  };
}

void abort_ignored(Tables& tables) {
  if (base().stream.abort == nullptr) return;
  tables.stream.abort = [](chipdock_stream* stream, chipdock_error* error) {
    return stream == nullptr ? base().stream.abort(stream, error) : CHIPDOCK_OK + 0;
  };
}

/// Work in flight is dropped, not ended.
void destroy_drops(Tables& tables) {
  if (base().stream.abort == nullptr) return;
  tables.stream.destroy = [](chipdock_stream* stream, chipdock_error* error) {
    if (stream != nullptr) base().stream.abort(stream, nullptr);
    return base().stream.destroy(stream, error);
  };
}

void destroy_leaks(Tables& tables) {
  if (absent()) return;
  tables.stream.destroy = [](chipdock_stream* stream, chipdock_error* error) {
    return stream == nullptr ? base().stream.destroy(stream, error) : CHIPDOCK_OK + 0;
  };
}

template <void (*kEdit)(chipdock_value_desc&)>
void value(Tables& tables) {
  if (base().stream.value == nullptr) return;
  tables.stream.value = [](chipdock_stream* stream, const chipdock_value_desc* given,
                           chipdock_error* error) {
    chipdock_value_desc room{};
    return base().stream.value(stream, edited(given, room, kEdit), error);
  };
}
void narrow_write(chipdock_value_desc& desc) {
  if (desc.operation == CHIPDOCK_VALUE_WRITE) desc.value &= 0xffffffffu;
}
void equal_for_greater(chipdock_value_desc& desc) {
  if (desc.operation == CHIPDOCK_VALUE_WAIT_GREATER_EQUAL) {
    desc.operation = CHIPDOCK_VALUE_WAIT_EQUAL;
  }
}
void no_wait(chipdock_value_desc& desc) {
  if (desc.operation == CHIPDOCK_VALUE_WAIT_AND) {
    desc.operation = CHIPDOCK_VALUE_WAIT_GREATER_EQUAL;
    desc.value = 1ull << 63;
  }
}

constexpr Mutant kMutants[] = {
    {"stream_sync_early", &sync_early},
    {"stream_query_ready", &query_ready},
    {"stream_query_blocks", &query_blocks},
    {"stream_timeout_ignored", &timeout_ignored},
    {"stream_timeout_is_ok", &timeout_is_ok},
    {"stream_wait_ignored", &wait_ignored},
    {"stream_failure_stays", &failure_stays},
    {"host_function_twice", &host_function<&twice>},
    {"host_function_dropped", &host_function<&dropped>},
    {"host_function_at_once", &host_function<&at_once>},
    {"host_function_state_ok", &host_function<&state_ok>},
    {"stream_error_told_once", &error_told_once},
    {"stream_failed_takes_work", &failed_takes_work},
    {"stream_correlation_lost", &correlation_lost},
    {"stream_abort_ignored", &abort_ignored},
    {"stream_destroy_drops", &destroy_drops},
    {"stream_destroy_leaks", &destroy_leaks},
    {"value_write_narrow", &value<&narrow_write>},
    {"value_equal_for_greater", &value<&equal_for_greater>},
    {"value_and_no_wait", &value<&no_wait>},
};

}  // namespace

MutantSpan stream_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
