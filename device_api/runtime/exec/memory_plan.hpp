// SPDX-License-Identifier: Apache-2.0
// Offsets for tensors that share one arena: two tensors get the same bytes only if their lifetimes
// do not meet. Greedy, first fit, the best of a few orders; see Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference" (2020), section 5.2.
#ifndef CHIPDOCK_RUNTIME_EXEC_MEMORY_PLAN_HPP_
#define CHIPDOCK_RUNTIME_EXEC_MEMORY_PLAN_HPP_

#include <cstdint>
#include <vector>

namespace chipdock::runtime {

struct Lifetime {
  uint64_t bytes = 0;   ///< More than 0.
  int32_t first = 0;    ///< Step that writes it.
  int32_t last = 0;     ///< Last step that reads it; at least `first`.
  uint64_t offset = 0;  ///< Out.
};

struct MemoryPlan {
  uint64_t arena_bytes = 0;
  uint64_t lower_bound = 0;  ///< Largest sum of live bytes at any step: no plan can be smaller.
};

/// The largest sum of bytes that are live at one step.
uint64_t live_peak(const std::vector<Lifetime>& lifetimes);

/// Sets every offset, at multiples of `alignment` (a power of two).
MemoryPlan plan_memory(std::vector<Lifetime>& lifetimes, uint64_t alignment);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_MEMORY_PLAN_HPP_
