// SPDX-License-Identifier: Apache-2.0
#include "exec/apply_operator.hpp"

#include <algorithm>

#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

/// The strings of a call in order, each once, "" first: a string's place is its number.
class StringRanks {
 public:
  explicit StringRanks(const std::vector<const TensorRef*>& inputs) : sorted_{std::string()} {
    for (const TensorRef* input : inputs) {
      if (input == nullptr || !is_kind(*input, HostKind::kStrings)) continue;
      const auto& strings = input->object->strings;
      sorted_.insert(sorted_.end(), strings.begin(), strings.end());
    }
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
  }
  TensorRef numbers(const Plan& plan, const TensorRef& strings) const {
    auto ranks = std::make_shared<std::vector<int64_t>>();
    for (const std::string& text : strings.object->strings) {
      const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), text);
      ranks->push_back(at - sorted_.begin());
    }
    const int64_t* data = ranks->data();
    return wrap_host(plan.host(), kit::kInt64, strings.dims, data, std::move(ranks));
  }

  TensorRef strings(const TensorRef& numbers) const {
    std::vector<int64_t> ranks(static_cast<size_t>(numbers.size()));
    read_tensor(numbers, ranks.data(), nullptr);
    std::vector<std::string> out;
    out.reserve(ranks.size());
    for (const int64_t rank : ranks) out.push_back(sorted_.at(static_cast<size_t>(rank)));
    return make_strings(numbers.dims, std::move(out));
  }

 private:
  std::vector<std::string> sorted_;
};

/// The same elements where the host can read them.
TensorRef on_host(const Plan& plan, const TensorRef& tensor) {
  if (tensor.buffer == nullptr || tensor.host() != nullptr) return tensor;
  std::shared_ptr<char[]> bytes(new char[tensor.bytes()]);
  read_tensor(tensor, bytes.get(), nullptr);
  const char* data = bytes.get();
  return wrap_host(plan.host(), tensor.dtype, tensor.dims, data, std::move(bytes));
}

class Call {
 public:
  Call(const Plan& plan, const IrNode& node, std::vector<chipdock_dtype> dtypes)
      : plan_(plan),
        node_(node),
        op_(find_op(node.domain, node.op, node.since_version)),
        dtypes_(std::move(dtypes)) {
    if (op_ == nullptr) raise(CHIPDOCK_UNSUPPORTED, describe(node), " is not known to chipdock");
  }

  std::vector<TensorRef> run(std::vector<TensorRef> tensors, const std::vector<bool>& given) {
    std::vector<const TensorRef*> inputs(tensors.size(), nullptr);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!given[i]) continue;
      if (has_bit(op_->host_inputs, i)) tensors[i] = on_host(plan_, tensors[i]);
      inputs[i] = &tensors[i];
    }
    std::vector<ShapeOutput> shapes(dtypes_.size());
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i].dtype = dtypes_[i];
    infer_shapes(node_, *op_, shape_inputs(inputs, op_->host_inputs), shapes);
    const bool one_output = std::all_of(node_.outputs.begin() + 1, node_.outputs.end(),
                                        [](int32_t v) { return v < 0; });
    if ((op_->flags & kOpView) != 0 && one_output) {
      TensorRef view = move_tensor(tensors[0], *plan_.device(), nullptr);
      view.dims = shapes[0].dims;
      return {view};
    }
    std::string reason;
    for (const Side side : {Side::kDevice, Side::kHost}) {
      const KernelChoice choice = choose(side, inputs, shapes);
      reason += choice.reason;
      if (choice.instance != nullptr) return launch(*choice.instance, tensors, inputs);
    }
    raise(CHIPDOCK_UNSUPPORTED, describe(node_), " has no kernel: ", reason);
  }

 private:
  KernelChoice choose(Side side, const std::vector<const TensorRef*>& inputs,
                      const std::vector<ShapeOutput>& shapes) const {
    std::vector<NodeDescription::Value> in(inputs.size()), out(shapes.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      in[i].given = in[i].known = true;
      in[i].dtype = inputs[i]->dtype;
      in[i].dims = inputs[i]->dims;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].given = out[i].known = node_.outputs[i] >= 0;
      out[i].dtype = shapes[i].dtype;
      out[i].dims = shapes[i].dims;
    }
    const NodeDescription description(node_, in, out, plan_.options().math_mode);
    return plan_.kernels(side).choose(description.get());
  }

  std::vector<TensorRef> launch(const KernelInstance& instance, std::vector<TensorRef>& tensors,
                                const std::vector<const TensorRef*>& inputs) const {
    Device& device = *instance.device();
    const uint64_t host_inputs = op_->host_inputs | instance.kernel().host_inputs;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      if (has_bit(host_inputs, i)) {
        tensors[i] = on_host(plan_, tensors[i]);
      } else if (!usable_on(tensors[i], device)) {
        tensors[i] = move_tensor(tensors[i], device, nullptr);
      }
    }
    const NodeCall call{node_,
                        *op_,
                        instance,
                        nullptr,
                        host_inputs,
                        instance.kernel().host_outputs,
                        plan_.options().max_threads,
                        plan_.options().math_mode,
                        plan_.options().deterministic};
    std::vector<TensorRef> outputs = run_node(call, inputs, dtypes_);
    for (TensorRef& output : outputs) {
      if (output.buffer != nullptr &&
          (!usable_on(output, *plan_.device()) || output.buffer->memory() == nullptr)) {
        output = move_tensor(output, *plan_.device(), nullptr);
      }
    }
    return outputs;
  }

  const Plan& plan_;
  const IrNode& node_;
  const Op* op_;
  std::vector<chipdock_dtype> dtypes_;
};

}  // namespace

std::vector<TensorRef> apply_operator(const Plan& plan, const IrNode& node,
                                      const std::vector<const TensorRef*>& inputs,
                                      const std::vector<chipdock_dtype>& dtypes) {
  const StringRanks ranks(inputs);
  std::vector<TensorRef> tensors(inputs.size());
  std::vector<bool> given(inputs.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    given[i] = true;
    if (is_kind(*inputs[i], HostKind::kStrings)) {
      tensors[i] = ranks.numbers(plan, *inputs[i]);
    } else if (inputs[i]->object != nullptr) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "input ", i, " of ", describe(node), " is ",
            kind_name(*inputs[i]), ", a tensor is wanted");
    } else {
      tensors[i] = *inputs[i];
    }
  }
  std::vector<chipdock_dtype> numeric = dtypes;
  for (chipdock_dtype& dtype : numeric) {
    if (is_host_dtype(dtype)) dtype = kit::kInt64;
  }
  std::vector<TensorRef> outputs = Call(plan, node, numeric).run(std::move(tensors), given);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] >= 0 && is_host_dtype(dtypes[i])) outputs[i] = ranks.strings(outputs[i]);
  }
  return outputs;
}

}  // namespace chipdock::runtime
