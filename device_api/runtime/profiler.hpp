// SPDX-License-Identifier: Apache-2.0
// Collects what ran when, from any thread, and writes it as Chrome trace JSON (chrome://tracing,
// Perfetto). Host time stamps are taken here; device time stamps of plugins arrive through
// profiler_session.cpp.
#ifndef CHIPDOCK_RUNTIME_PROFILER_HPP_
#define CHIPDOCK_RUNTIME_PROFILER_HPP_

#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace chipdock::runtime {

/// One span on one line of the picture.
struct ProfileRecord {
  std::string name;      ///< "MatMul", "copy".
  std::string category;  ///< "kernel", "copy", "fill", "graph", "wait", "host", "node".
  int64_t start_ns = 0;  ///< now_ns() time base.
  int64_t duration_ns = 0;
  std::string thread;  ///< Line: a stream's label or "thread N".
  std::string device;  ///< "acme:0"; empty for host work.
  uint64_t correlation_id = 0;
  std::vector<std::pair<std::string, std::string>> args;  ///< Shown on click.
};

class Profiler {
 public:
  void add(ProfileRecord record);
  std::vector<ProfileRecord> records() const;
  size_t size() const;
  void clear();
  /// {"traceEvents": […]} with one process for each device and one thread for each line.
  void write_chrome_trace(std::ostream& out) const;
  /// Throws UNAVAILABLE with the path and the system's reason.
  void write_chrome_trace(const std::string& path) const;

 private:
  mutable std::mutex mutex_;
  std::vector<ProfileRecord> records_;
};

/// Adds a record from construction to destruction if `profiler` is not NULL.
class ProfileScope {
 public:
  ProfileScope(Profiler* profiler, const char* name, const char* category,
               const std::string& device, const std::string& thread, uint64_t correlation_id);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
  void add_arg(std::string key, std::string value);

 private:
  Profiler* profiler_;
  ProfileRecord record_;
};

/// "thread N": a small number for the calling thread, the same for its whole life.
std::string thread_label();

/// `text` between quotation marks, escaped as JSON wants it. Bytes that are not UTF-8 become
/// U+FFFD.
std::string json_quote(const std::string& text);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_PROFILER_HPP_
