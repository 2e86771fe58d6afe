// SPDX-License-Identifier: Apache-2.0
#include "exec/specialize.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

// Values up to this size are computed once per signature when they follow from shapes alone.
constexpr uint64_t kStaticBytes = 64 << 10;

}  // namespace

class Specializer {
 public:
  Specializer(Plan& plan, const std::vector<Dims>& inputs)
      : plan_(plan), result_(std::make_shared<Specialization>(plan)), inputs_(inputs) {}

  std::shared_ptr<Specialization> build() {
    set_up_slots();
    for (size_t i = 0; i < plan_.steps_.size(); ++i) {
      index_ = i;
      visit(plan_.steps_[i]);
    }
    mark_outputs();
    result_->lay_out_memory();
    return result_;
  }

 private:
  SlotState& slot(int32_t s) { return result_->slots[static_cast<size_t>(s)]; }

  void set_up_slots() {
    add_slots(plan_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      SlotState& state = slot(plan_.input_slots_[i]);
      state.kind = SlotKind::kInput;
      state.index = static_cast<int32_t>(i);
      state.dims = inputs_[i];
      result_->key.push_back(static_cast<int64_t>(inputs_[i].size()));
      result_->key.insert(result_->key.end(), inputs_[i].begin(), inputs_[i].end());
    }
  }

  /// Those of the plan or of a branch; returns the number of the first.
  int32_t add_slots(const Plan& of) {
    const auto first = static_cast<int32_t>(result_->slots.size());
    for (const Slot& given : of.slots_) {
      const IrValue& value = of.graph_->values[static_cast<size_t>(given.value)];
      SlotState& state = result_->slots.emplace_back();
      state.side = given.side;
      state.dtype = value.dtype;
      state.layout = value.layout;
      state.root = static_cast<int32_t>(result_->slots.size() - 1);
    }
    for (const auto& [index, tensor] : of.constant_slots_) {
      SlotState& state = slot(first + index);
      state.kind = SlotKind::kConstant;
      state.dtype = tensor.dtype;
      state.dims = tensor.dims;
      state.fixed = tensor;
    }
    return first;
  }

  bool is_fixed(int32_t s) {
    return slot(s).kind == SlotKind::kConstant || slot(s).kind == SlotKind::kStatic;
  }
  /// Host address of a fixed slot's elements, also when the constant itself was uploaded.
  const TensorRef* host_tensor(int32_t s) { return is_fixed(s) ? &slot(s).fixed : nullptr; }

  void visit(const Step& step) {
    if (const IrSubgraph* branch = known_branch(step)) return visit_branch(step, *branch);
    if (is_dynamic(step)) return add_dynamic(step);
    switch (step.kind) {
      case StepKind::kCopy:
        return visit_copy(step);
      case StepKind::kShapeOf:
        return visit_shape_of(step);
      case StepKind::kView:
        return visit_view(step);
      case StepKind::kLaunch:
        return visit_launch(step);
      case StepKind::kControl:
      case StepKind::kHost:
        return add_dynamic(step);
    }
  }

  RunStep& add_step(const Step& step) {
    RunStep& run = result_->steps.emplace_back();
    run.step = &step;
    const bool own = &step == &plan_.steps_[index_];
    const uint64_t number = own ? index_ : plan_.steps_.size() + result_->branch_steps.size();
    run.seed_offset = number << 40;
    return run;
  }

  /// The branch that an If is sure to take in every run of this signature, or NULL.
  const IrSubgraph* known_branch(const Step& step) {
    if (step.kind != StepKind::kControl || step.node->op != "If" || !is_fixed(step.inputs[0]))
      return nullptr;
    const TensorRef& condition = slot(step.inputs[0]).fixed;
    if (condition.size() != 1 || condition.host() == nullptr) return nullptr;  // the run says why
    const char* name = *condition.host() != 0 ? "then_branch" : "else_branch";
    const auto& branches = step.node->subgraphs;
    const auto found = std::find_if(branches.begin(), branches.end(),
                                    [&](const IrSubgraph& b) { return b.attribute == name; });
    const Plan& body = *step.bodies[static_cast<size_t>(found - branches.begin())];
    std::vector<int32_t> results = body.output_slots_;
    std::sort(results.begin(), results.end());
    // A value under two names would need two places.
    const bool apart = std::adjacent_find(results.begin(), results.end()) == results.end();
    return apart ? &*found : nullptr;
  }

  /// The steps of the branch in place of the If: they read what it captures and write its outputs
  /// where they are.
  void visit_branch(const Step& step, const IrSubgraph& branch) {
    const auto& branches = step.node->subgraphs;
    const auto at = static_cast<size_t>(&branch - branches.data());
    const Plan& body = *step.bodies[at];
    size_t captures = step.node->inputs.size();
    for (size_t b = 0; b < at; ++b) captures += branches[b].captures.size();
    const int32_t first = add_slots(body);
    std::vector<int32_t> place(body.slots_.size());
    std::iota(place.begin(), place.end(), first);
    for (size_t i = 0; i < body.input_slots_.size(); ++i)
      place[static_cast<size_t>(body.input_slots_[i])] = step.inputs[captures + i];
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] >= 0) place[static_cast<size_t>(body.output_slots_[i])] = step.outputs[i];
    }
    for (const Step& given : body.steps_) {
      Step& own = result_->branch_steps.emplace_back(given);
      for (auto* slots : {&own.inputs, &own.outputs}) {
        for (int32_t& s : *slots) s = s < 0 ? s : place[static_cast<size_t>(s)];
      }
      if (own.kind == StepKind::kCopy && slot(own.inputs[0]).side == slot(own.outputs[0]).side &&
          slot(own.inputs[0]).kind != SlotKind::kDynamic) {
        show(own.inputs[0], own.outputs[0], slot(own.inputs[0]).dims);  // both are of this plan
      } else {
        visit(own);
      }
    }
  }

  bool is_dynamic(const Step& step) {
    if (step.kind == StepKind::kControl || step.kind == StepKind::kHost) return true;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int32_t s = step.inputs[i];
      if (s < 0) continue;
      if (slot(s).kind == SlotKind::kDynamic || is_host_dtype(slot(s).dtype)) return true;
      const bool steers_shape = step.op != nullptr && has_bit(step.op->host_inputs, i);
      if (steers_shape && !is_fixed(s)) return true;
      if (steers_shape && slot(s).fixed.buffer != nullptr && slot(s).fixed.host() == nullptr)
        return true;
    }
    return step.op != nullptr && (step.op->flags & kOpDataDependent) != 0;
  }

  void add_dynamic(const Step& step) {
    for (const int32_t s : step.outputs) {
      if (s < 0) continue;
      slot(s).kind = SlotKind::kDynamic;
      if (step.kind == StepKind::kView) slot(s).root = slot(step.inputs[0]).root;
    }
    RunStep& run = add_step(step);
    run.dynamic = true;
    run.instance = step.instance;
  }

  void set_fixed(int32_t s, TensorRef tensor) {
    if (s < 0) return;
    SlotState& state = slot(s);
    state.kind = SlotKind::kStatic;
    state.dtype = tensor.dtype;
    state.dims = tensor.dims;
    state.fixed = std::move(tensor);
  }

  void visit_copy(const Step& step) {
    const SlotState& from = slot(step.inputs[0]);
    if (from.kind == SlotKind::kStatic && from.bytes() <= kStaticBytes) {
      return set_fixed(step.outputs[0],
                       usable_on(from.fixed, plan_.side_device(step.side))
                           ? from.fixed
                           : move_tensor(from.fixed, plan_.side_device(step.side), nullptr));
    }
    SlotState& to = slot(step.outputs[0]);
    to.kind = SlotKind::kArena;
    to.dtype = from.dtype;
    to.dims = from.dims;
    add_step(step);
  }

  void visit_shape_of(const Step& step) {
    auto values =
        std::make_shared<std::vector<int64_t>>(shape_of(*step.node, slot(step.inputs[0]).dims));
    Dims dims;
    if (step.node->op == "Shape") dims = {static_cast<int64_t>(values->size())};
    const int64_t* data = values->data();
    set_fixed(step.outputs[0], wrap_host(plan_.host_, kit::kInt64, dims, data, std::move(values)));
  }

  std::vector<ShapeOutput> infer(const Step& step) {
    std::vector<ShapeInput> in(step.inputs.size());
    for (size_t i = 0; i < in.size(); ++i) {
      const int32_t s = step.inputs[i];
      if (s < 0) continue;
      in[i].given = true;
      in[i].dtype = slot(s).dtype;
      in[i].dims = slot(s).dims;
      if (!is_fixed(s)) continue;
      static const int64_t kEmpty = 0;
      in[i].data = slot(s).fixed.buffer == nullptr ? static_cast<const void*>(&kEmpty)
                                                   : static_cast<const void*>(slot(s).fixed.host());
    }
    std::vector<ShapeOutput> out(step.node->outputs.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (step.outputs[i] >= 0) out[i].dtype = slot(step.outputs[i]).dtype;
    }
    infer_shapes(*step.node, *step.op, in, out);
    return out;
  }

  void visit_view(const Step& step) { show(step.inputs[0], step.outputs[0], infer(step)[0].dims); }

  /// `view` shows the memory of `of` as `dims`.
  void show(int32_t of, int32_t view, const Dims& dims) {
    const SlotState& from = slot(of);
    SlotState& to = slot(view);
    to.dims = dims;
    to.dtype = from.dtype;
    to.root = from.root;
    to.kind = from.kind;
    to.index = from.index;
    to.fixed = from.fixed;
    to.fixed.dims = dims;
  }

  void visit_launch(const Step& step) {
    const std::vector<ShapeOutput> shapes = infer(step);
    std::shared_ptr<KernelInstance> instance = step.instance;
    if (instance == nullptr) instance = choose_with_shapes(step, shapes);
    if (instance == nullptr) return add_dynamic(step);
    if (compute_now(step, *instance, shapes)) return;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      SlotState& state = slot(step.outputs[i]);
      state.kind = SlotKind::kArena;
      state.dtype = shapes[i].dtype;
      state.dims = shapes[i].dims;
      if (state.layout != 0) {
        state.layout_bytes =
            layout_bytes(*instance->device(), state.layout, state.dtype, state.dims);
      }
    }
    RunStep& run = add_step(step);
    run.workspace_bytes = workspace_bytes(step, *instance);
    run.instance = std::move(instance);
  }

  std::shared_ptr<KernelInstance> choose_with_shapes(const Step& step,
                                                     const std::vector<ShapeOutput>& shapes) {
    std::vector<NodeDescription::Value> in(step.inputs.size()), out(shapes.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      const SlotState& state = slot(step.inputs[i]);
      in[i].given = in[i].known = true;
      in[i].dtype = state.dtype;
      in[i].dims = state.dims;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].given = out[i].known = step.outputs[i] >= 0;
      out[i].dtype = shapes[i].dtype;
      out[i].dims = shapes[i].dims;
    }
    const NodeDescription description(*step.node, in, out, plan_.options_.math_mode);
    const bool on_host = step.side == Side::kHost && plan_.host_kernels_ != nullptr;
    const KernelRegistry& kernels = on_host ? *plan_.host_kernels_ : *plan_.device_kernels_;
    KernelChoice choice = kernels.choose(description.get());
    if (choice.instance != nullptr) return choice.instance;
    if (plan_.options_.fallback == Fallback::kError || plan_.host_kernels_ == nullptr) {
      raise(CHIPDOCK_UNSUPPORTED, describe(*step.node), " has no kernel on ",
            plan_.side_device(step.side).name(), " for these shapes: ", choice.reason);
    }
    return nullptr;  // the dynamic way moves its tensors to the host
  }

  /// Small values that follow from shapes: computed here, once.
  bool compute_now(const Step& step, const KernelInstance& instance,
                   const std::vector<ShapeOutput>& shapes) {
    const bool host_side = plan_.same_device() || step.side == Side::kHost;
    if (!host_side || (step.op->flags & kOpRandom) != 0) return false;
    for (const int32_t s : step.outputs) {
      if (s >= 0 && slot(s).layout != 0) return false;  // what is fixed is read by its elements
    }
    uint64_t bytes = 0;
    for (const ShapeOutput& shape : shapes) {
      uint64_t n = 1;
      for (int64_t d : shape.dims) n *= static_cast<uint64_t>(d);
      bytes += kit::dtype_bytes(shape.dtype, n);
    }
    if (bytes > kStaticBytes) return false;
    std::vector<const TensorRef*> in(step.inputs.size(), nullptr);
    for (size_t i = 0; i < in.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      in[i] = host_tensor(step.inputs[i]);
      if (in[i] == nullptr || !usable_on(*in[i], *instance.device())) return false;
    }
    const NodeCall call{*step.node,
                        *step.op,
                        instance,
                        &step.packed,
                        step.host_inputs,
                        step.host_outputs,
                        plan_.options_.max_threads,
                        plan_.options_.math_mode,
                        plan_.options_.deterministic};
    std::vector<chipdock_dtype> dtypes(shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) dtypes[i] = shapes[i].dtype;
    std::vector<TensorRef> results = run_node(call, in, dtypes);
    for (size_t i = 0; i < results.size(); ++i) set_fixed(step.outputs[i], std::move(results[i]));
    return true;
  }

  uint64_t workspace_bytes(const Step& step, const KernelInstance& instance) {
    const auto& table = instance.device()->tables().kernel;
    if (table.workspace_size == nullptr) return 0;
    std::vector<chipdock_tensor> tensors(step.inputs.size() + step.outputs.size());
    std::vector<const chipdock_tensor*> inputs(step.inputs.size(), nullptr);
    std::vector<const chipdock_tensor*> outputs(step.outputs.size(), nullptr);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool input = i < inputs.size();
      const int32_t s = input ? step.inputs[i] : step.outputs[i - inputs.size()];
      if (s < 0) continue;
      const SlotState& state = slot(s);
      tensors[i].struct_size = sizeof(chipdock_tensor);
      tensors[i].dtype = state.dtype;
      tensors[i].rank = static_cast<int32_t>(state.dims.size());
      tensors[i].layout = state.layout;
      tensors[i].shape = state.dims.data();
      (input ? inputs[i] : outputs[i - inputs.size()]) = &tensors[i];
    }
    const chipdock_launch_desc desc =
        launch_desc(inputs, outputs, plan_.options_.math_mode, plan_.options_.deterministic,
                    plan_.options_.max_threads);
    uint64_t bytes = 0;
    ErrorRecord error;
    instance.device()->check_call(table.workspace_size(instance.handle(), &desc, &bytes, &error),
                                  error, ("workspace_size of " + describe(*step.node)).c_str());
    return bytes;
  }

  void mark_outputs() {
    for (size_t i = 0; i < plan_.output_slots_.size(); ++i) {
      SlotState& root = slot(slot(plan_.output_slots_[i]).root);
      if (root.kind != SlotKind::kArena) continue;
      root.kind = SlotKind::kOutput;
      root.index = static_cast<int32_t>(i);
    }
    for (SlotState& state : result_->slots) {  // views follow their root
      if (state.kind != SlotKind::kArena) continue;
      state.kind = slot(state.root).kind;
      state.index = slot(state.root).index;
    }
  }

  Plan& plan_;
  std::shared_ptr<Specialization> result_;
  const std::vector<Dims>& inputs_;
  size_t index_ = 0;  ///< Of the plan's step at hand.
};

std::shared_ptr<Specialization> specialize(Plan& plan, const std::vector<Dims>& inputs) {
  return Specializer(plan, inputs).build();
}

}  // namespace chipdock::runtime
