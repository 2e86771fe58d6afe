// SPDX-License-Identifier: Apache-2.0
// Whether a node has the bodies that its operator wants, by name, and whether their inputs and
// outputs fit its own. Running If, Loop and Scan relies on it.
#include "exec/check_bodies.hpp"

#include <algorithm>

#include "exec/kernel_registry.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) raise(CHIPDOCK_INVALID_ARGUMENT, parts...);
}

std::string names_of(const std::vector<IrSubgraph>& bodies) {
  std::string text;
  for (const IrSubgraph& body : bodies) text += (text.empty() ? "" : ", ") + body.attribute;
  return "[" + text + "]";
}

void check_names(const IrNode& node, const std::vector<std::string>& wanted) {
  bool good = node.subgraphs.size() == wanted.size();
  for (const std::string& name : wanted) {
    good = good && std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                               [&](const IrSubgraph& body) { return body.attribute == name; });
  }
  require(good, describe(node), " has the bodies ", names_of(node.subgraphs), ", it must have ",
          wanted.size() == 2 ? "one then_branch and one else_branch" : "one, called body");
}

/// Inputs from `first` on are passed to a body and must be there.
void check_given(const IrNode& node, size_t first) {
  for (size_t i = first; i < node.inputs.size(); ++i) {
    require(node.inputs[i] >= 0, describe(node), " needs input ", i, ", it is not given");
  }
}

/// `skipped` are outputs of the body that are none of the node.
void check_body(const IrNode& node, const IrSubgraph& body, size_t inputs, size_t outputs,
                size_t skipped) {
  const size_t all = body.graph->inputs.size();
  const size_t captured = body.captures.size();
  require(all == inputs + captured, "'", body.attribute, "' of ", describe(node), " has ",
          all - std::min(all, captured), " inputs, ", inputs, " are passed to it");
  const size_t made = body.graph->outputs.size();
  require(made >= outputs + skipped, "'", body.attribute, "' of ", describe(node), " has ", made,
          " outputs, at least ", outputs + skipped, " are needed");
  require(node.outputs.size() + skipped <= made, describe(node), " has ", node.outputs.size(),
          " outputs, '", body.attribute, "' makes ", made - skipped, " of them");
}

void check_if(const IrNode& node) {
  check_names(node, {"then_branch", "else_branch"});
  require(node.inputs.size() == 1, describe(node), " has ", node.inputs.size(),
          " inputs, it must have 1, the condition");
  check_given(node, 0);
  for (const IrSubgraph& body : node.subgraphs) check_body(node, body, 0, 1, 0);
}

void check_loop(const IrNode& node) {
  check_names(node, {"body"});
  require(node.inputs.size() >= 2, describe(node), " has ", node.inputs.size(),
          " inputs, it must have 2, trip count and condition, and one for each carried value");
  check_given(node, 2);
  check_body(node, node.subgraphs[0], node.inputs.size(), node.inputs.size() - 2, 1);
}

void check_scan(const IrNode& node) {
  check_names(node, {"body"});
  const size_t first = node.since_version < 9 ? 1 : 0;  // of Scan-8, input 0 has the lengths
  require(node.inputs.size() > first, describe(node), " has ", node.inputs.size(),
          " inputs, it must have at least ", first + 1);
  check_given(node, first);
  const NodeDescription description(node, {}, {}, 0);
  const int64_t scanned = kit::NodeView(description.get()).integer("num_scan_inputs", 0);
  const size_t passed = node.inputs.size() - first;
  require(scanned >= 1 && static_cast<uint64_t>(scanned) <= passed, describe(node),
          " has num_scan_inputs=", scanned, ", allowed are 1 to ", passed);
  check_body(node, node.subgraphs[0], passed, passed - static_cast<size_t>(scanned), 0);
}

}  // namespace

bool is_control(const IrNode& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
}

void check_bodies(const IrNode& node) {
  if (!is_control(node)) {
    require(node.subgraphs.empty(), describe(node), " has the bodies ", names_of(node.subgraphs),
            ", only If, Loop and Scan have any");
  } else if (node.op == "If") {
    check_if(node);
  } else if (node.op == "Loop") {
    check_loop(node);
  } else {
    check_scan(node);
  }
}

}  // namespace chipdock::runtime
