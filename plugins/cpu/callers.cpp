// SPDX-License-Identifier: Apache-2.0
// Places are given out once a thread, for all pools: a thread writes its own and reads the others'.
#include "callers.hpp"

namespace chipdock::plugin::cpu {

int64_t Callers::now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::atomic<int64_t>& Callers::mine() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t place = threads.fetch_add(1, kRelaxed) % kPlaces;
  size_t used = used_.load(kRelaxed);
  while (used <= place && !used_.compare_exchange_weak(used, place + 1, kRelaxed)) {
  }
  return seen_[place];
}

int Callers::count() const {
  const int64_t old = now_ns() - std::chrono::nanoseconds(kRemembered).count();
  const size_t used = used_.load(kRelaxed);
  int found = 0;
  for (size_t place = 0; place < used; ++place) found += seen_[place].load(kRelaxed) > old ? 1 : 0;
  return found;
}

}  // namespace chipdock::plugin::cpu
