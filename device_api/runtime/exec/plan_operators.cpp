// SPDX-License-Identifier: Apache-2.0
// What plan compilation asks about operators before it places nodes: which the host knows, which
// fused nodes a kernel accepts; and how it tells of those that nothing can run.
#include <algorithm>
#include <utility>

#include "exec/check_bodies.hpp"
#include "exec/node_runner.hpp"
#include "exec/plan_compiler.hpp"
#include "host_ops/host_op.hpp"

namespace chipdock::runtime {

void PlanCompiler::find_operators() {
  ops_.resize(graph().nodes.size(), nullptr);
  host_ops_.resize(graph().nodes.size(), nullptr);
  for (size_t i = 0; i < graph().nodes.size(); ++i) {
    const IrNode& node = *graph().nodes[i];
    if (is_control(node)) {
      check_bodies(node);
      continue;
    }
    const Op* op = find_op(node.domain, node.op, node.since_version);
    // Dims alone are the same for strings: Shape and Size need no operator of their own.
    const bool dims_only = op != nullptr && (op->flags & kOpShapeOnly) != 0;
    if (dims_only || !touches_host_values(node)) ops_[i] = op;
    if (ops_[i] == nullptr) {
      host_ops_[i] = find_host_op(node.domain, node.op, node.since_version);
    }
    if (ops_[i] == nullptr && host_ops_[i] == nullptr && op != nullptr) {
      missing_.push_back({describe(node), node.op + "-" + std::to_string(node.since_version) +
                                              ": chipdock does not know it for strings, sequences "
                                              "or optionals"});
    } else if (ops_[i] == nullptr && host_ops_[i] == nullptr) {
      missing_.push_back({describe(node), node.op + "-" + std::to_string(node.since_version) +
                                              ": chipdock does not know this operator"});
    } else {
      check_bodies(node);
    }
  }
  if (!missing_.empty()) report_missing();
}

/// Nodes that stand for others stay if a kernel of the device accepts them as they are: one that
/// wants to see shapes first could still refuse, when it is too late for the others.
void PlanCompiler::settle_fused() {
  std::vector<std::shared_ptr<IrNode>> settled;
  bool refused = false;
  for (const auto& node : graph().nodes) {
    if (node->stands_for.empty() || choose(*node, Side::kDevice).instance != nullptr) {
      settled.push_back(node);
    } else {
      settled.insert(settled.end(), node->stands_for.begin(), node->stands_for.end());
      refused = true;
    }
  }
  if (!refused) return;
  auto copy = std::make_shared<IrGraph>(graph());
  copy->nodes = std::move(settled);
  plan_->graph_ = std::move(copy);
  plan_->report_.clear();
  folded_.clear();
  ops_.clear();
  host_ops_.clear();
  find_operators();
  fold_constants();
}

void PlanCompiler::report_missing() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;  // first seen first
  for (const auto& [node, reason] : missing_) {
    auto group = std::find_if(by_reason.begin(), by_reason.end(),
                              [&](const auto& known) { return known.first == reason; });
    if (group == by_reason.end()) group = by_reason.insert(group, {reason, {}});
    group->second.push_back(node);
  }
  std::string text;
  const size_t shown = std::min<size_t>(by_reason.size(), 8);
  for (size_t i = 0; i < shown; ++i) {
    const auto& [reason, nodes] = by_reason[i];
    text += (i == 0 ? "" : "; ") + nodes[0];
    if (nodes.size() > 1) text += " and " + std::to_string(nodes.size() - 1) + " more";
    text += " (" + reason + ")";
  }
  if (by_reason.size() > shown) {
    text += "; and nodes for " + std::to_string(by_reason.size() - shown) + " more reasons";
  }
  raise(CHIPDOCK_UNSUPPORTED, missing_.size(), " of ", node_count_, " nodes cannot run on ",
        plan_->device_->name(), ": ", text,
        fallback_helps_
            ? "; load with fallback=\"allow\" to run nodes without a kernel on the CPU plugin"
            : "");
}

}  // namespace chipdock::runtime
