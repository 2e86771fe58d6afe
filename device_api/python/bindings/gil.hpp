// SPDX-License-Identifier: Apache-2.0
// Letting the GIL go around calls that may wait. CPython ends a thread that asks for the GIL while the
// interpreter is going down, by unwinding it through our destructors, which C++ answers with terminate().
// So the end of chipdock, which comes before that, waits until nobody is out here any more.
#ifndef CHIPDOCK_PYTHON_GIL_HPP_
#define CHIPDOCK_PYTHON_GIL_HPP_

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>

namespace chipdock::python {

/// Lets the GIL go from construction to destruction; holds on to it once chipdock is closing, when every
/// call fails at once anyway.
class NoGilScope {
 public:
  NoGilScope() {
    if (closing_.load()) return;
    outside_.fetch_add(1);
    state_ = PyEval_SaveThread();
  }
  ~NoGilScope() {
    if (state_ == nullptr) return;
    PyEval_RestoreThread(state_);
    outside_.fetch_sub(1);
  }
  NoGilScope(const NoGilScope&) = delete;
  NoGilScope& operator=(const NoGilScope&) = delete;

  /// Called once, with the GIL: runs `end` without it, then waits until all threads are back, 10 s at most.
  static void close(void (*end)());

 private:
  static std::atomic<bool> closing_;
  static std::atomic<uint32_t> outside_;  ///< Threads between the two.
  PyThreadState* state_ = nullptr;
};

}  // namespace chipdock::python

#endif  // CHIPDOCK_PYTHON_GIL_HPP_
