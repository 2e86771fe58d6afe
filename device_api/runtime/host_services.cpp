// SPDX-License-Identifier: Apache-2.0
// The five services. None of them lets an exception through to the plugin or calls it back.
#include "host_services.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace chipdock::runtime {
namespace {

constexpr uint64_t kMaxAlignment = 4096;

// Pointers, not objects: a plugin may still log while static objects are destroyed.
struct Sinks {
  std::mutex mutex;
  LogSink log = nullptr;
  void* log_context = nullptr;
  TraceSink trace = nullptr;
  void* trace_context = nullptr;
};
Sinks& sinks() {
  static auto& value = *new Sinks;
  return value;
}
std::atomic<int32_t> g_level{CHIPDOCK_LOG_WARNING};
std::atomic<bool> g_tracing{false};

const char* severity_name(int32_t severity) {
  static constexpr const char* kNames[] = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR"};
  return kNames[severity];
}

int32_t clean_severity(int32_t severity) {
  return severity < CHIPDOCK_LOG_TRACE || severity > CHIPDOCK_LOG_ERROR ? CHIPDOCK_LOG_ERROR
                                                                        : severity;
}

}  // namespace

void set_log_sink(LogSink sink, void* context) {
  const std::lock_guard lock(sinks().mutex);
  sinks().log = sink;
  sinks().log_context = context;
}

void set_log_level(int32_t severity) { g_level.store(severity, std::memory_order_relaxed); }

void log_line(int32_t severity, const char* plugin, const std::string& text) {
  severity = clean_severity(severity);
  if (severity < g_level.load(std::memory_order_relaxed)) return;
  LogSink sink = nullptr;
  void* context = nullptr;
  {
    const std::lock_guard lock(sinks().mutex);
    sink = sinks().log;
    context = sinks().log_context;
  }
  if (sink != nullptr) {
    sink(context, severity, plugin, text.c_str());
    return;
  }
  std::fprintf(stderr, "chipdock %s [%s] %s\n", severity_name(severity), plugin, text.c_str());
}

void set_trace_sink(TraceSink sink, void* context) {
  const std::lock_guard lock(sinks().mutex);
  sinks().trace = sink;
  sinks().trace_context = context;
  g_tracing.store(sink != nullptr, std::memory_order_relaxed);
}

HostServices::HostServices() {
  host_.struct_size = sizeof(host_);
  host_.abi_version = CHIPDOCK_ABI_VERSION;
  host_.context = this;
  host_.log = &HostServices::log;
  host_.allocate = &HostServices::allocate;
  host_.release = &HostServices::release;
  host_.report = &HostServices::report;
  host_.trace = &HostServices::trace;
}

void HostServices::set_name(const std::string& name) {
  const std::lock_guard lock(mutex_);
  name_ = name;
}

HostMemoryStats HostServices::memory_stats() const {
  HostMemoryStats stats;
  stats.used_bytes = used_.load(std::memory_order_relaxed);
  stats.peak_bytes = peak_.load(std::memory_order_relaxed);
  stats.live_count = live_.load(std::memory_order_relaxed);
  stats.allocation_count = count_.load(std::memory_order_relaxed);
  stats.refused_count = refused_.load(std::memory_order_relaxed);
  return stats;
}

void HostServices::set_report_sink(Plugin::ReportSink sink, void* context) {
  const std::lock_guard lock(mutex_);
  report_sink_ = sink;
  report_context_ = context;
}

void HostServices::set_process_failure_sink(void (*sink)(void*, const chipdock_error&),
                                            void* context) {
  const std::lock_guard lock(mutex_);
  failure_sink_ = sink;
  failure_context_ = context;
}

void HostServices::log(void* context, int32_t severity, const char* text) {
  if (clean_severity(severity) < g_level.load(std::memory_order_relaxed)) return;
  auto* self = static_cast<HostServices*>(context);
  try {
    std::string name;
    {
      const std::lock_guard lock(self->mutex_);
      name = self->name_;
    }
    log_line(severity, name.c_str(), text == nullptr ? "(NULL text)" : text);
  } catch (...) {  // Out of memory: a lost line is better than a lost process.
  }
}

bool HostServices::reserve(uint64_t size) {
  uint64_t left = fail_at_.load(std::memory_order_relaxed);
  while (left != 0 && !fail_at_.compare_exchange_weak(left, left - 1)) {
  }
  if (left == 1) return false;
  const uint64_t limit = limit_.load(std::memory_order_relaxed);
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (limit != 0 && (size > limit || used > limit - size)) return false;
  } while (!used_.compare_exchange_weak(used, used + size));
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used + size && !peak_.compare_exchange_weak(peak, used + size)) {
  }
  return true;
}

void* HostServices::allocate(void* context, uint64_t size, uint64_t alignment) {
  auto* self = static_cast<HostServices*>(context);
  self->count_.fetch_add(1, std::memory_order_relaxed);
  const bool valid = size > 0 && size <= SIZE_MAX / 2 && alignment > 0 &&
                     alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0;
  if (!valid || !self->reserve(size)) {
    self->refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  void* memory = nullptr;
  const size_t smallest = alignment < sizeof(void*) ? sizeof(void*) : alignment;
  if (posix_memalign(&memory, smallest, size) != 0) {
    self->used_.fetch_sub(size, std::memory_order_relaxed);
    self->refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  self->live_.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void HostServices::release(void* context, void* memory, uint64_t size) {
  if (memory == nullptr) return;
  auto* self = static_cast<HostServices*>(context);
  self->used_.fetch_sub(size, std::memory_order_relaxed);
  self->live_.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

void HostServices::report(void* context, chipdock_device* device, chipdock_stream* stream,
                          const chipdock_error* error) {
  if (error == nullptr || error->struct_size < sizeof(uint32_t) * 2) return;
  auto* self = static_cast<HostServices*>(context);
  try {
    ErrorRecord record;
    std::memcpy(static_cast<chipdock_error*>(&record), error,
                std::min<size_t>(error->struct_size, sizeof(chipdock_error)));
    record.struct_size = sizeof(chipdock_error);
    record.text[CHIPDOCK_ERROR_TEXT_SIZE - 1] = '\0';
    std::string name;
    Plugin::ReportSink sink = nullptr;
    void* sink_context = nullptr;
    void (*failure)(void*, const chipdock_error&) = nullptr;
    void* failure_context = nullptr;
    {
      const std::lock_guard lock(self->mutex_);
      name = self->name_;
      sink = self->report_sink_;
      sink_context = self->report_context_;
      failure = self->failure_sink_;
      failure_context = self->failure_context_;
    }
    if (record.scope == CHIPDOCK_SCOPE_PROCESS && failure != nullptr) {
      failure(failure_context, record);
    }
    if (sink != nullptr) {
      sink(sink_context, device, stream, record);
    } else {
      log_line(CHIPDOCK_LOG_ERROR, name.c_str(), std::string("reported: ") + record.text);
    }
  } catch (...) {  // As in log.
  }
}

void HostServices::trace(void* context, int32_t phase, const char* name, uint64_t correlation_id) {
  if (!g_tracing.load(std::memory_order_relaxed) || name == nullptr) return;
  auto* self = static_cast<HostServices*>(context);
  try {
    TraceSink sink = nullptr;
    void* sink_context = nullptr;
    {
      const std::lock_guard lock(sinks().mutex);
      sink = sinks().trace;
      sink_context = sinks().trace_context;
    }
    std::string plugin;
    {
      const std::lock_guard lock(self->mutex_);
      plugin = self->name_;
    }
    if (sink == nullptr) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    sink(sink_context, {phase, plugin.c_str(), name, correlation_id, static_cast<uint64_t>(time)});
  } catch (...) {  // As in log.
  }
}

}  // namespace chipdock::runtime
