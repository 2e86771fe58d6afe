// SPDX-License-Identifier: Apache-2.0
// Device times from a plugin's profiler table, brought onto the host's clock and into a Profiler.
// Without the table there is no session, and spans are the host's own.
#ifndef CHIPDOCK_RUNTIME_PROFILER_SESSION_HPP_
#define CHIPDOCK_RUNTIME_PROFILER_SESSION_HPP_

#include <memory>

#include "device.hpp"
#include "profiler.hpp"

namespace chipdock::runtime {

class ProfilerSession {
 public:
  /// NULL if the plugin has no profiler or it is taken; the Profiler then gets host times only.
  static std::unique_ptr<ProfilerSession> start(Device& device, std::shared_ptr<Profiler> profiler);
  /// Delivers what is left and ends the plugin's session.
  ~ProfilerSession();
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

 private:
  ProfilerSession(Device& device, std::shared_ptr<Profiler> profiler);
  static void CHIPDOCK_CALL sink(void* context, const chipdock_profiler_record* const* records,
                                 uint64_t count);
  void take_clock();
  int64_t to_host(int64_t device_ns) const;
  void deliver();

  Device& device_;
  std::shared_ptr<Profiler> profiler_;
  chipdock_profiler_session* session_ = nullptr;
  struct Sample {
    int64_t device_ns;
    int64_t host_ns;
  };
  std::vector<Sample> clock_;  ///< First and last sample: drift is a line between them.
  std::mutex mutex_;
  std::vector<ProfileRecord> records_;  ///< start_ns in device time until the end.
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_PROFILER_SESSION_HPP_
