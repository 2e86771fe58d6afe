// SPDX-License-Identifier: Apache-2.0
// The chipdock_host that one plugin instance gets: log, counted host memory, error reports, trace
// marks. Where log lines and marks go is set for the whole process; the default is stderr from
// WARNING up.
#ifndef CHIPDOCK_RUNTIME_HOST_SERVICES_HPP_
#define CHIPDOCK_RUNTIME_HOST_SERVICES_HPP_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "plugin.hpp"

namespace chipdock::runtime {

/// Receives a line that passed the level. Called from any thread, also from driver call-back
/// threads.
using LogSink = void (*)(void* context, int32_t severity, const char* plugin, const char* text);
/// NULL brings the default back.
void set_log_sink(LogSink sink, void* context);
/// Lines under `severity` are dropped. Starts at CHIPDOCK_LOG_WARNING.
void set_log_level(int32_t severity);
/// Writes a line of the host itself; `plugin` names whom it is about.
void log_line(int32_t severity, const char* plugin, const std::string& text);

struct TraceMark {
  int32_t phase;  ///< CHIPDOCK_TRACE_*.
  const char* plugin;
  const char* name;  ///< Borrowed for the call.
  uint64_t correlation_id;
  uint64_t time_ns;  ///< Of the steady clock.
};
using TraceSink = void (*)(void* context, const TraceMark& mark);
/// NULL ends tracing; without a sink a mark costs one load.
void set_trace_sink(TraceSink sink, void* context);

/// Host memory that a plugin took through the services.
struct HostMemoryStats {
  uint64_t used_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t live_count = 0;
  uint64_t allocation_count = 0;
  uint64_t refused_count = 0;  ///< Calls answered with NULL.
};

class HostServices {
 public:
  HostServices();
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const chipdock_host& host() const { return host_; }
  /// Shown in log lines; the file's name until the plugin's id is known.
  void set_name(const std::string& name);

  HostMemoryStats memory_stats() const;
  /// Most bytes the plugin may hold; 0 = no limit.
  void set_memory_limit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  /// Makes the n-th call of allocate from now on return NULL; 0 ends it.
  void fail_allocation(uint64_t n) { fail_at_.store(n, std::memory_order_relaxed); }

  void set_report_sink(Plugin::ReportSink sink, void* context);
  /// Called once for a report of scope process, before the sink.
  void set_process_failure_sink(void (*sink)(void* context, const chipdock_error&), void* context);

 private:
  static void CHIPDOCK_CALL log(void* context, int32_t severity, const char* text);
  static void* CHIPDOCK_CALL allocate(void* context, uint64_t size, uint64_t alignment);
  static void CHIPDOCK_CALL release(void* context, void* memory, uint64_t size);
  static void CHIPDOCK_CALL report(void* context, chipdock_device* device, chipdock_stream* stream,
                                   const chipdock_error* error);
  static void CHIPDOCK_CALL trace(void* context, int32_t phase, const char* name,
                                  uint64_t correlation_id);
  bool reserve(uint64_t size);

  chipdock_host host_{};
  mutable std::mutex mutex_;  ///< Over name and sinks; never held while a sink runs.
  std::string name_;
  Plugin::ReportSink report_sink_ = nullptr;
  void* report_context_ = nullptr;
  void (*failure_sink_)(void*, const chipdock_error&) = nullptr;
  void* failure_context_ = nullptr;
  std::atomic<uint64_t> used_{0}, peak_{0}, live_{0}, count_{0}, refused_{0}, limit_{0},
      fail_at_{0};
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_HOST_SERVICES_HPP_
