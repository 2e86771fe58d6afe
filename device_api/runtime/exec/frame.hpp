// SPDX-License-Identifier: Apache-2.0
// Everything one run of one specialization needs, laid out ahead so that a step costs one call:
// tensors and launch descs are filled once and only re-pointed when memory moved. Used by one
// thread at a time.
#ifndef CHIPDOCK_RUNTIME_EXEC_FRAME_HPP_
#define CHIPDOCK_RUNTIME_EXEC_FRAME_HPP_

#include <memory>
#include <vector>

#include "exec/segments.hpp"
#include "exec/specialize.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

class Frame {
 public:
  explicit Frame(Specialization& spec);

  /// `inputs` are usable on the plan's device; `is_copy` says which of them go after this run, and
  /// may be empty. Returns the outputs in graph order.
  std::vector<TensorRef> run(const std::vector<TensorRef>& inputs, std::vector<bool> is_copy,
                             const RunOptions& options);
  /// The same while the caller captures `options.stream`: everything is queued, nothing waited for.
  std::vector<TensorRef> run_captured(const std::vector<TensorRef>& inputs,
                                      const RunOptions& options);
  /// After a failed run: work is still queued that uses what the frame holds.
  bool busy() const { return stream_ != nullptr; }
  /// Lets go of what a failed run holds if its work ends within the time (-1: for ever).
  bool settle(int64_t timeout_ns) noexcept;
  /// What was captured, so that somebody else may end it; NULL if nothing was.
  std::unique_ptr<Recording> take_recording();

 private:
  /// A launch made ready: the desc points into this frame.
  struct Launch {
    std::vector<const chipdock_tensor*> inputs, outputs, packed;
    std::vector<chipdock_tensor> packed_tensors;
    chipdock_launch_desc desc{};
  };

  void prepare_launch(size_t run_index);
  void bind(const std::vector<TensorRef>& inputs, const RunOptions& options);
  void allocate(const RunOptions& options);
  void allocate_or_make_room(const RunOptions& options);
  void bind_outputs(const RunOptions& options);
  void point(size_t slot);
  void execute(const RunOptions& options);
  void execute_step(size_t run_index, const RunOptions& options);
  void launch_step(size_t run_index, Stream* stream);
  void execute_copy(const Step& step, const RunOptions& options);
  void execute_dynamic(const RunStep& run, const RunOptions& options);
  std::vector<uint32_t> output_layouts(const Step& step) const;
  std::vector<TensorRef> run_dynamic(const Step& step, const RunStep& run,
                                     const std::vector<const TensorRef*>& inputs,
                                     const RunOptions& options);
  void record(const RunStep& run, const RunOptions& options, int64_t start_ns);
  std::vector<TensorRef> collect(const RunOptions& options);
  void fill_bound(std::vector<TensorRef>& outputs, const std::vector<TensorRef>& given);
  TensorRef copy_captured(const TensorRef& from);
  /// Until the stream is quiet; lets an interrupt through.
  void wait(const RunOptions& options);
  void release();
  void abandon(const RunOptions& options) noexcept;
  /// The error of this run's earlier work that `error` is only a consequence of, or `error`.
  Error first_failure(const Error& error) const;
  /// The error with the node that it came from, if a captured launch failed.
  Error named(const Error& error) const;

  // Segments (frame_capture.cpp).
  void prepare_segments(const RunOptions& options);
  bool capture_segments(const RunOptions& options);
  void renew_stream();
  void capture_segment(Segment& segment);
  /// The caller's memory behind `slot` is meant to be the same in later runs.
  bool stays(int32_t slot, const RunOptions& options) const;
  std::shared_ptr<Buffer> callers_buffer(int32_t slot) const;
  void name_memory(Recording& recording, int32_t slot) const;
  /// Makes the graphs use this run's inputs and outputs; false if they cannot.
  bool follow_memory(const RunOptions& options);
  std::vector<GraphChange> changes_of(const Segment& segment,
                                      const std::vector<int32_t>& moved) const;
  const Segment* segment_at(size_t run_index) const;
  const IrNode* captured_node(uint64_t correlation_id) const;
  /// The elements of a slot as they are now.
  TensorRef tensor(int32_t slot) const;
  const SlotState& state(int32_t slot) const { return spec_.slots[static_cast<size_t>(slot)]; }
  Side side(int32_t slot) const { return state(slot).side; }

  Specialization& spec_;
  Plan& plan_;
  std::vector<chipdock_tensor> tensors_;       ///< By slot, as device memory.
  std::vector<chipdock_tensor> host_tensors_;  ///< By slot, for host inputs (KRN-7).
  std::vector<Launch> launches_;               ///< By run step; empty for dynamic ones and copies.
  std::shared_ptr<Buffer> arenas_[2];
  chipdock_memory* pointed_memory_[2] = {nullptr, nullptr};
  uint64_t pointed_offset_[2] = {0, 0};
  void* pointed_host_[2] = {nullptr, nullptr};
  std::vector<TensorRef> inputs_;
  std::vector<bool> is_copy_;
  std::vector<TensorRef> produced_;  ///< By slot: outputs and dynamic values of this run.
  std::shared_ptr<Stream> stream_;   ///< Of this run; NULL = inline.
  std::shared_ptr<Stream> own_stream_;
  std::shared_ptr<const void> held_inputs_;  ///< Of a failed run whose work goes on.
  std::unique_ptr<Recording> recording_;     ///< NULL while nothing is captured.
  bool replays_ = false;                     ///< This run uses it.
  bool ran_before_ = false;
  bool refuses_capture_ = false;
  bool captured_ = false;  ///< The caller captures this run.
  uint64_t before_ = 0;    ///< What this run queues has greater correlation ids.
  uint32_t misses_ = 0;    ///< Runs in a row that the recording did not serve.
};

/// If, Loop and Scan (control_flow.cpp). `inputs` are the node's, then the captured values of each
/// body.
std::vector<TensorRef> run_control(const Plan& plan, const Step& step,
                                   const std::vector<const TensorRef*>& inputs,
                                   const RunOptions& options);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_FRAME_HPP_
