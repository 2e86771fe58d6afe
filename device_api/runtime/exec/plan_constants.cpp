// SPDX-License-Identifier: Apache-2.0
// What plan compilation does with values that never change: fold what follows from them, pack and
// upload what kernels read.
#include <algorithm>

#include "exec/node_runner.hpp"
#include "exec/plan_compiler.hpp"

namespace chipdock::runtime {
namespace {

constexpr uint64_t kFoldLimit = 256ull
                                << 20;  // a larger result costs more memory than it saves time

}  // namespace

void PlanCompiler::fold_constants() {
  for (const auto& [value, constant] : graph().constants) set_constant(value, constant);
  folded_.resize(graph().nodes.size(), false);
  for (size_t i = 0; i < graph().nodes.size(); ++i) {
    const IrNode& node = *graph().nodes[i];
    const Op* op = ops_[i];
    if (op == nullptr || (op->flags & (kOpRandom | kOpHostOnly)) != 0) continue;
    if (touches_host_values(node)) continue;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](int32_t v) { return v < 0 || is_constant(v); })) {
      continue;
    }
    try {
      folded_[i] = fold(node, *op);
    } catch (const Error&) {
      if (!in_body_) throw;  // a branch that does not fit is wrong only if it is taken
    }
    if (folded_[i]) add_report(node, Placement::kFolded, "", "", plan_->host_->name());
  }
}

bool PlanCompiler::fold(const IrNode& node, const Op& op) {
  std::vector<TensorRef> tensors(node.inputs.size());
  std::vector<const TensorRef*> inputs(node.inputs.size(), nullptr);
  std::vector<NodeDescription::Value> in(node.inputs.size()), out(node.outputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) continue;
    tensors[i] = constant_tensor(node.inputs[i]);
    inputs[i] = &tensors[i];
    in[i].given = in[i].known = true;
    in[i].dtype = tensors[i].dtype;
    in[i].dims = tensors[i].dims;
  }
  std::vector<chipdock_dtype> dtypes(node.outputs.size());
  std::vector<ShapeOutput> shapes(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] < 0) continue;
    dtypes[i] = shapes[i].dtype = graph().values[static_cast<size_t>(node.outputs[i])].dtype;
    out[i].given = true;
    out[i].dtype = dtypes[i];
  }
  const uint64_t all_host = ~uint64_t{0};
  infer_shapes(node, op, shape_inputs(inputs, all_host), shapes);
  uint64_t bytes = 0;
  for (const ShapeOutput& s : shapes) {
    bytes += kit::dtype_bytes(s.dtype, static_cast<uint64_t>(element_count(s.dims)));
  }
  if (bytes > kFoldLimit) return false;
  if ((op.flags & kOpView) != 0 && node.outputs[0] >= 0 &&
      std::all_of(node.outputs.begin() + 1, node.outputs.end(), [](int32_t v) { return v < 0; })) {
    IrConstant alias = constants_.at(node.inputs[0]).constant;
    alias.dims = shapes[0].dims;
    set_constant(node.outputs[0], std::move(alias));
    return true;
  }
  const NodeDescription description(node, in, out, plan_->options_.math_mode);
  const Side side = plan_->same_device() ? Side::kDevice : Side::kHost;
  const KernelChoice choice = kernels(side).choose(description.get());
  if (choice.instance == nullptr) return false;
  // A device that is its own host may not read host memory (strict mode): the node then runs per
  // call.
  if (!std::all_of(tensors.begin(), tensors.end(),
                   [&](const TensorRef& t) { return usable_on(t, *plan_->host_); })) {
    return false;
  }
  const NodeCall call{node,
                      op,
                      *choice.instance,
                      nullptr,
                      op.host_inputs | choice.instance->kernel().host_inputs,
                      choice.instance->kernel().host_outputs,
                      plan_->options_.max_threads,
                      plan_->options_.math_mode};
  std::vector<TensorRef> results = run_node(call, inputs, dtypes);
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] < 0) continue;
    auto kept = std::make_shared<TensorRef>(results[i]);
    IrConstant constant;
    constant.dtype = kept->dtype;
    constant.dims = kept->dims;
    constant.bytes = kept->bytes();
    constant.data = kept->host();
    constant.keep = kept;
    if (constant.bytes > 0 && constant.data == nullptr) return false;
    set_constant(node.outputs[i], std::move(constant));
  }
  return true;
}

void PlanCompiler::pack_inputs(const IrNode& node, Step& step) {
  keep_source_.assign(node.inputs.size(), true);
  Device& device = *step.instance->device();
  const auto& table = device.tables().kernel;
  if (table.prepack_size == nullptr || table.prepack == nullptr) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int32_t v = node.inputs[i];
    if (v < 0 || !is_constant(v) || has_bit(step.host_inputs, i)) continue;
    HashedConstant& entry = constants_.at(v);
    const IrConstant& constant = entry.constant;
    chipdock_value value{};
    value.struct_size = sizeof(value);
    value.dtype = constant.dtype;
    value.rank = static_cast<int32_t>(constant.dims.size());
    value.dims = constant.dims.data();
    value.constant = constant.data;
    value.constant_size = constant.bytes;
    chipdock_prepack_info info{};
    info.struct_size = sizeof(info);
    ErrorRecord error;
    const auto input = static_cast<uint32_t>(i);
    device.check_call(table.prepack_size(step.instance->handle(), input, &value, &info, &error),
                      error, ("prepack_size of " + describe(node)).c_str());
    if (info.size == 0) continue;
    if (step.packed.empty()) step.packed.resize(node.inputs.size());
    keep_source_[i] = info.keep_source != 0;
    hash(entry);
    const std::string layout = std::string(info.layout) + "#" + to_string(constant.dims);
    step.packed[i] =
        WeightStore::instance().find_or_make(device, entry, layout, info.size, [&](Buffer& target) {
          TensorRef source = constant_tensor(v);
          if (!usable_on(source, device)) source = move_tensor(source, device, nullptr);
          chipdock_tensor tensor;
          fill_tensor(tensor, source, false);
          chipdock_prepack_desc desc{};
          desc.struct_size = sizeof(desc);
          desc.input = input;
          desc.source = &tensor;
          desc.target = target.memory();
          desc.target_offset = target.offset();
          desc.correlation_id = device.next_correlation_id();
          device.check_call(table.prepack(step.instance->handle(), &desc, &error), error,
                            ("prepack of " + describe(node)).c_str());
        });
    plan_->weight_bytes_ += info.size;
  }
}

void PlanCompiler::hash(HashedConstant& entry) {
  if (entry.hash == ContentHash{})
    entry.hash = hash_bytes(entry.constant.data, entry.constant.bytes);
}

void PlanCompiler::upload_constants() {
  for (size_t i = 0; i < plan_->slots_.size(); ++i) {
    const Slot& slot = plan_->slots_[i];
    const auto index = static_cast<int32_t>(i);
    if (!is_constant(slot.value)) continue;
    HashedConstant& entry = constants_.at(slot.value);
    TensorRef tensor = constant_tensor(slot.value);
    const bool reads = reads_data_.count(index) != 0;
    Device& device = plan_->side_device(slot.side);
    if (reads && tensor.buffer != nullptr && slot.side == Side::kDevice &&
        !usable_on(tensor, device)) {
      hash(entry);
      tensor.buffer = WeightStore::instance().find_or_make(
          device, entry, "", tensor.bytes(), [&](Buffer& target) {
            Place from, to;
            from.host = const_cast<void*>(entry.constant.data);  // a source is only read
            to.memory = target.memory();
            to.offset = target.offset();
            device.copy(from, to, entry.constant.bytes, nullptr);
          });
    }
    plan_->weight_bytes_ += reads ? tensor.bytes() : 0;
    if (!reads && tensor.object == nullptr)
      tensor.buffer = nullptr;  // its shape is all that counts
    plan_->constant_slots_[index] = std::move(tensor);
  }
}

/// What a body reads of this graph and never changes becomes a constant of the body, which can fold
/// and pack it. Nodes with bodies become this plan's own.
void PlanCompiler::hand_down_constants() {
  auto copy = std::make_shared<IrGraph>(graph());
  bool any = false;
  for (std::shared_ptr<IrNode>& node : copy->nodes) {
    if (node->subgraphs.empty()) continue;
    node = std::make_shared<IrNode>(*node);
    for (IrSubgraph& body : node->subgraphs) body = with_constants(body);
    any = true;
  }
  if (any) plan_->graph_ = std::move(copy);
}

IrSubgraph PlanCompiler::with_constants(const IrSubgraph& body) const {
  IrSubgraph own;
  own.attribute = body.attribute;
  own.graph = std::make_shared<IrGraph>(*body.graph);
  std::vector<int32_t>& inputs = own.graph->inputs;
  for (const auto& [outer, inner] : body.captures) {
    if (!is_constant(outer)) {
      own.captures.emplace_back(outer, inner);
      continue;
    }
    inputs.erase(std::remove(inputs.begin(), inputs.end(), inner), inputs.end());
    own.graph->constants[inner] = constants_.at(outer).constant;
  }
  return own;
}

/// Lets go of what kernels have packed: a model would else hold its weights twice.
void PlanCompiler::drop_constants() {
  constants_.clear();
  auto rest = std::make_shared<IrGraph>(graph());
  rest->constants.clear();
  plan_->graph_ = std::move(rest);
}

}  // namespace chipdock::runtime
