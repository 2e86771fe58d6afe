// SPDX-License-Identifier: Apache-2.0
// The passes of Plan::compile; see plan_compiler.cpp. Used once and thrown away.
#ifndef CHIPDOCK_RUNTIME_EXEC_PLAN_COMPILER_HPP_
#define CHIPDOCK_RUNTIME_EXEC_PLAN_COMPILER_HPP_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/layout_regions.hpp"
#include "exec/plan.hpp"

namespace chipdock::runtime {

class PlanCompiler {
 public:
  PlanCompiler(std::shared_ptr<IrGraph> graph, std::shared_ptr<Device> device,
               std::shared_ptr<Device> host, const PlanOptions& options);
  std::shared_ptr<Plan> compile();

 private:
  /// All passes up to placement; `missing_` has what nothing can run.
  void place_all();
  /// What needs every node to have a place.
  std::shared_ptr<Plan> finish();
  // Passes, in order.
  void find_operators();
  void fold_constants();
  void settle_fused();
  void hand_down_constants();
  void settle_layouts();
  void find_needed();
  void place(size_t index);
  void place_control(IrNode& node);
  void place_host(const IrNode& node, const HostOp& op);
  void place_outputs();
  void upload_constants();
  void drop_constants();

  const IrGraph& graph() const { return *plan_->graph_; }
  const KernelRegistry& kernels(Side side) const { return plan_->kernels(side); }
  /// A value that only the host can hold: strings, a sequence, an optional.
  bool is_host_value(int32_t value) const;
  bool touches_host_values(const IrNode& node) const;
  [[noreturn]] void report_missing() const;
  bool fold(const IrNode& node, const Op& op);
  bool belongs_to_host(const IrNode& node, const Op& op) const;
  /// The nodes whose outputs somebody reads.
  std::vector<bool> live_nodes() const;
  /// What is known of a node; with a form, the arguments that it names are in `layout`.
  NodeDescription describe_node(const IrNode& node, const LayoutForm* form = nullptr,
                                uint32_t layout = 0) const;
  KernelChoice choose(const IrNode& node, Side side) const;
  void pack_inputs(const IrNode& node, Step& step);
  void connect(const IrNode& node, Step& step, Placement placement);
  void add_report(const IrNode& node, Placement placement, std::string kernel, std::string reason,
                  std::string device);

  bool is_constant(int32_t value) const { return constants_.count(value) != 0; }
  TensorRef constant_tensor(int32_t value) const;
  void set_constant(int32_t value, IrConstant constant);
  IrSubgraph with_constants(const IrSubgraph& body) const;
  static void hash(HashedConstant& entry);

  int32_t new_slot(int32_t value, Side side);
  /// The slot of a value on a side; adds a copy step if it is on the other side so far.
  int32_t slot_of(int32_t value, Side side);
  void add_copy(int32_t source, int32_t target);

  std::shared_ptr<Plan> plan_;
  class LayoutPass;
  /// A node that works in a private layout, with its kernel.
  struct Settled {
    uint32_t layout = 0;
    KernelChoice choice;
  };
  std::map<const IrNode*, Settled> settled_;
  std::map<int32_t, HashedConstant> constants_;  ///< By value number, folded ones too.
  std::vector<const Op*> ops_;           ///< By node; NULL for control flow and host operators.
  std::vector<const HostOp*> host_ops_;  ///< By node; NULL for all others.
  std::vector<bool> folded_, needed_;    ///< By node.
  std::vector<bool> host_value_;         ///< By value: computed on the host.
  std::vector<bool> shape_value_;  ///< By value: of them, shapes and what follows from shapes.
  std::vector<bool> keep_source_;  ///< By input of the node at hand.
  std::map<std::pair<int32_t, Side>, int32_t> slot_by_value_;
  std::map<int32_t, int32_t> view_of_;  ///< Slot -> the slot whose memory it shows.
  std::set<int32_t> reads_data_;        ///< Constant slots whose elements are read at run time.
  struct Missing {
    std::string node, reason;
  };
  std::vector<Missing> missing_;  ///< Nodes that nothing can run, those of bodies included.
  bool fallback_helps_ = false;   ///< The host could run some of them.
  bool in_body_ = false;
  size_t node_count_ = 0;  ///< Nodes of this graph and of its bodies.
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_PLAN_COMPILER_HPP_
