// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <chrono>
#include <thread>

namespace chipdock::python {

std::atomic<bool> NoGilScope::closing_{false};
std::atomic<uint32_t> NoGilScope::outside_{0};

void NoGilScope::close(void (*end)()) {
  constexpr int kTries = 10'000;  // of a millisecond
  closing_.store(true);
  PyThreadState* state = PyEval_SaveThread();
  end();
  for (int i = 0; i < kTries && outside_.load() != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(state);
}

}  // namespace chipdock::python
