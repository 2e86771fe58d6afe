// SPDX-License-Identifier: Apache-2.0
// Waits of a run that an interrupt (Ctrl-C) can end.
#ifndef CHIPDOCK_RUNTIME_EXEC_INTERRUPT_HPP_
#define CHIPDOCK_RUNTIME_EXEC_INTERRUPT_HPP_

#include <chrono>
#include <functional>

#include "stream.hpp"

namespace chipdock::runtime {

/// Called between steps of a long run and while it waits, at most every 50 ms; throws to end it.
using InterruptCheck = std::function<void()>;

constexpr std::chrono::milliseconds kInterruptInterval{50};

/// Until the stream is quiet; `interrupt` (may be NULL) is let through meanwhile.
inline void wait_for(Stream& stream, const InterruptCheck* interrupt) {
  if (interrupt == nullptr) return stream.sync();
  for (;;) {
    try {
      return stream.sync(std::chrono::nanoseconds(kInterruptInterval).count());
    } catch (const Error& error) {
      if (error.code() != CHIPDOCK_TIMEOUT) throw;
    }
    (*interrupt)();
  }
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_INTERRUPT_HPP_
