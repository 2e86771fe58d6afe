// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: the host decides, bodies are plans of their own. Values pass by reference; a
// body never returns an input or a weight itself, so nothing is overwritten behind anybody's back.
#include <algorithm>
#include <chrono>

#include "exec/frame.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

RunOptions body_options(const RunOptions& options) {
  RunOptions out = options;
  out.bound_outputs = nullptr;
  return out;
}

/// Lets an interrupt through from time to time; bodies alone would not, for each of their runs is
/// short.
class InterruptTimer {
 public:
  explicit InterruptTimer(const RunOptions& options) : options_(options) {}
  void trip() {
    if (options_.interrupt == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    (*options_.interrupt)();
    next_ = now + kInterval;
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  const RunOptions& options_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kInterval;
};

/// Without a trip the state is what came in: inputs, weights or scratch memory, which are not the
/// caller's.
void own_state(std::vector<TensorRef>& state, Device& device) {
  for (TensorRef& tensor : state) tensor = move_tensor(tensor, device, nullptr);
}

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

/// Elements [index, index + 1) along axis 0, without that axis.
TensorRef take_row(const TensorRef& tensor, int64_t index) {
  TensorRef row = tensor;
  row.dims.erase(row.dims.begin());
  row.offset += static_cast<uint64_t>(index) * row.bytes();
  return row;
}

/// Rows of equal shape one behind the other along a new axis 0.
TensorRef stack_rows(Device& device, chipdock_dtype dtype, const std::vector<TensorRef>& rows,
                     const Dims& empty_row, const IrNode& node) {
  Dims dims = rows.empty() ? empty_row : rows[0].dims;
  const Dims row_dims = dims;
  dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
  TensorRef out = make_tensor(device, dtype, dims, nullptr);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dims != row_dims) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "scan output of ", describe(node), " changes shape from ",
            to_string(row_dims), " to ", to_string(rows[i].dims));
    }
    TensorRef target = take_row(out, static_cast<int64_t>(i));
    if (target.bytes() > 0) device.copy(rows[i].place(), target.place(), target.bytes(), nullptr);
  }
  return out;
}

Dims row_dims_of(const Plan& body, size_t output) {
  Dims dims = body.graph().values[static_cast<size_t>(body.graph().outputs[output])].dims;
  for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
  return dims;
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
      for (size_t i = 0; i < captured; ++i) arguments.push_back(*inputs[at + i]);
      return step.bodies[b]->run(arguments, body_options(options));
    }
    at += captured;
  }
  raise(CHIPDOCK_INVALID_ARGUMENT, describe(*step.node), " has no ", condition ? "then" : "else",
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
    const auto value = static_cast<size_t>(body.graph().outputs[output]);
    outputs.push_back(stack_rows(*plan.device(), body.graph().values[value].dtype, rows[i],
                                 row_dims_of(body, output), node));
  }
  return outputs;
}

/// ONNX Scan-9 on axis 0; other axes and reversed directions are refused.
std::vector<TensorRef> run_scan(const Plan& plan, const Step& step,
                                const std::vector<const TensorRef*>& inputs,
                                const RunOptions& options) {
  const IrNode& node = *step.node;
  Plan& body = *step.bodies[0];
  const NodeDescription description(node, {}, {}, 0);
  const kit::NodeView view(description.get());
  const auto scan_inputs = static_cast<size_t>(view.integer("num_scan_inputs", 0));
  for (const char* name :
       {"scan_input_axes", "scan_output_axes", "scan_input_directions", "scan_output_directions"}) {
    for (const int64_t entry : view.integers(name)) {
      if (entry != 0)
        raise(CHIPDOCK_UNSUPPORTED, name, "=", entry, " of ", describe(node),
              "; only 0 is supported");
    }
  }
  if (node.since_version < 9 || scan_inputs == 0 || scan_inputs > node.inputs.size()) {
    raise(CHIPDOCK_UNSUPPORTED, describe(node), " of version ", node.since_version, " with ",
          scan_inputs, " scan inputs; version 9 or newer with at least one is supported");
  }
  const size_t carried = node.inputs.size() - scan_inputs;
  std::vector<TensorRef> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(*inputs[i]);
  for (size_t i = carried; i < node.inputs.size(); ++i) {
    if (inputs[i]->dims.empty() || inputs[i]->dims[0] != inputs[carried]->dims[0]) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "scan input ", i - carried, " of ", describe(node),
            " has shape ", to_string(inputs[i]->dims),
            "; all have the same first extent, that of input 0 is ",
            to_string(inputs[carried]->dims));
    }
  }
  const int64_t trips = inputs[carried]->dims[0];
  if (trips == 0) own_state(state, *plan.device());
  InterruptTimer interrupt(options);
  const size_t scanned = body.graph().outputs.size() - carried;
  std::vector<std::vector<TensorRef>> rows(scanned);
  for (int64_t trip = 0; trip < trips; ++trip) {
    std::vector<TensorRef> arguments = state;
    for (size_t i = 0; i < scan_inputs; ++i)
      arguments.push_back(take_row(*inputs[carried + i], trip));
    for (size_t i = node.inputs.size(); i < inputs.size(); ++i) arguments.push_back(*inputs[i]);
    std::vector<TensorRef> results = body.run(arguments, body_options(options));
    for (size_t i = 0; i < carried; ++i) state[i] = results[i];
    for (size_t i = 0; i < scanned; ++i) rows[i].push_back(results[carried + i]);
    interrupt.trip();
  }
  std::vector<TensorRef> outputs = std::move(state);
  for (size_t i = 0; i < scanned; ++i) {
    const auto value = static_cast<size_t>(body.graph().outputs[carried + i]);
    outputs.push_back(stack_rows(*plan.device(), body.graph().values[value].dtype, rows[i],
                                 row_dims_of(body, carried + i), node));
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
