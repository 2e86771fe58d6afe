// SPDX-License-Identifier: Apache-2.0
// Which core a thread gets that is about to be woken. Linux looks for an idle core only among those
// that share a cache with the waker's. Where each core has its own, as in many virtual machines, a
// worker is put behind the very thread that waits for it, and the two take turns for milliseconds.
#ifndef CHIPDOCK_PLUGIN_CPU_PLACEMENT_HPP_
#define CHIPDOCK_PLUGIN_CPU_PLACEMENT_HPP_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace chipdock::plugin::cpu {

/// The core on which a thread was seen last. The thread writes it, others read it.
class Seat {
 public:
  /// The core of the calling thread; below 0 if the system does not say.
  static int caller_core();
  /// The calling thread is here now.
  void take();
  /// `core` is the caller's. If it is the seat's, the seat's thread does not run: lets it run on
  /// every core that the caller may use but this one. Otherwise does nothing, as it does if there
  /// is no such core, the system does not allow it, or the thread was moved within kMoveEvery:
  /// callers on all cores would else throw it to and fro. Returns whether it did.
  bool leave_to_caller(int core);

  static constexpr std::chrono::milliseconds kMoveEvery{2};

 private:
  std::atomic<pid_t> thread_{0};
  std::atomic<int> core_{-1};
  std::atomic<int64_t> moved_ns_{0};  ///< By the steady clock; 0 is never.
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_PLACEMENT_HPP_
