// SPDX-License-Identifier: Apache-2.0
// What a Device keeps behind its header: counters, the first cause, the names of recent operations,
// its streams, and the table that leads from a plugin's report to the Device.
#ifndef CHIPDOCK_RUNTIME_DEVICE_STATE_HPP_
#define CHIPDOCK_RUNTIME_DEVICE_STATE_HPP_

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.hpp"
#include "profiler_session.hpp"

namespace chipdock::runtime {

/// Names of the last 4,096 operations by correlation id, written without a lock on every enqueue. A
/// reader that meets a slot being written again finds nothing, never a wrong name.
class OperationNames {
 public:
  void note(uint64_t id, const char* name);
  std::string find(uint64_t id) const;

 private:
  static constexpr size_t kSlots = 4096;
  static constexpr size_t kWords = 6;
  static constexpr uint64_t kBusy = ~uint64_t{0};  ///< In `id` while a name is being written.
  struct Slot {
    std::atomic<uint64_t> id{0};
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

struct Device::State {
  std::atomic<uint64_t> launches{0};  ///< Queued ones; Device counts the others.
  std::atomic<uint64_t> copy_bytes{0};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::atomic<uint64_t> allocation_count{0};
  OperationNames names;

  mutable std::mutex mutex;  ///< Over what follows.
  Cause cause;
  std::map<Stream*, std::weak_ptr<Stream>> streams;
  std::vector<chipdock_event*> events;
  std::shared_ptr<Profiler> profiler;
  std::unique_ptr<ProfilerSession> session;

  /// Reports of the plugin find the device between these two.
  static void enter(Device& device);
  static void leave(Device& device);
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_DEVICE_STATE_HPP_
