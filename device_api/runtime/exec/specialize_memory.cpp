// SPDX-License-Identifier: Apache-2.0
// Where the values of one signature lie: lifetimes of slots and workspaces, and the arenas of the two
// sides.
#include <algorithm>

#include "exec/specialize.hpp"

namespace chipdock::runtime {
namespace {

/// The largest sum of live activations if none had a private layout.
uint64_t plain_lower_bound(const std::vector<SlotState>& slots,
                           const std::vector<Lifetime>& lifetimes,
                           const std::vector<int32_t>& owners) {
  std::vector<Lifetime> plain = lifetimes;
  for (size_t i = 0; i < plain.size(); ++i)
    plain[i].bytes = slots[static_cast<size_t>(owners[i])].plain_bytes();
  return live_peak(plain);
}

}  // namespace

void Specialization::lay_out_memory() {
  const auto slot = [this](int32_t s) -> SlotState& { return slots[static_cast<size_t>(s)]; };
  const auto count = static_cast<int32_t>(slots.size());
  std::vector<int32_t> first(static_cast<size_t>(count), -1), last(static_cast<size_t>(count), -1);
  std::vector<int32_t> last_read(static_cast<size_t>(count), -1);
  for (size_t r = 0; r < steps.size(); ++r) {
    const Step& step = *steps[r].step;
    auto touch = [&](int32_t s) {
      if (s < 0) return;
      last_read[static_cast<size_t>(s)] = static_cast<int32_t>(r);
      const auto root = static_cast<size_t>(slot(s).root);
      if (first[root] < 0) first[root] = static_cast<int32_t>(r);
      last[root] = static_cast<int32_t>(r);
    };
    for (int32_t s : step.outputs) touch(s);
    for (int32_t s : step.inputs) touch(s);
  }
  for (int32_t s = 0; s < count; ++s) {
    const int32_t at = last_read[static_cast<size_t>(s)];
    const auto& outputs = plan.output_slots_;
    if (slot(s).kind == SlotKind::kDynamic && at >= 0 &&
        std::count(outputs.begin(), outputs.end(), s) == 0) {
      steps[static_cast<size_t>(at)].release.push_back(s);
    }
  }
  for (const Side side : {Side::kDevice, Side::kHost}) {
    std::vector<Lifetime> lifetimes;
    std::vector<int32_t> owners;  // slot, or -1 - run step for a workspace
    for (int32_t s = 0; s < count; ++s) {
      const SlotState& state = slot(s);
      if (state.kind != SlotKind::kArena || state.root != s || state.bytes() == 0) continue;
      if (state.side != side || first[static_cast<size_t>(s)] < 0) continue;
      lifetimes.push_back(
          {state.bytes(), first[static_cast<size_t>(s)], last[static_cast<size_t>(s)]});
      owners.push_back(s);
    }
    if (side == Side::kDevice) {
      std::vector<Lifetime> activations = lifetimes;
      const MemoryPlan alone = plan_memory(activations, plan.side_device(side).alignment());
      activation_bytes = alone.arena_bytes;
      activation_lower_bound = alone.lower_bound;
      layout_padding = alone.lower_bound - plain_lower_bound(slots, lifetimes, owners);
    }
    for (size_t r = 0; r < steps.size(); ++r) {
      const RunStep& run = steps[r];
      if (run.workspace_bytes == 0 || run.step->side != side) continue;
      lifetimes.push_back({run.workspace_bytes, static_cast<int32_t>(r), static_cast<int32_t>(r)});
      owners.push_back(-1 - static_cast<int32_t>(r));
    }
    memory[static_cast<size_t>(side)] = plan_memory(lifetimes, plan.side_device(side).alignment());
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] >= 0) {
        slot(owners[i]).offset = lifetimes[i].offset;
      } else {
        steps[static_cast<size_t>(-1 - owners[i])].workspace_offset = lifetimes[i].offset;
      }
    }
  }
  for (SlotState& state : slots) state.offset = slot(state.root).offset;
  const uint64_t limit = plan.options_.memory_limit;
  const uint64_t needed = plan.weight_bytes_ + memory[0].arena_bytes;
  if (limit != 0 && needed > limit) {
    raise(CHIPDOCK_OUT_OF_MEMORY, "these input shapes need ", needed, " bytes on ",
          plan.device_->name(), " (weights ", plan.weight_bytes_, ", activations and workspace ",
          memory[0].arena_bytes, "), memory_limit allows ", limit);
  }
}

}  // namespace chipdock::runtime
