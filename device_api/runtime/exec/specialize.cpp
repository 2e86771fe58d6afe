// SPDX-License-Identifier: Apache-2.0
#include "exec/specialize.hpp"

#include <algorithm>
#include <cstring>

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
    for (size_t i = 0; i < plan_.steps_.size(); ++i) visit(static_cast<int32_t>(i));
    mark_outputs();
    lay_out_memory();
    return result_;
  }

 private:
  SlotState& slot(int32_t s) { return result_->slots[static_cast<size_t>(s)]; }

  void set_up_slots() {
    result_->slots.resize(plan_.slots_.size());
    for (size_t i = 0; i < plan_.slots_.size(); ++i) {
      const auto value = static_cast<size_t>(plan_.slots_[i].value);
      result_->slots[i].dtype = plan_.graph_->values[value].dtype;
      result_->slots[i].layout = plan_.graph_->values[value].layout;
      result_->slots[i].root = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      SlotState& state = slot(plan_.input_slots_[i]);
      state.kind = SlotKind::kInput;
      state.index = static_cast<int32_t>(i);
      state.dims = inputs_[i];
      result_->key.push_back(static_cast<int64_t>(inputs_[i].size()));
      result_->key.insert(result_->key.end(), inputs_[i].begin(), inputs_[i].end());
    }
    for (const auto& [index, tensor] : plan_.constant_slots_) {
      SlotState& state = slot(index);
      state.kind = SlotKind::kConstant;
      state.dtype = tensor.dtype;
      state.dims = tensor.dims;
      state.fixed = tensor;
    }
  }

  bool is_fixed(int32_t s) {
    return slot(s).kind == SlotKind::kConstant || slot(s).kind == SlotKind::kStatic;
  }
  /// Host address of a fixed slot's elements, also when the constant itself was uploaded.
  const TensorRef* host_tensor(int32_t s) { return is_fixed(s) ? &slot(s).fixed : nullptr; }

  void visit(int32_t index) {
    const Step& step = plan_.steps_[static_cast<size_t>(index)];
    if (is_dynamic(step)) return add_dynamic(index, step);
    switch (step.kind) {
      case StepKind::kCopy:
        return visit_copy(index, step);
      case StepKind::kShapeOf:
        return visit_shape_of(step);
      case StepKind::kView:
        return visit_view(step);
      case StepKind::kLaunch:
        return visit_launch(index, step);
      case StepKind::kControl:
      case StepKind::kHost:
        return add_dynamic(index, step);
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

  void add_dynamic(int32_t index, const Step& step) {
    for (const int32_t s : step.outputs) {
      if (s < 0) continue;
      slot(s).kind = SlotKind::kDynamic;
      if (step.kind == StepKind::kView) slot(s).root = slot(step.inputs[0]).root;
    }
    RunStep run;
    run.step = index;
    run.dynamic = true;
    run.instance = step.instance;
    result_->steps.push_back(std::move(run));
  }

  void set_fixed(int32_t s, TensorRef tensor) {
    if (s < 0) return;
    SlotState& state = slot(s);
    state.kind = SlotKind::kStatic;
    state.dtype = tensor.dtype;
    state.dims = tensor.dims;
    state.fixed = std::move(tensor);
  }

  void visit_copy(int32_t index, const Step& step) {
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
    RunStep run;
    run.step = index;
    result_->steps.push_back(std::move(run));
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

  void visit_view(const Step& step) {
    const Dims dims = infer(step)[0].dims;
    const SlotState& from = slot(step.inputs[0]);
    SlotState& to = slot(step.outputs[0]);
    to.dims = dims;
    to.dtype = from.dtype;
    to.root = from.root;
    to.kind = from.kind;
    to.index = from.index;
    to.fixed = from.fixed;
    to.fixed.dims = dims;
  }

  void visit_launch(int32_t index, const Step& step) {
    const std::vector<ShapeOutput> shapes = infer(step);
    std::shared_ptr<KernelInstance> instance = step.instance;
    if (instance == nullptr) instance = choose_with_shapes(step, shapes);
    if (instance == nullptr) return add_dynamic(index, step);
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
    RunStep run;
    run.step = index;
    run.instance = std::move(instance);
    run.workspace_bytes = workspace_bytes(step, *run.instance);
    result_->steps.push_back(std::move(run));
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

  /// The largest sum of live activations if none had a private layout.
  uint64_t plain_lower_bound(const std::vector<Lifetime>& lifetimes,
                             const std::vector<int32_t>& owners) {
    std::vector<Lifetime> plain = lifetimes;
    for (size_t i = 0; i < plain.size(); ++i) plain[i].bytes = slot(owners[i]).plain_bytes();
    return live_peak(plain);
  }

  void lay_out_memory() {
    const auto count = static_cast<int32_t>(result_->slots.size());
    std::vector<int32_t> first(static_cast<size_t>(count), -1),
        last(static_cast<size_t>(count), -1);
    std::vector<int32_t> last_read(static_cast<size_t>(count), -1);
    for (size_t r = 0; r < result_->steps.size(); ++r) {
      const Step& step = plan_.steps_[static_cast<size_t>(result_->steps[r].step)];
      auto touch = [&](int32_t s) {
        if (s < 0) return;
        last_read[static_cast<size_t>(s)] = static_cast<int32_t>(r);
        const auto root = static_cast<size_t>(slot(s).root);
        if (first[root] < 0) first[root] = static_cast<int32_t>(r);
        last[root] = static_cast<int32_t>(r);
      };
      for (int32_t s : step.outputs) touch(s);
      for (int32_t s : step.inputs) touch(s);
    }
    for (int32_t s = 0; s < count; ++s) {
      const int32_t at = last_read[static_cast<size_t>(s)];
      const auto& outputs = plan_.output_slots_;
      if (slot(s).kind == SlotKind::kDynamic && at >= 0 &&
          std::count(outputs.begin(), outputs.end(), s) == 0) {
        result_->steps[static_cast<size_t>(at)].release.push_back(s);
      }
    }
    for (const Side side : {Side::kDevice, Side::kHost}) {
      std::vector<Lifetime> lifetimes;
      std::vector<int32_t> owners;  // slot, or -1 - run step for a workspace
      for (int32_t s = 0; s < count; ++s) {
        const SlotState& state = slot(s);
        if (state.kind != SlotKind::kArena || state.root != s || state.bytes() == 0) continue;
        if (plan_.slots_[static_cast<size_t>(s)].side != side || first[static_cast<size_t>(s)] < 0)
          continue;
        lifetimes.push_back(
            {state.bytes(), first[static_cast<size_t>(s)], last[static_cast<size_t>(s)]});
        owners.push_back(s);
      }
      if (side == Side::kDevice) {
        std::vector<Lifetime> activations = lifetimes;
        const MemoryPlan alone = plan_memory(activations, plan_.side_device(side).alignment());
        result_->activation_bytes = alone.arena_bytes;
        result_->activation_lower_bound = alone.lower_bound;
        result_->layout_padding = alone.lower_bound - plain_lower_bound(lifetimes, owners);
      }
      for (size_t r = 0; r < result_->steps.size(); ++r) {
        const RunStep& run = result_->steps[r];
        if (run.workspace_bytes == 0 || plan_.steps_[static_cast<size_t>(run.step)].side != side)
          continue;
        lifetimes.push_back(
            {run.workspace_bytes, static_cast<int32_t>(r), static_cast<int32_t>(r)});
        owners.push_back(-1 - static_cast<int32_t>(r));
      }
      result_->memory[static_cast<size_t>(side)] =
          plan_memory(lifetimes, plan_.side_device(side).alignment());
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] >= 0) {
          slot(owners[i]).offset = lifetimes[i].offset;
        } else {
          result_->steps[static_cast<size_t>(-1 - owners[i])].workspace_offset =
              lifetimes[i].offset;
        }
      }
    }
    for (SlotState& state : result_->slots) state.offset = slot(state.root).offset;
    const uint64_t limit = plan_.options_.memory_limit;
    const uint64_t needed = plan_.weight_bytes_ + result_->memory[0].arena_bytes;
    if (limit != 0 && needed > limit) {
      raise(CHIPDOCK_OUT_OF_MEMORY, "these input shapes need ", needed, " bytes on ",
            plan_.device_->name(), " (weights ", plan_.weight_bytes_,
            ", activations and workspace ", result_->memory[0].arena_bytes,
            "), memory_limit allows ", limit);
    }
  }

  Plan& plan_;
  std::shared_ptr<Specialization> result_;
  const std::vector<Dims>& inputs_;
};

std::shared_ptr<Specialization> specialize(Plan& plan, const std::vector<Dims>& inputs) {
  return Specializer(plan, inputs).build();
}

}  // namespace chipdock::runtime
