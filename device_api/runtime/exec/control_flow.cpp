// SPDX-License-Identifier: Apache-2.0
// If and Loop (scan.cpp has Scan): the host decides, bodies are plans of their own. Values pass by
// reference; a body never returns an input or a weight itself, so nothing is overwritten behind
// anybody's back.
#include "exec/control_flow.hpp"

#include "exec/frame.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

template <class T>
T read_scalar(const TensorRef& tensor, const IrNode& node, const char* what) {
  if (tensor.size() != 1) {
    raise(CHIPDOCK_INVALID_ARGUMENT, what, " of ", describe(node), " has shape ",
          to_string(tensor.dims), ", it must have one element");
  }
  T value{};
  read_tensor(tensor, &value, nullptr);
  return value;
}

std::vector<TensorRef> run_if(const Step& step, const std::vector<const TensorRef*>& inputs,
                              const RunOptions& options) {
  const bool condition = read_scalar<uint8_t>(*inputs[0], *step.node, "condition") != 0;
  size_t at = step.node->inputs.size();  // captures follow the node's own inputs, body by body
  for (size_t b = 0; b < step.bodies.size(); ++b) {
    const IrSubgraph& body = step.node->subgraphs[b];
    const size_t captured = body.captures.size();
    if ((body.attribute == "then_branch") == condition) {
      std::vector<TensorRef> arguments;
      arguments.reserve(captured);
      for (size_t i = 0; i < captured; ++i) arguments.push_back(*inputs[at + i]);
      return step.bodies[b]->run(arguments, body_options(options));
    }
    at += captured;
  }
  raise(CHIPDOCK_INTERNAL, describe(*step.node), " has no ", condition ? "then" : "else",
        "_branch");
}

std::vector<TensorRef> run_loop(const Plan& plan, const Step& step,
                                const std::vector<const TensorRef*>& inputs,
                                const RunOptions& options) {
  const IrNode& node = *step.node;
  Plan& body = *step.bodies[0];
  const int64_t trips =
      inputs[0] != nullptr ? read_scalar<int64_t>(*inputs[0], node, "trip count") : INT64_MAX;
  bool condition = inputs[1] == nullptr || read_scalar<uint8_t>(*inputs[1], node, "condition") != 0;
  const size_t carried = node.inputs.size() - 2;
  std::vector<TensorRef> state;
  state.reserve(carried);
  for (size_t i = 0; i < carried; ++i) state.push_back(*inputs[2 + i]);
  const size_t scanned = body.graph().outputs.size() - 1 - carried;
  std::vector<std::vector<TensorRef>> rows(scanned);
  if (trips <= 0 || !condition) own_state(state, *plan.device());
  InterruptTimer interrupt(options);
  for (int64_t trip = 0; trip < trips && condition; ++trip) {
    std::vector<TensorRef> arguments(2 + carried);
    auto count = std::make_shared<int64_t>(trip);
    const int64_t* count_data = count.get();
    arguments[0] = wrap_host(plan.host(), kit::kInt64, {}, count_data, std::move(count));
    auto flag = std::make_shared<uint8_t>(1);
    const uint8_t* flag_data = flag.get();
    arguments[1] = wrap_host(plan.host(), kit::kBool, {}, flag_data, std::move(flag));
    // The body may declare count and condition with shape [1].
    for (size_t i = 0; i < 2; ++i) {
      const IrValue& formal = body.graph().values[static_cast<size_t>(body.graph().inputs[i])];
      if (formal.rank == 1) arguments[i].dims = {1};
    }
    for (size_t i = 0; i < carried; ++i) arguments[2 + i] = state[i];
    for (size_t i = node.inputs.size(); i < inputs.size(); ++i) arguments.push_back(*inputs[i]);
    std::vector<TensorRef> results = body.run(arguments, body_options(options));
    condition = read_scalar<uint8_t>(results[0], node, "condition") != 0;
    for (size_t i = 0; i < carried; ++i) state[i] = results[1 + i];
    for (size_t i = 0; i < scanned; ++i) rows[i].push_back(results[1 + carried + i]);
    interrupt.trip();
  }
  std::vector<TensorRef> outputs = std::move(state);
  for (size_t i = 0; i < scanned; ++i) {
    const size_t output = 1 + carried + i;
    outputs.push_back(stack_rows(*plan.device(), rows[i], body, output, node));
  }
  return outputs;
}

}  // namespace

std::vector<TensorRef> run_control(const Plan& plan, const Step& step,
                                   const std::vector<const TensorRef*>& inputs,
                                   const RunOptions& options) {
  if (step.node->op == "If") return run_if(step, inputs, options);
  if (step.node->op == "Loop") return run_loop(plan, step, inputs, options);
  return run_scan(plan, step, inputs, options);
}

}  // namespace chipdock::runtime
