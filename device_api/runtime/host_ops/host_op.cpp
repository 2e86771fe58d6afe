// SPDX-License-Identifier: Apache-2.0
// The table of host operators, collected from the families beside this file, and what one call
// offers them. host_families.inc is made by the build from the file names.
#include "host_ops/host_op.hpp"

#include "exec/apply_operator.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {

#define FAMILY(stem) std::vector<HostOp> stem##_host_ops();
#include "host_families.inc"
#undef FAMILY

namespace {

std::vector<HostOp> collect() {
  std::vector<HostOp> all;
  const auto add = [&all](const std::vector<HostOp>& family) {
    all.insert(all.end(), family.begin(), family.end());
  };
#define FAMILY(stem) add(stem##_host_ops());
#include "host_families.inc"
#undef FAMILY
  return all;
}

}  // namespace

const std::vector<HostOp>& all_host_ops() {
  static const auto* const kAll = new std::vector<HostOp>(collect());
  return *kAll;
}

const HostOp* find_host_op(std::string_view domain, std::string_view name, int32_t since_version) {
  for (const HostOp& op : all_host_ops()) {
    if (domain == op.domain && name == op.name && since_version >= op.since &&
        (op.until == 0 || since_version <= op.until)) {
      return &op;
    }
  }
  return nullptr;
}

HostCall::HostCall(const Plan& plan, const IrNode& node,
                   const std::vector<const TensorRef*>& inputs)
    : plan_(plan),
      node_(node),
      description_(node, {}, {}, 0),
      inputs_(inputs),
      outputs_(node.outputs.size()) {}

const TensorRef& HostCall::input(size_t i) const {
  kit::require(has_input(i), node_.op, " needs input ", i);
  return *inputs_[i];
}

const std::vector<std::string>& HostCall::strings(size_t i) const {
  const TensorRef& value = input(i);
  kit::require(is_kind(value, HostKind::kStrings), "input ", i, " is ", kind_name(value),
               ", strings are wanted");
  return value.object->strings;
}

const std::vector<TensorRef>& HostCall::items(size_t i) const {
  const TensorRef& value = input(i);
  kit::require(is_kind(value, HostKind::kSequence), "input ", i, " is ", kind_name(value),
               ", a sequence is wanted");
  return value.object->items;
}

std::vector<int64_t> HostCall::integers(size_t i) const {
  const TensorRef& value = input(i);
  const auto count = static_cast<size_t>(value.size());
  std::vector<int64_t> out(count);
  if (kit::operator==(value.dtype, kit::kInt32)) {
    std::vector<int32_t> narrow(count);
    read_tensor(value, narrow.data(), nullptr);
    out.assign(narrow.begin(), narrow.end());
    return out;
  }
  kit::require(kit::operator==(value.dtype, kit::kInt64), "input ", i, " is ", kind_name(value),
               ", allowed are int64 and int32");
  read_tensor(value, out.data(), nullptr);
  return out;
}

int64_t HostCall::integer(size_t i) const {
  const std::vector<int64_t> all = integers(i);
  kit::require(all.size() == 1, "input ", i, " has shape ", to_string(input(i).dims),
               ", it must have one element");
  return all[0];
}

chipdock_dtype HostCall::output_dtype(size_t i) const {
  if (i >= node_.outputs.size() || node_.outputs[i] < 0) return {};
  return plan_.graph().values[static_cast<size_t>(node_.outputs[i])].dtype;
}

TensorRef HostCall::own(const TensorRef& value) const {
  return move_tensor(value, *plan_.device(), nullptr);
}

TensorRef HostCall::tensor(chipdock_dtype dtype, const Dims& dims, const void* data) const {
  TensorRef out = make_tensor(*plan_.device(), dtype, dims, nullptr);
  write_tensor(out, data, nullptr);
  return out;
}

std::vector<TensorRef> HostCall::apply(const IrNode& node,
                                       const std::vector<const TensorRef*>& inputs,
                                       const std::vector<chipdock_dtype>& dtypes) const {
  return apply_operator(plan_, node, inputs, dtypes);
}

void HostCall::set(size_t i, TensorRef value) {
  if (i < outputs_.size()) outputs_[i] = std::move(value);
}

std::vector<TensorRef> run_host_op(const Plan& plan, const Step& step,
                                   const std::vector<const TensorRef*>& inputs) {
  HostCall call(plan, *step.node, inputs);
  try {
    step.host_op->run(call);
  } catch (const kit::Failure& failure) {
    throw Error(failure.code(), std::string(failure.what()) + " (in " + describe(*step.node) + ")");
  }
  return call.take();
}

}  // namespace chipdock::runtime
