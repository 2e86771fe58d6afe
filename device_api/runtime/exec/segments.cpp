// SPDX-License-Identifier: Apache-2.0
// See segments.hpp.
#include "exec/segments.hpp"

#include <algorithm>

namespace chipdock::runtime {
namespace {

// A graph of one launch saves nothing.
constexpr size_t kShortest = 2;

bool is_fixed(const SlotState& slot) {
  return slot.kind == SlotKind::kConstant || slot.kind == SlotKind::kStatic;
}

bool is_callers(const SlotState& slot) {
  return slot.kind == SlotKind::kInput || slot.kind == SlotKind::kOutput;
}

}  // namespace

const char* why_not_capturable(const Specialization& spec, const RunStep& run, bool same_numbers) {
  const Step& step = *run.step;
  if (step.kind == StepKind::kControl) return "decides on the host what runs";
  if (step.kind == StepKind::kHost) return "has values that only the host can hold";
  if (step.kind == StepKind::kCopy)
    return "copies between device and host, which the run waits for";
  if (run.dynamic) return "has shapes that depend on data";
  if (step.side == Side::kHost) return "runs on the host";
  const chipdock_kernel& kernel = run.instance->kernel();
  if ((kernel.flags & CHIPDOCK_KERNEL_CAPTURABLE) == 0 ||
      (kernel.flags & CHIPDOCK_KERNEL_SYNCHRONIZES) != 0) {
    return "has a kernel that is not CAPTURABLE";
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] >= 0 && has_bit(step.host_outputs, i))
      return "has an output in host memory";
  }
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    // Host inputs are read when captured. [GRA-5]
    if (step.inputs[i] >= 0 && has_bit(step.host_inputs, i) &&
        !is_fixed(spec.slots[static_cast<size_t>(step.inputs[i])])) {
      return "reads on the host an input that is not the same in every run";
    }
  }
  if (!same_numbers && (step.op->flags & kOpRandom) != 0) return "draws other numbers in every run";
  return nullptr;
}

std::vector<Segment> find_segments(const Specialization& spec, size_t longest,
                                   const std::function<bool(int32_t)>& stays) {
  const auto moves = [&](int32_t slot) {
    return slot >= 0 && is_callers(spec.slots[static_cast<size_t>(slot)]) && !stays(slot);
  };
  std::vector<Segment> out;
  Segment open;
  const auto close = [&] {
    if (open.count >= kShortest) out.push_back(open);
    open = Segment{};
  };
  for (size_t r = 0; r < spec.steps.size(); ++r) {
    const RunStep& run = spec.steps[r];
    const Step& step = *run.step;
    if (why_not_capturable(spec, run, false) != nullptr ||
        std::any_of(step.inputs.begin(), step.inputs.end(), moves) ||
        std::any_of(step.outputs.begin(), step.outputs.end(), moves)) {
      close();
      continue;
    }
    if (open.count == longest) close();
    if (open.count == 0) open.first = r;
    ++open.count;
  }
  close();
  return out;
}

}  // namespace chipdock::runtime
