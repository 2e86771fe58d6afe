// SPDX-License-Identifier: Apache-2.0
// Scan over any axis and in either direction, and Scan-8, which does so for each entry of a batch.
#include <algorithm>

#include "exec/apply_operator.hpp"
#include "exec/control_flow.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

class Scan {
 public:
  Scan(const Plan& plan, const Step& step, const std::vector<const TensorRef*>& inputs,
       const RunOptions& options)
      : plan_(plan),
        node_(*step.node),
        body_(*step.bodies[0]),
        inputs_(inputs),
        options_(options),
        interrupt_(options),
        batched_(node_.since_version < 9) {
    const NodeDescription description(node_, {}, {}, 0);
    const kit::NodeView view(description.get());
    const auto given = static_cast<size_t>(view.integer("num_scan_inputs", 0));
    first_ = batched_ ? 1 : 0;  // of Scan-8, input 0 has the lengths
    scan_inputs_ = given;
    carried_ = node_.inputs.size() - first_ - given;
    scan_outputs_ = body_.graph().outputs.size() - carried_;
    input_axes_ = entries(view, "scan_input_axes", scan_inputs_);
    output_axes_ = entries(view, "scan_output_axes", scan_outputs_);
    backwards_in_ = entries(view, batched_ ? "directions" : "scan_input_directions", scan_inputs_);
    backwards_out_ = entries(view, "scan_output_directions", scan_outputs_);
  }

  std::vector<TensorRef> run() {
    std::vector<TensorRef> given;
    given.reserve(carried_ + scan_inputs_);
    for (size_t i = 0; i < carried_ + scan_inputs_; ++i) given.push_back(*inputs_[first_ + i]);
    if (batched_) return run_batch(given);
    std::vector<TensorRef> state(given.begin(), given.begin() + static_cast<ptrdiff_t>(carried_));
    std::vector<TensorRef> sequences(given.begin() + static_cast<ptrdiff_t>(carried_), given.end());
    for (size_t i = 0; i < scan_inputs_; ++i) {
      sequences[i] = with_axis(sequences[i], input_axes_[i], true);
      check_length(i, sequences);
    }
    std::vector<TensorRef> outputs = run_one(std::move(state), sequences, sequences[0].dims[0]);
    for (size_t i = 0; i < scan_outputs_; ++i)
      outputs[carried_ + i] = with_axis(outputs[carried_ + i], output_axes_[i], false);
    return outputs;
  }

 private:
  std::vector<int64_t> entries(const kit::NodeView& view, const char* name, size_t count) const {
    std::vector<int64_t> given = view.integers(name);
    if (!given.empty() && given.size() != count) {
      raise(CHIPDOCK_INVALID_ARGUMENT, name, " of ", describe(node_), " has ", given.size(),
            " entries, it must have ", count);
    }
    given.resize(count, 0);
    return given;
  }

  void check_length(size_t i, const std::vector<TensorRef>& sequences) const {
    if (!sequences[i].dims.empty() && sequences[i].dims[0] == sequences[0].dims[0]) return;
    raise(CHIPDOCK_INVALID_ARGUMENT, "scan input ", i, " of ", describe(node_), " has shape ",
          to_string(inputs_[first_ + carried_ + i]->dims),
          "; all have the same extent along the axis that is scanned, that of input 0 is ",
          to_string(inputs_[first_ + carried_]->dims));
  }

  /// Axis `axis` brought to the front, or the front brought there.
  TensorRef with_axis(const TensorRef& tensor, int64_t axis, bool to_front) const {
    const auto rank = static_cast<int64_t>(tensor.dims.size());
    if (axis < -rank || axis >= rank) {
      raise(CHIPDOCK_INVALID_ARGUMENT, describe(node_), " scans axis ", axis,
            " of a tensor of shape ", to_string(tensor.dims));
    }
    if (axis < 0) axis += rank;
    if (axis == 0) return tensor;
    std::vector<int64_t> order;
    order.reserve(tensor.dims.size());
    for (int64_t i = 0; i < rank; ++i) order.push_back(i);
    if (to_front) {
      std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
    } else {
      std::rotate(order.begin(), order.begin() + 1, order.begin() + axis + 1);
    }
    IrNode transpose;
    transpose.op = "Transpose";
    transpose.name = node_.name;
    transpose.since_version = 13;
    transpose.attributes.add_integers("perm", order);
    transpose.outputs = {0};
    return apply_operator(plan_, transpose, {&tensor}, {tensor.dtype})[0];
  }

  /// One sequence. Scan outputs come with the scanned axis first.
  std::vector<TensorRef> run_one(std::vector<TensorRef> state,
                                 const std::vector<TensorRef>& sequences, int64_t trips) {
    if (trips == 0) own_state(state, *plan_.device());
    std::vector<std::vector<TensorRef>> rows(scan_outputs_);
    for (int64_t trip = 0; trip < trips; ++trip) {
      std::vector<TensorRef> arguments = state;
      for (size_t i = 0; i < scan_inputs_; ++i)
        arguments.push_back(
            take_row(sequences[i], backwards_in_[i] != 0 ? trips - 1 - trip : trip));
      for (size_t i = node_.inputs.size(); i < inputs_.size(); ++i)
        arguments.push_back(*inputs_[i]);
      std::vector<TensorRef> results = body_.run(arguments, body_options(options_));
      for (size_t i = 0; i < carried_; ++i) state[i] = results[i];
      for (size_t i = 0; i < scan_outputs_; ++i) rows[i].push_back(results[carried_ + i]);
      interrupt_.trip();
    }
    std::vector<TensorRef> outputs = std::move(state);
    for (size_t i = 0; i < scan_outputs_; ++i) {
      if (backwards_out_[i] != 0) std::reverse(rows[i].begin(), rows[i].end());
      outputs.push_back(stack_rows(*plan_.device(), rows[i], body_, carried_ + i, node_));
    }
    return outputs;
  }

  /// Scan-8: axis 0 of everything is the batch, axis 1 of scan inputs and outputs is scanned.
  std::vector<TensorRef> run_batch(const std::vector<TensorRef>& given) {
    for (const TensorRef& tensor : given) {
      if (!tensor.dims.empty() && tensor.dims[0] == given[0].dims[0]) continue;
      raise(CHIPDOCK_INVALID_ARGUMENT, "an input of ", describe(node_), " has shape ",
            to_string(tensor.dims), ", axis 0 of all inputs is one batch");
    }
    const int64_t batch = given[0].dims[0];
    std::vector<std::vector<TensorRef>> by_output(carried_ + scan_outputs_);
    for (int64_t b = 0; b < batch; ++b) {
      std::vector<TensorRef> state, sequences;
      for (size_t i = 0; i < given.size(); ++i)
        (i < carried_ ? state : sequences).push_back(take_row(given[i], b));
      for (size_t i = 0; i < scan_inputs_; ++i) check_length(i, sequences);
      const int64_t longest = sequences[0].dims[0];
      const int64_t trips = length_of(b, longest);
      std::vector<TensorRef> outputs = run_one(std::move(state), sequences, trips);
      for (size_t i = 0; i < outputs.size(); ++i)
        by_output[i].push_back(i < carried_ ? outputs[i] : padded(outputs[i], longest));
    }
    std::vector<TensorRef> outputs;
    outputs.reserve(by_output.size());
    for (size_t i = 0; i < by_output.size(); ++i)
      outputs.push_back(stack_rows(*plan_.device(), by_output[i], body_, i, node_));
    return outputs;
  }

  int64_t length_of(int64_t entry, int64_t longest) const {
    if (inputs_[0] == nullptr) return longest;
    std::vector<int64_t> lengths(static_cast<size_t>(inputs_[0]->size()));
    read_tensor(*inputs_[0], lengths.data(), nullptr);
    const auto at = static_cast<size_t>(entry);
    if (at < lengths.size() && lengths[at] >= 0 && lengths[at] <= longest) return lengths[at];
    raise(CHIPDOCK_INVALID_ARGUMENT, "sequence_lens of ", describe(node_), " has ", lengths.size(),
          " entries; one per entry of the batch, each 0 to ", longest, ", is wanted");
  }

  /// Zeros behind a sequence that is shorter than the longest.
  TensorRef padded(const TensorRef& tensor, int64_t extent) const {
    if (tensor.dims[0] == extent || tensor.object != nullptr) return tensor;
    Dims dims = tensor.dims;
    dims[0] = extent;
    TensorRef out = make_tensor(*plan_.device(), tensor.dtype, dims, nullptr);
    const std::vector<char> zeros(out.bytes(), 0);
    write_tensor(out, zeros.data(), nullptr);
    if (tensor.bytes() > 0)
      plan_.device()->copy(tensor.place(), out.place(), tensor.bytes(), nullptr);
    return out;
  }

  const Plan& plan_;
  const IrNode& node_;
  Plan& body_;
  const std::vector<const TensorRef*>& inputs_;
  const RunOptions& options_;
  InterruptTimer interrupt_;
  bool batched_;
  size_t first_ = 0, scan_inputs_ = 0, carried_ = 0, scan_outputs_ = 0;
  std::vector<int64_t> input_axes_, output_axes_, backwards_in_, backwards_out_;
};

}  // namespace

std::vector<TensorRef> run_scan(const Plan& plan, const Step& step,
                                const std::vector<const TensorRef*>& inputs,
                                const RunOptions& options) {
  return Scan(plan, step, inputs, options).run();
}

}  // namespace chipdock::runtime
