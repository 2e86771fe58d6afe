// SPDX-License-Identifier: Apache-2.0
// How many threads are launching kernels these days. Each of them keeps a core busy, also between
// two kernels, so a kernel may share its work over the others only.
#ifndef CHIPDOCK_PLUGIN_CPU_CALLERS_HPP_
#define CHIPDOCK_PLUGIN_CPU_CALLERS_HPP_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace chipdock::plugin::cpu {

class Callers {
 public:
  /// A caller who did not call for so long is gone: the host takes microseconds between kernels.
  static constexpr std::chrono::microseconds kRemembered{500};

  /// The calling thread is at work until the guard goes.
  class Guard {
   public:
    explicit Guard(Callers& callers) : seen_(callers.mine()) { seen_.store(kInside, kRelaxed); }
    ~Guard() { seen_.store(now_ns(), kRelaxed); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<int64_t>& seen_;
  };

  /// Threads at work or seen within kRemembered, the calling one included while it has a guard.
  int count() const;

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  static constexpr int64_t kInside = INT64_MAX;
  // With more threads than places some count as one: then all cores have long been taken.
  static constexpr size_t kPlaces = 64;

  static int64_t now_ns();
  std::atomic<int64_t>& mine();

  std::array<std::atomic<int64_t>, kPlaces> seen_{};
  std::atomic<size_t> used_{0};  ///< Places that any thread ever had.
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_CALLERS_HPP_
