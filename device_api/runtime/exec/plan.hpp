// SPDX-License-Identifier: Apache-2.0
// A model made ready for one device: constants folded and placed, every node given a kernel on the
// device or on the host, copies between the two made explicit. A plan is immutable and serves every
// shape; what depends on shapes is in Specialization (specialize.hpp), what depends on one run in
// Frame (frame.hpp).
//
// A slot is a value on one side. Where device and host are the same device a value has one slot.
#ifndef CHIPDOCK_RUNTIME_EXEC_PLAN_HPP_
#define CHIPDOCK_RUNTIME_EXEC_PLAN_HPP_

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/constants.hpp"
#include "exec/graph_ir.hpp"
#include "exec/interrupt.hpp"
#include "exec/kernel_registry.hpp"
#include "exec/tensor_ref.hpp"

namespace chipdock::runtime {

class Frame;
class Profiler;
class Plan;
struct HostOp;
struct Recording;
struct Specialization;

enum class Fallback { kError, kWarn, kAllow };

/// Whether capturable segments are captured and replayed.
enum class CapturePolicy {
  kAuto,  ///< On devices that do not say CHIPDOCK_DEVICE_PREFERS_INLINE.
  kOff,
  kOn  ///< On every device that has graphs of its own.
};

struct PlanOptions {
  Fallback fallback = Fallback::kError;
  uint32_t max_threads = 0;   ///< 0 = as the device was opened.
  uint64_t memory_limit = 0;  ///< Bytes of weights, activations and workspace; 0 = none.
  int32_t math_mode = CHIPDOCK_MATH_STRICT;
  bool deterministic = false;
  size_t cached_signatures = 32;  ///< Bound of the cache of specializations.
  CapturePolicy capture = CapturePolicy::kAuto;
  bool layouts = true;  ///< Whether values may be in private layouts of the device.
};

enum class Side : uint8_t { kDevice, kHost };

/// Why a node runs where it runs.
enum class Placement : uint8_t {
  kDevice,    ///< A kernel of the device.
  kFallback,  ///< The device has none: the host's kernel, with copies.
  kShape,     ///< Computes shapes: belongs on the host.
  kView,      ///< No work: another shape of the same memory.
  kFolded,    ///< Computed at load from constants.
  kControl,   ///< If, Loop, Scan: driven by the host.
  kHost       ///< Strings, sequences, optionals: values that no device can hold.
};

struct Slot {
  int32_t value = -1;
  Side side = Side::kDevice;
};

enum class StepKind : uint8_t { kLaunch, kView, kShapeOf, kCopy, kControl, kHost };

struct Step {
  StepKind kind = StepKind::kLaunch;
  const IrNode* node = nullptr;  ///< NULL for kCopy.
  const Op* op = nullptr;
  const HostOp* host_op = nullptr;  ///< kHost.
  Side side = Side::kDevice;
  std::vector<int32_t> inputs;   ///< Slots, -1 = not given.
  std::vector<int32_t> outputs;  ///< Slots, -1 = not wanted.
  uint64_t host_inputs = 0;      ///< Bit k: input k is handed over in host memory.
  uint64_t host_outputs = 0;
  std::shared_ptr<KernelInstance> instance;  ///< NULL if the kernel decides when shapes are known.
  std::vector<std::shared_ptr<Buffer>> packed;  ///< Per input, NULL where not; empty if none is.
  std::vector<std::shared_ptr<Plan>> bodies;    ///< kControl: one per subgraph, in node order.
};

/// One line of explain().
struct NodeReport {
  std::string name, op, kernel, reason;
  int32_t since_version = 0;
  Placement placement = Placement::kDevice;
  std::string device;
  uint32_t layout = 0;  ///< The private layout that the node works in, or brings values in or out.
};

/// A captured segment, as explain() tells it.
struct SegmentReport {
  std::vector<int64_t> key;  ///< As Specialization::key.
  std::vector<const IrNode*> nodes;
};

struct RunOptions {
  std::shared_ptr<Stream> stream;  ///< NULL: inline, or a stream of the plan's own.
  std::vector<TensorRef>* bound_outputs = nullptr;  ///< buffer NULL = not bound.
  Profiler* profiler = nullptr;
  const InterruptCheck* interrupt = nullptr;
  uint64_t seed = 0;
  bool seeded = false;  ///< The caller chose the seed: it stands for each launch of a captured run.
  /// Called when a run ends before its work has: what keeps borrowed inputs until then.
  const std::function<std::shared_ptr<const void>()>* keep_inputs = nullptr;
};

class Plan : public std::enable_shared_from_this<Plan> {
 public:
  /// `host` is an unmasked CPU device that runs shape work and fallbacks; it may be `device`
  /// itself. Throws Error: UNSUPPORTED naming every operator without a kernel, INVALID_ARGUMENT for
  /// a bad model.
  static std::shared_ptr<Plan> compile(std::shared_ptr<IrGraph> graph,
                                       std::shared_ptr<Device> device, std::shared_ptr<Device> host,
                                       const PlanOptions& options);
  ~Plan();

  /// Runs the model; many threads may call at once. Inputs in graph order, on any device.
  std::vector<TensorRef> run(const std::vector<TensorRef>& inputs, const RunOptions& options);

  const IrGraph& graph() const { return *graph_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  const std::shared_ptr<Device>& host() const { return host_; }
  const PlanOptions& options() const { return options_; }
  const std::vector<NodeReport>& report() const { return report_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Slot>& slots() const { return slots_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  std::vector<SegmentReport> segments();  ///< Most recently used signature first.
  bool same_device() const { return device_ == host_; }
  Device& side_device(Side side) const { return side == Side::kDevice ? *device_ : *host_; }
  const KernelRegistry& kernels(Side side) const {
    return side == Side::kHost && host_kernels_ != nullptr ? *host_kernels_ : *device_kernels_;
  }

 private:
  friend class PlanCompiler;
  friend class Specializer;
  friend class Frame;
  friend struct Specialization;
  Plan();

  std::shared_ptr<Specialization> specialization(const std::vector<TensorRef>& inputs);
  /// Under the lock: the one of these shapes, now the most recently used, or NULL.
  std::shared_ptr<Specialization> find_specialization(const std::vector<TensorRef>& inputs);
  /// Under the lock: takes in a new one; returns the one that had to go, or NULL.
  std::shared_ptr<Specialization> keep_specialization(std::shared_ptr<Specialization> spec);
  /// Frees what runs that failed left behind, once their work has ended.
  void sweep();

  // Capture (plan_capture.cpp).
  void decide_capture();
  bool captures() const { return captures_; }
  /// Counts an arena that a recording keeps; NULL if there is no room for it.
  std::shared_ptr<void> pin(uint64_t bytes);
  /// Before an arena is allocated: recordings give way where a memory limit is set.
  void make_room(uint64_t bytes);
  /// Ends all recordings that no run uses; false if there are none.
  bool drop_recordings();
  void check_capturable(const Specialization& spec, const std::vector<TensorRef>& inputs,
                        const RunOptions& options) const;
  std::vector<TensorRef> run_captured(const std::shared_ptr<Specialization>& spec,
                                      const std::vector<TensorRef>& inputs,
                                      const RunOptions& options);

  std::shared_ptr<IrGraph> graph_;
  std::shared_ptr<Device> device_, host_;
  PlanOptions options_;
  std::unique_ptr<KernelRegistry> device_kernels_, host_kernels_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<int32_t> input_slots_;
  std::vector<int32_t> output_slots_;
  std::map<int32_t, TensorRef> constant_slots_;  ///< Slots that hold a constant.
  std::vector<NodeReport> report_;
  uint64_t weight_bytes_ = 0;

  std::mutex mutex_;                                            ///< Guards the cache below.
  std::list<std::shared_ptr<Specialization>> specializations_;  ///< Most recently used first.
  /// Where each of them is, by a hash of its key.
  std::unordered_multimap<uint64_t, std::list<std::shared_ptr<Specialization>>::iterator> by_key_;
  /// Frames of failed runs whose work goes on.
  std::vector<std::pair<std::shared_ptr<Specialization>, std::unique_ptr<Frame>>> busy_;
  std::atomic<size_t> busy_count_{0};
  std::atomic<size_t> recordings_{0};
  std::atomic<uint64_t> pinned_bytes_{0};
  bool captures_ = false;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_PLAN_HPP_
