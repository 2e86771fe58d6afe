// SPDX-License-Identifier: Apache-2.0
#include "exec/memory_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace chipdock::runtime {
namespace {

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

uint64_t live_peak(const std::vector<Lifetime>& lifetimes) {
  std::map<int32_t, int64_t> change;  // bytes that begin or end to live at a step
  for (const Lifetime& t : lifetimes) {
    change[t.first] += static_cast<int64_t>(t.bytes);
    change[t.last + 1] -= static_cast<int64_t>(t.bytes);
  }
  int64_t live = 0, peak = 0;
  for (const auto& [step, delta] : change) {
    live += delta;
    peak = std::max(peak, live);
  }
  return static_cast<uint64_t>(peak);
}

}  // namespace

MemoryPlan plan_memory(std::vector<Lifetime>& lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.lower_bound = live_peak(lifetimes);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<size_t> placed;  // kept sorted by offset, so that gaps are found in one walk
  for (const size_t index : order) {
    Lifetime& item = lifetimes[index];
    uint64_t at = 0;
    for (const size_t other_index : placed) {
      const Lifetime& other = lifetimes[other_index];
      if (other.last < item.first || item.last < other.first) continue;
      if (other.offset >= at + item.bytes) break;
      at = std::max(at, align_up(other.offset + other.bytes, alignment));
    }
    item.offset = at;
    plan.arena_bytes = std::max(plan.arena_bytes, at + item.bytes);
    const auto where =
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](uint64_t offset, size_t p) { return offset < lifetimes[p].offset; });
    placed.insert(where, index);
  }
  plan.arena_bytes = align_up(plan.arena_bytes, alignment);
  return plan;
}

}  // namespace chipdock::runtime
