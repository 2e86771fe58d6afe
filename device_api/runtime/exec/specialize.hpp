// SPDX-License-Identifier: Apache-2.0
// A plan for one set of input shapes: every dim that can be known is computed once, small values
// that follow from shapes are computed and kept, the steps of a branch that is sure to be taken are
// its own, memory is laid out. What stays open (data-dependent shapes, control flow) is marked
// dynamic and done at run time. Immutable once built, but for its pool of frames.
#ifndef CHIPDOCK_RUNTIME_EXEC_SPECIALIZE_HPP_
#define CHIPDOCK_RUNTIME_EXEC_SPECIALIZE_HPP_

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/memory_plan.hpp"
#include "exec/plan.hpp"

namespace chipdock::runtime {

class Frame;
struct Recording;

/// Where the elements of a slot are.
enum class SlotKind : uint8_t {
  kUnused,    ///< No step of this signature touches it.
  kConstant,  ///< Weight: `fixed`.
  kStatic,    ///< Computed once for this signature: `fixed`.
  kInput,     ///< Given by the caller; `index` says which input.
  kArena,     ///< At `offset` of the side's arena.
  kOutput,    ///< In memory of its own that the caller gets; `index` says which output.
  kDynamic    ///< Known only at run time.
};

struct SlotState {
  SlotKind kind = SlotKind::kUnused;
  Side side = Side::kDevice;
  chipdock_dtype dtype{};
  Dims dims;
  int32_t root = -1;  ///< The slot whose memory this one shows; itself if it is no view.
  int32_t index = -1;
  uint64_t offset = 0;
  uint32_t layout = 0;        ///< As chipdock_tensor.layout.
  uint64_t layout_bytes = 0;  ///< What layout_size said for this signature, if `layout` is not 0.
  TensorRef fixed;

  /// Of the elements alone.
  uint64_t plain_bytes() const {
    uint64_t n = 1;
    for (int64_t d : dims) n *= static_cast<uint64_t>(d);
    return kit::dtype_bytes(dtype, n);
  }
  uint64_t bytes() const { return layout != 0 ? layout_bytes : plain_bytes(); }
};

struct RunStep {
  const Step* step = nullptr;  ///< Of the plan, or of Specialization::branch_steps.
  uint64_t seed_offset = 0;    ///< Streams of random numbers that never meet.
  bool dynamic = false;        ///< Done by the general way at run time.
  std::shared_ptr<KernelInstance> instance;
  uint64_t workspace_bytes = 0;
  uint64_t workspace_offset = 0;
  std::vector<int32_t> release;  ///< Dynamic slots nobody reads after this step.
};

struct Specialization {
  explicit Specialization(Plan& plan);
  ~Specialization();

  Plan& plan;
  std::vector<int64_t> key;      ///< rank and dims of every input.
  std::vector<SlotState> slots;  ///< The plan's, then those of branches that were taken in.
  std::vector<RunStep> steps;
  std::deque<Step> branch_steps;        ///< Steps of branches, on the slots above.
  MemoryPlan memory[2];                 ///< By side; workspaces included.
  uint64_t activation_bytes = 0;        ///< Of memory[0], what activations alone need with sharing.
  uint64_t activation_lower_bound = 0;  ///< Largest sum of live activations.
  uint64_t layout_padding = 0;          ///< Of it, what private layouts take beside the elements.

  /// Once all steps and slots are known (specialize_memory.cpp). Throws OUT_OF_MEMORY if the plan's
  /// limit is too low.
  void lay_out_memory();

  std::unique_ptr<Frame> take_frame();
  void give_frame(std::unique_ptr<Frame> frame);
  /// What an idle frame has captured, taken from it; NULL if none has.
  std::unique_ptr<Recording> take_recording();
  void note_segments(const Recording& recording);
  std::vector<SegmentReport> segments();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;
  std::vector<SegmentReport> segments_;  ///< Of the last recording that is there.
};

/// Builds the specialization for inputs of these dims. Throws Error naming the node whose shapes do
/// not fit.
std::shared_ptr<Specialization> specialize(Plan& plan, const std::vector<Dims>& inputs);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_SPECIALIZE_HPP_
