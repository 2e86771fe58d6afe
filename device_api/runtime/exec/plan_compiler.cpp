// SPDX-License-Identifier: Apache-2.0
// From graph to plan: fold constants, drop what nobody reads, place each node, choose kernels, make
// copies between the sides explicit, pack and upload weights. Runs once per load; shapes are not
// needed here.
#include "exec/plan_compiler.hpp"

#include <algorithm>
#include <cstring>

#include "exec/check_bodies.hpp"
#include "exec/node_runner.hpp"
#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

constexpr int64_t kShapeWorkElements = 1024;  // constants beyond this are data, not shapes

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string kernel_name(const chipdock_kernel& kernel) {
  return kernel.name != nullptr ? kernel.name : kernel.op;
}

}  // namespace

PlanCompiler::PlanCompiler(std::shared_ptr<IrGraph> graph, std::shared_ptr<Device> device,
                           std::shared_ptr<Device> host, const PlanOptions& options) {
  plan_ = std::shared_ptr<Plan>(new Plan());
  plan_->graph_ = std::move(graph);
  plan_->device_ = std::move(device);
  plan_->host_ = std::move(host);
  plan_->options_ = options;
  plan_->device_kernels_ = std::make_unique<KernelRegistry>(plan_->device_);
  plan_->host_kernels_ =
      plan_->same_device() ? nullptr : std::make_unique<KernelRegistry>(plan_->host_);
}

bool PlanCompiler::is_host_value(int32_t value) const {
  return value >= 0 && is_host_dtype(graph().values[static_cast<size_t>(value)].dtype);
}

bool PlanCompiler::touches_host_values(const IrNode& node) const {
  const auto held = [this](int32_t value) { return is_host_value(value); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), held) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), held);
}

std::shared_ptr<Plan> PlanCompiler::compile() {
  place_all();
  if (!missing_.empty()) report_missing();
  return finish();
}

void PlanCompiler::place_all() {
  node_count_ = graph().nodes.size();
  find_operators();
  fold_constants();
  settle_fused();
  hand_down_constants();
  settle_layouts();
  find_needed();
  for (size_t i = 0; i < graph().nodes.size(); ++i) {
    if (needed_[i]) place(i);
  }
}

std::shared_ptr<Plan> PlanCompiler::finish() {
  place_outputs();
  upload_constants();
  drop_constants();
  return plan_;
}

void PlanCompiler::add_report(const IrNode& node, Placement placement, std::string kernel,
                              std::string reason, std::string device) {
  NodeReport line;
  line.name = node.name;
  line.op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  line.since_version = node.since_version;
  line.kernel = std::move(kernel);
  line.reason = std::move(reason);
  line.placement = placement;
  line.device = std::move(device);
  plan_->report_.push_back(std::move(line));
}

TensorRef PlanCompiler::constant_tensor(int32_t value) const {
  const IrConstant& constant = constants_.at(value).constant;
  TensorRef tensor =
      wrap_host(plan_->host_, constant.dtype, constant.dims, constant.data, constant.keep);
  tensor.object = constant.object;
  return tensor;
}

void PlanCompiler::set_constant(int32_t value, IrConstant constant) {
  HashedConstant entry;
  entry.constant = std::move(constant);
  constants_[value] = std::move(entry);
}

std::vector<bool> PlanCompiler::live_nodes() const {
  std::vector<bool> live(graph().values.size(), false);
  for (int32_t output : graph().outputs) live[static_cast<size_t>(output)] = true;
  std::vector<bool> needed(graph().nodes.size(), false);
  for (size_t i = graph().nodes.size(); i-- > 0;) {
    const IrNode& node = *graph().nodes[i];
    if (folded_[i]) continue;
    needed[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](int32_t v) { return v >= 0 && live[static_cast<size_t>(v)]; });
    if (!needed[i]) continue;
    for (int32_t v : node.inputs) {
      if (v >= 0) live[static_cast<size_t>(v)] = true;
    }
    for (const IrSubgraph& body : node.subgraphs) {
      for (const auto& [outer, inner] : body.captures) live[static_cast<size_t>(outer)] = true;
    }
  }
  return needed;
}

void PlanCompiler::find_needed() {
  needed_ = live_nodes();
  host_value_.assign(graph().values.size(), false);
  shape_value_.assign(graph().values.size(), false);
  for (int32_t input : graph().inputs) {
    plan_->input_slots_.push_back(slot_of(input, Side::kDevice));
  }
}

int32_t PlanCompiler::new_slot(int32_t value, Side side) {
  plan_->slots_.push_back({value, side});
  return static_cast<int32_t>(plan_->slots_.size() - 1);
}

int32_t PlanCompiler::slot_of(int32_t value, Side side) {
  if (value < 0) return -1;
  if (plan_->same_device() || is_host_value(value)) side = Side::kDevice;  // then it has one slot
  const auto key = std::make_pair(value, side);
  if (const auto found = slot_by_value_.find(key); found != slot_by_value_.end())
    return found->second;
  const int32_t slot = new_slot(value, side);
  slot_by_value_[key] = slot;
  if (is_constant(value)) return slot;
  const Side other = side == Side::kDevice ? Side::kHost : Side::kDevice;
  if (const auto source = slot_by_value_.find({value, other}); source != slot_by_value_.end()) {
    add_copy(source->second, slot);
  }
  return slot;
}

void PlanCompiler::add_copy(int32_t source, int32_t target) {
  Step step;
  step.kind = StepKind::kCopy;
  step.side = plan_->slots_[static_cast<size_t>(target)].side;
  step.inputs = {source};
  step.outputs = {target};
  plan_->steps_.push_back(std::move(step));
}

bool PlanCompiler::belongs_to_host(const IrNode& node, const Op& op) const {
  if (plan_->same_device()) return false;
  if ((op.flags & kOpShapeOnly) != 0) return true;
  bool any = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int32_t v = node.inputs[i];
    if (v < 0 || has_bit(op.host_inputs, i)) continue;
    if (is_constant(v)) {
      if (element_count(constants_.at(v).constant.dims) > kShapeWorkElements) return false;
    } else if (!shape_value_[static_cast<size_t>(v)]) {
      return false;
    } else {
      any = true;
    }
  }
  return any;
}

NodeDescription PlanCompiler::describe_node(const IrNode& node, const LayoutForm* form,
                                            uint32_t layout) const {
  std::vector<NodeDescription::Value> in(node.inputs.size()), out(node.outputs.size());
  auto describe_value = [&](int32_t v, NodeDescription::Value& value) {
    if (v < 0) return;
    const IrValue& known = graph().values[static_cast<size_t>(v)];
    value.given = true;
    value.dtype = known.dtype;
    value.known = known.rank >= 0;
    value.dims = known.dims;
    if (!is_constant(v)) return;
    const IrConstant& constant = constants_.at(v).constant;
    value.dtype = constant.dtype;
    value.known = true;
    value.dims = constant.dims;
    value.constant = constant.data;
    value.constant_size = constant.bytes;
  };
  for (size_t i = 0; i < in.size(); ++i) describe_value(node.inputs[i], in[i]);
  for (size_t i = 0; i < out.size(); ++i) describe_value(node.outputs[i], out[i]);
  for (size_t i = 0; form != nullptr && i < in.size(); ++i)
    in[i].layout = form->inputs[i] ? layout : 0;
  for (size_t i = 0; form != nullptr && i < out.size(); ++i)
    out[i].layout = form->outputs[i] ? layout : 0;
  return NodeDescription(node, in, out, plan_->options_.math_mode);
}

KernelChoice PlanCompiler::choose(const IrNode& node, Side side) const {
  return kernels(side).choose(describe_node(node).get());
}

void PlanCompiler::place(size_t index) {
  const IrNode& node = *graph().nodes[index];
  if (is_control(node)) return place_control(*graph().nodes[index]);
  if (host_ops_[index] != nullptr) return place_host(node, *host_ops_[index]);
  const Op& op = *ops_[index];
  Step step;
  step.node = &node;
  step.op = &op;
  const auto settled = settled_.find(&node);
  const bool laid_out = settled != settled_.end();
  step.side = !laid_out && belongs_to_host(node, op) ? Side::kHost : Side::kDevice;
  Placement placement = step.side == Side::kHost ? Placement::kShape : Placement::kDevice;
  std::string reason;
  const bool extra_output =
      std::any_of(node.outputs.begin() + std::min<size_t>(1, node.outputs.size()),
                  node.outputs.end(), [](int32_t v) { return v >= 0; });
  if ((op.flags & kOpView) != 0 && !extra_output) {
    step.kind = StepKind::kView;
    if (host_value_[static_cast<size_t>(node.inputs[0])])
      step.side = Side::kHost;  // where its memory is
    step.host_inputs = op.host_inputs;
    placement = Placement::kView;
  } else if ((op.flags & kOpShapeOnly) != 0) {
    if (extra_output) {
      raise(CHIPDOCK_INVALID_ARGUMENT, describe(node), " has ", node.outputs.size(),
            " outputs, the operator has 1");
    }
    step.kind = StepKind::kShapeOf;
    placement = Placement::kShape;
  } else {
    KernelChoice choice = laid_out ? settled->second.choice : choose(node, step.side);
    if (choice.instance == nullptr && !choice.needs_shape && !plan_->same_device() &&
        step.side == Side::kDevice) {
      reason = choice.reason + (choice.reason.empty() || choice.reason.back() == '\n' ? "" : "\n");
      KernelChoice fallback = choose(node, Side::kHost);
      if (fallback.instance != nullptr || fallback.needs_shape) {
        if (plan_->options_.fallback == Fallback::kError) {
          missing_.push_back({describe(node), first_line(reason)});
          fallback_helps_ = true;
          return;
        }
        choice = std::move(fallback);
        step.side = Side::kHost;
        placement = Placement::kFallback;
      }
    }
    if (choice.instance == nullptr && !choice.needs_shape) {
      missing_.push_back({describe(node), first_line(choice.reason)});
      return;
    }
    if (laid_out) reason = "works in layout " + std::to_string(settled->second.layout) + "\n";
    reason += choice.reason;
    step.instance = choice.instance;
    step.host_inputs = op.host_inputs;
    if (choice.instance != nullptr) {
      step.host_inputs |= choice.instance->kernel().host_inputs;
      step.host_outputs = choice.instance->kernel().host_outputs;
      pack_inputs(node, step);
    }
  }
  connect(node, step, placement);
  add_report(node, placement,
             step.instance != nullptr ? kernel_name(step.instance->kernel()) : std::string(),
             reason, step.kind == StepKind::kLaunch ? plan_->side_device(step.side).name() : "");
  if (laid_out) plan_->report_.back().layout = settled->second.layout;
  plan_->steps_.push_back(std::move(step));
}

void PlanCompiler::connect(const IrNode& node, Step& step, Placement placement) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    // A view of host data stays on the host; what it views is its input 0.
    Side side = has_bit(step.host_inputs, i) ? Side::kHost : step.side;
    if (step.kind == StepKind::kShapeOf && node.inputs[i] >= 0 &&
        !host_value_[static_cast<size_t>(node.inputs[i])]) {
      side = Side::kDevice;  // only its dims are read: no copy
    }
    const int32_t slot = slot_of(node.inputs[i], side);
    step.inputs.push_back(slot);
    const bool is_packed = i < step.packed.size() && step.packed[i] != nullptr && !keep_source_[i];
    const bool dims_only = step.kind == StepKind::kShapeOf;
    if (slot >= 0 && is_constant(node.inputs[i]) && !is_packed && !dims_only)
      reads_data_.insert(slot);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int32_t v = node.outputs[i];
    if (v < 0) {
      step.outputs.push_back(-1);
      continue;
    }
    const Side side =
        has_bit(step.host_outputs, i) || step.kind == StepKind::kShapeOf ? Side::kHost : step.side;
    if (side == Side::kHost) {
      host_value_[static_cast<size_t>(v)] = true;
      const bool follows =
          step.kind != StepKind::kView || shape_value_[static_cast<size_t>(node.inputs[0])];
      shape_value_[static_cast<size_t>(v)] = placement != Placement::kFallback && follows;
    }
    const int32_t slot = new_slot(v, plan_->same_device() ? Side::kDevice : side);
    slot_by_value_[{v, plan_->slots_.back().side}] = slot;
    step.outputs.push_back(slot);
    if (step.kind == StepKind::kView && !step.inputs.empty()) view_of_[slot] = step.inputs[0];
  }
}

void PlanCompiler::place_control(IrNode& node) {
  Step step;
  step.kind = StepKind::kControl;
  step.node = &node;
  // Counts and conditions steer the host; loop-carried values and captures stay on the device.
  if (node.op == "If") step.host_inputs = 1;
  if (node.op == "Loop") step.host_inputs = 3;
  for (IrSubgraph& body : node.subgraphs) {
    PlanCompiler inner(body.graph, plan_->device_, plan_->host_, plan_->options_);
    inner.in_body_ = true;
    inner.place_all();
    node_count_ += inner.node_count_;
    missing_.insert(missing_.end(), inner.missing_.begin(), inner.missing_.end());
    fallback_helps_ = fallback_helps_ || inner.fallback_helps_;
    if (!missing_.empty()) continue;  // nothing will be made of it: only what is missing counts now
    step.bodies.push_back(inner.finish());
    body.graph = step.bodies.back()->graph_;  // without its constants
    for (const NodeReport& line : step.bodies.back()->report()) plan_->report_.push_back(line);
    plan_->weight_bytes_ += step.bodies.back()->weight_bytes();
  }
  if (!missing_.empty()) return;
  connect(node, step, Placement::kControl);
  for (const IrSubgraph& body : node.subgraphs) {
    for (const auto& [outer, inner] : body.captures) {
      step.inputs.push_back(slot_of(outer, Side::kDevice));
      if (is_constant(outer)) reads_data_.insert(step.inputs.back());
    }
  }
  add_report(node, Placement::kControl, "", "", plan_->host_->name());
  plan_->steps_.push_back(std::move(step));
}

void PlanCompiler::place_host(const IrNode& node, const HostOp& op) {
  Step step;
  step.kind = StepKind::kHost;
  step.node = &node;
  step.host_op = &op;
  connect(node, step, Placement::kHost);
  add_report(node, Placement::kHost, "", "", plan_->host_->name());
  plan_->steps_.push_back(std::move(step));
}

void PlanCompiler::place_outputs() {
  for (int32_t output : graph().outputs) {
    int32_t slot = slot_of(output, Side::kDevice);
    int32_t root = slot;
    while (view_of_.count(root) != 0) root = view_of_[root];
    const int32_t value = plan_->slots_[static_cast<size_t>(root)].value;
    const bool is_input = std::count(graph().inputs.begin(), graph().inputs.end(), value) != 0;
    if (is_input || is_constant(value)) {
      // What run() returns is the caller's own: never an input or a weight.
      if (is_constant(value)) reads_data_.insert(slot);
      const int32_t copy = new_slot(output, Side::kDevice);
      add_copy(slot, copy);
      slot = copy;
    }
    plan_->output_slots_.push_back(slot);
  }
}

}  // namespace chipdock::runtime
