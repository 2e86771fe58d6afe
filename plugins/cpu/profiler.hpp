// SPDX-License-Identifier: Apache-2.0
// Time stamps around work, kept only while a session is open. The cost without one is a flag test.
#ifndef CHIPDOCK_PLUGIN_CPU_PROFILER_HPP_
#define CHIPDOCK_PLUGIN_CPU_PROFILER_HPP_

#include <cstdint>
#include <memory>

#include "device.hpp"

namespace chipdock::plugin::cpu {

/// Stamps the time from construction to destruction as one record.
class ProfileScope {
 public:
  ProfileScope(chipdock_device& device, int32_t kind, const char* name, uint64_t correlation_id,
               uint64_t bytes, const RunContext& context) {
    if (device.profiling.load(std::memory_order_relaxed)) {
      open(device, kind, name, correlation_id, bytes, context);
    }
  }
  ~ProfileScope() {
    if (recorder_ != nullptr) close();
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  void open(chipdock_device& device, int32_t kind, const char* name, uint64_t correlation_id,
            uint64_t bytes, const RunContext& context);
  void close();

  std::shared_ptr<Recorder> recorder_;
  chipdock_profiler_record record_;  // Set by open(); untouched in the ordinary case.
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_PROFILER_HPP_
