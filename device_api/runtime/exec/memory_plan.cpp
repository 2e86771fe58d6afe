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

/// Sets offsets in this order, each at the first gap that is large enough; returns the arena.
uint64_t place(std::vector<Lifetime>& lifetimes, const std::vector<size_t>& order,
               uint64_t alignment) {
  uint64_t arena = 0;
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
    arena = std::max(arena, at + item.bytes);
    const auto where =
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](uint64_t offset, size_t p) { return offset < lifetimes[p].offset; });
    placed.insert(where, index);
  }
  return align_up(arena, alignment);
}

/// What to place first. By size is best most of the time; where tensors of one size live for very
/// different times, one of the others leaves fewer gaps.
constexpr bool (*kOrders[])(const Lifetime&, const Lifetime&) = {
    [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; },
    [](const Lifetime& a, const Lifetime& b) {
      const auto area = [](const Lifetime& t) {
        return t.bytes * static_cast<uint64_t>(t.last - t.first + 1);
      };
      return area(a) > area(b);
    },
    [](const Lifetime& a, const Lifetime& b) { return a.last - a.first > b.last - b.first; },
    [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; },
};

}  // namespace

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

MemoryPlan plan_memory(std::vector<Lifetime>& lifetimes, uint64_t alignment) {
  MemoryPlan plan;
  plan.lower_bound = live_peak(lifetimes);
  std::vector<size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::vector<Lifetime> trial = lifetimes;
  bool found = false;
  for (const auto before : kOrders) {
    std::vector<size_t> order = by_size;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return before(lifetimes[a], lifetimes[b]); });
    if (!found) by_size = order;  // the later ones break ties by size
    const uint64_t arena = place(trial, order, alignment);
    if (!found || arena < plan.arena_bytes) {
      plan.arena_bytes = arena;
      lifetimes = trial;
      found = true;
    }
    if (plan.arena_bytes <= plan.lower_bound + plan.lower_bound / 64 + alignment) break;  // enough
  }
  return plan;
}

}  // namespace chipdock::runtime
