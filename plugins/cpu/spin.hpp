// SPDX-License-Identifier: Apache-2.0
// Waiting for a few microseconds without giving up the core.
#ifndef CHIPDOCK_PLUGIN_CPU_SPIN_HPP_
#define CHIPDOCK_PLUGIN_CPU_SPIN_HPP_

#include <chrono>

namespace chipdock::plugin::cpu {

/// About what putting a thread to sleep and waking it costs: spinning longer would only burn.
inline constexpr std::chrono::microseconds kSpinTime{30};

inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `done()` or the time is over; returns what done() said last.
template <class Done>
bool spin_until(Done done, std::chrono::nanoseconds limit = kSpinTime) {
  if (done()) return true;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      spin_pause();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SPIN_HPP_
