// SPDX-License-Identifier: Apache-2.0
// Private layouts between nodes: what kernels offer is asked, regions that pay are taken, and the
// graph is rewritten, so that values in a layout are values of their own and Reorder nodes stand
// where one becomes the other. The host knows nothing of what a layout means. docs/layouts.md
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "exec/plan_compiler.hpp"
#include "kernel_rules.hpp"

namespace chipdock::runtime {

class PlanCompiler::LayoutPass {
 public:
  explicit LayoutPass(PlanCompiler& compiler)
      : compiler_(compiler),
        graph_(compiler.graph()),
        registry_(compiler.kernels(Side::kDevice)),
        live_(compiler.live_nodes()) {}

  void run() {
    find_eligible();
    std::vector<bool> counted = live_;
    for (size_t i = 0; i < counted.size(); ++i) counted[i] = live_[i] && !reads_dims_only(i);
    for (const uint32_t layout : registry_.layouts()) {
      for (const LayoutRegion& region : find_layout_regions(graph_, counted, offers(layout))) {
        if (region.pays()) settle(region, layout);
      }
    }
    if (!members_.empty()) rewrite();
  }

 private:
  struct Member {
    uint32_t layout = 0;
    LayoutForm form;
    KernelChoice choice;
  };
  enum class Way : uint8_t { kIn, kOut };
  using ReorderKey = std::tuple<int32_t, uint32_t, Way>;

  /// Nodes of the device that do work on data. What follows from shapes alone is known before a run
  /// as long as nothing private is between.
  void find_eligible() {
    std::vector<bool> from_shapes(graph_.values.size(), false);
    eligible_.resize(graph_.nodes.size(), false);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IrNode& node = *graph_.nodes[i];
      const Op* op = compiler_.ops_[i];
      if (op == nullptr || compiler_.folded_[i]) continue;
      constexpr uint32_t kNoWork = kOpView | kOpShapeOnly | kOpDataDependent | kOpHostOnly;
      const bool shapes =
          (op->flags & kOpShapeOnly) != 0 ||
          std::all_of(node.inputs.begin(), node.inputs.end(), [&](int32_t v) {
            return v < 0 || compiler_.is_constant(v) || from_shapes[static_cast<size_t>(v)];
          });
      eligible_[i] = live_[i] && !shapes && (op->flags & kNoWork) == 0 && node.subgraphs.empty();
      for (const int32_t v : node.outputs) {
        if (v >= 0) from_shapes[static_cast<size_t>(v)] = shapes;
      }
    }
  }

  /// Shape and Size: a value in a layout serves them as it is.
  bool reads_dims_only(size_t index) const {
    const Op* op = compiler_.ops_[index];
    return op != nullptr && (op->flags & kOpShapeOnly) != 0;
  }

  LayoutOffers offers(uint32_t layout) const {
    LayoutOffers out(graph_.nodes.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (eligible_[i] && members_.count(i) == 0) out[i] = forms(i, layout);
    }
    return out;
  }

  std::vector<LayoutForm> forms(size_t index, uint32_t layout) const {
    const IrNode& node = *graph_.nodes[index];
    std::vector<LayoutForm> out;
    for (const LayoutForm& form : possible_forms(index, layout)) {
      const NodeDescription described = compiler_.describe_node(node, &form, layout);
      const std::optional<double> score = registry_.best_score(described.get());
      if (!score.has_value()) continue;
      out.push_back(form);
      out.back().score = *score;
    }
    if (out.empty()) return out;
    const std::optional<double> plain = registry_.best_score(compiler_.describe_node(node).get());
    for (LayoutForm& form : out) form.wants = !plain.has_value() || form.score > *plain;
    const auto size = [](const LayoutForm& form) {
      return std::count(form.inputs.begin(), form.inputs.end(), true) +
             std::count(form.outputs.begin(), form.outputs.end(), true);
    };
    std::stable_sort(out.begin(), out.end(), [&](const LayoutForm& a, const LayoutForm& b) {
      return a.score != b.score ? a.score > b.score : size(a) > size(b);
    });
    return out;
  }

  /// What the rules of each kernel let be in the layout: all of it, the inputs, the outputs.
  std::vector<LayoutForm> possible_forms(size_t index, uint32_t layout) const {
    const IrNode& node = *graph_.nodes[index];
    std::vector<LayoutForm> out;
    const auto add = [&](LayoutForm form) {
      const auto any = [](const std::vector<bool>& side) {
        return std::find(side.begin(), side.end(), true) != side.end();
      };
      const bool known = std::any_of(out.begin(), out.end(), [&](const LayoutForm& other) {
        return other.inputs == form.inputs && other.outputs == form.outputs;
      });
      if (!known && (any(form.inputs) || any(form.outputs))) out.push_back(std::move(form));
    };
    for (const chipdock_kernel* kernel : registry_.kernels_for(node)) {
      if (kernel->layout_rule_count == 0) continue;
      LayoutForm whole;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const int32_t v = node.inputs[i];
        whole.inputs.push_back(v >= 0 && !compiler_.is_constant(v) &&
                               !has_bit(compiler_.ops_[index]->host_inputs, i) &&
                               admits_layout(*kernel, true, i, layout));
      }
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        whole.outputs.push_back(node.outputs[i] >= 0 && admits_layout(*kernel, false, i, layout));
      }
      LayoutForm last = whole, first = whole;
      last.outputs.assign(node.outputs.size(), false);
      first.inputs.assign(node.inputs.size(), false);
      add(std::move(whole));
      add(std::move(last));
      add(std::move(first));
    }
    return out;
  }

  /// Makes the kernels of a region. If one is refused after all, the region stays as it was.
  void settle(const LayoutRegion& region, uint32_t layout) {
    std::map<size_t, Member> members;
    std::map<ReorderKey, KernelChoice> reorders;
    for (const LayoutRegion::Member& member : region.members) {
      const NodeDescription described =
          compiler_.describe_node(*graph_.nodes[member.node], &member.form, layout);
      KernelChoice choice = registry_.choose(described.get());
      if (choice.instance == nullptr) return;
      members[member.node] = {layout, member.form, std::move(choice)};
    }
    for (const Way way : {Way::kIn, Way::kOut}) {
      for (const int32_t value : way == Way::kIn ? region.entering : region.leaving) {
        const LayoutForm form{{way == Way::kOut}, {way == Way::kIn}};
        const auto node = reorder_node(value, value, layout, way);
        KernelChoice choice = registry_.choose(compiler_.describe_node(*node, &form, layout).get());
        if (choice.instance == nullptr) return;
        reorders[{value, layout, way}] = std::move(choice);
      }
    }
    members_.merge(members);
    reorders_.merge(reorders);
  }

  std::shared_ptr<IrNode> reorder_node(int32_t from, int32_t to, uint32_t layout, Way way) const {
    auto node = std::make_shared<IrNode>();
    node->name = graph_.values[static_cast<size_t>(from)].name +
                 (way == Way::kIn ? " into layout " : " out of layout ") + std::to_string(layout);
    node->domain = "ai.chipdock";
    node->op = "Reorder";
    node->inputs = {from};
    node->outputs = {to};
    return node;
  }

  // Rewriting. A value of the graph keeps its number as long as it is in no layout.

  void rewrite() {
    made_ = std::make_shared<IrGraph>(graph_);
    made_->nodes.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::shared_ptr<IrNode>& node = graph_.nodes[i];
      const auto member = members_.find(i);
      if (member != members_.end()) {
        add_member(*node, member->second, compiler_.ops_[i]);
        continue;
      }
      if (reads_dims_only(i)) {
        add_dims_reader(node, i);
        continue;
      }
      if (live_[i]) {
        for (const int32_t v : node->inputs) need_plain(v);
        for (const IrSubgraph& body : node->subgraphs) {
          for (const auto& [outer, inner] : body.captures) need_plain(outer);
        }
      }
      add_node(node, compiler_.ops_[i], compiler_.host_ops_[i], compiler_.folded_[i]);
    }
    for (const int32_t v : graph_.outputs) need_plain(v);
    compiler_.plan_->graph_ = std::move(made_);
    compiler_.ops_ = std::move(ops_);
    compiler_.host_ops_ = std::move(host_ops_);
    compiler_.folded_ = std::move(folded_);
  }

  void add_node(std::shared_ptr<IrNode> node, const Op* op, const HostOp* host_op, bool folded) {
    made_->nodes.push_back(std::move(node));
    ops_.push_back(op);
    host_ops_.push_back(host_op);
    folded_.push_back(folded);
  }

  /// Reads what there is by now, in whatever layout.
  void add_dims_reader(const std::shared_ptr<IrNode>& original, size_t index) {
    std::shared_ptr<IrNode> node = original;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const auto written = written_in_.find(node->inputs[i]);
      if (written == written_in_.end()) continue;
      if (node == original) node = std::make_shared<IrNode>(*original);
      node->inputs[i] = form_of(node->inputs[i], written->second);
    }
    add_node(std::move(node), compiler_.ops_[index], nullptr, compiler_.folded_[index]);
  }

  void add_member(const IrNode& original, Member& member, const Op* op) {
    auto node = std::make_shared<IrNode>(original);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const int32_t v = node->inputs[i];
      if (member.form.inputs[i]) {
        node->inputs[i] = need_in_layout(v, member.layout);
      } else {
        need_plain(v);
      }
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (!member.form.outputs[i]) continue;
      written_in_[node->outputs[i]] = member.layout;
      node->outputs[i] = form_of(node->outputs[i], member.layout);
    }
    settled(*node, member.layout, std::move(member.choice));
    add_node(std::move(node), op, nullptr, false);
  }

  void settled(const IrNode& node, uint32_t layout, KernelChoice choice) {
    compiler_.settled_[&node] = {layout, std::move(choice)};
  }

  /// The number of a value's form in a layout.
  int32_t form_of(int32_t value, uint32_t layout) {
    const auto [place, fresh] =
        forms_.try_emplace({value, layout}, static_cast<int32_t>(made_->values.size()));
    if (fresh) {
      IrValue form = made_->values[static_cast<size_t>(value)];
      form.layout = layout;
      made_->values.push_back(std::move(form));
    }
    return place->second;
  }

  /// The value in the layout, computed by now.
  int32_t need_in_layout(int32_t value, uint32_t layout) {
    const bool there = forms_.count({value, layout}) != 0;
    const int32_t form = form_of(value, layout);
    if (there) return form;
    need_plain(value);
    add_reorder(value, value, form, layout, Way::kIn);
    return form;
  }

  /// Sees to it that the value is computed outside of layouts by now.
  void need_plain(int32_t value) {
    const auto written = written_in_.find(value);
    if (written == written_in_.end()) return;
    const uint32_t layout = written->second;
    written_in_.erase(written);
    add_reorder(value, form_of(value, layout), value, layout, Way::kOut);
  }

  void add_reorder(int32_t value, int32_t from, int32_t to, uint32_t layout, Way way) {
    std::shared_ptr<IrNode> node = reorder_node(value, value, layout, way);
    node->inputs = {from};
    node->outputs = {to};
    settled(*node, layout, std::move(reorders_.at({value, layout, way})));
    add_node(std::move(node), find_op("ai.chipdock", "Reorder", 1), nullptr, false);
  }

  PlanCompiler& compiler_;
  const IrGraph& graph_;  ///< As it was.
  const KernelRegistry& registry_;
  std::vector<bool> live_, eligible_;  ///< By node.
  std::map<size_t, Member> members_;   ///< By node: those of all regions that are taken.
  std::map<ReorderKey, KernelChoice> reorders_;

  std::shared_ptr<IrGraph> made_;
  std::vector<const Op*> ops_;
  std::vector<const HostOp*> host_ops_;
  std::vector<bool> folded_;
  std::map<std::pair<int32_t, uint32_t>, int32_t> forms_;
  std::map<int32_t, uint32_t> written_in_;  ///< Values that so far exist in this layout alone.
};

void PlanCompiler::settle_layouts() {
  if (!plan_->options_.layouts || kernels(Side::kDevice).layouts().empty()) return;
  LayoutPass(*this).run();
}

}  // namespace chipdock::runtime
