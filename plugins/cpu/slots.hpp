// SPDX-License-Identifier: Apache-2.0
// Work that needs scratch memory per thread: chunks are pulled from a counter by at most as many
// slots as there are threads, and each slot owns one part of the workspace.
#ifndef CHIPDOCK_PLUGIN_CPU_SLOTS_HPP_
#define CHIPDOCK_PLUGIN_CPU_SLOTS_HPP_

#include <algorithm>
#include <atomic>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

/// Parts that a workspace needs: one for each thread there is, so that its size does not depend on
/// how many of them one launch may use.
inline int slot_capacity(const Context& context) {
  return context.pool != nullptr ? context.pool->threads() : 1;
}
/// Threads a launch may use.
inline int slot_count(const Context& context) {
  const int threads = slot_capacity(context);
  return context.max_threads > 0 ? std::min(context.max_threads, threads) : threads;
}

/// Calls body(chunk, slot) for each chunk, in any order; at most `slots` run at once.
template <class Body>
void parallel_slots(const Context& context, int64_t chunks, int64_t slots, const Body& body) {
  slots = std::min(slots, chunks);
  if (slots <= 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  context.parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      for (int64_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
        body(chunk, slot);
      }
    }
  });
}

/// Bytes rounded up to whole cache lines, so that parts of a workspace stay aligned.
inline uint64_t padded_bytes(int64_t count, size_t element) {
  return (static_cast<uint64_t>(count) * element + 63) / 64 * 64;
}

/// Hands out the parts of a workspace one after the other.
class Carver {
 public:
  explicit Carver(void* base) : next_(static_cast<char*>(base)) {}
  template <class T>
  T* take(int64_t count) {
    char* at = next_;
    next_ += padded_bytes(count, sizeof(T));
    return reinterpret_cast<T*>(at);
  }

 private:
  char* next_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SLOTS_HPP_
