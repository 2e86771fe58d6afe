// SPDX-License-Identifier: Apache-2.0
// Affinity is set only where two threads met on one core: everything else is the scheduler's.
#include "placement.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace chipdock::plugin::cpu {

int Seat::caller_core() { return sched_getcpu(); }

void Seat::take() {
  thread_local const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  thread_.store(thread, std::memory_order_relaxed);
  core_.store(caller_core(), std::memory_order_relaxed);
}

bool Seat::leave_to_caller(int core) {
  if (core < 0 || core_.load(std::memory_order_relaxed) != core) return false;
  const int64_t now =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  int64_t moved = moved_ns_.load(std::memory_order_relaxed);
  if (moved != 0 && now - moved < std::chrono::nanoseconds(kMoveEvery).count()) return false;
  if (!moved_ns_.compare_exchange_strong(moved, now)) return false;  // Another caller is at it.
  const pid_t thread = thread_.load(std::memory_order_relaxed);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // Of the calling thread: whoever narrows the process narrows its workers too.
  if (thread == 0 || sched_getaffinity(0, sizeof(cores), &cores) != 0) return false;
  CPU_CLR(static_cast<size_t>(core), &cores);
  if (CPU_COUNT(&cores) == 0 || sched_setaffinity(thread, sizeof(cores), &cores) != 0) return false;
  core_.store(-1, std::memory_order_relaxed);
  return true;
}

}  // namespace chipdock::plugin::cpu
