// SPDX-License-Identifier: Apache-2.0
// Steps of a frame that nothing could be prepared for, because their shapes depend on data; and the
// profile record of any step.
#include "exec/frame.hpp"
#include "exec/node_runner.hpp"
#include "host_ops/host_op.hpp"
#include "host_queue.hpp"
#include "profiler.hpp"

namespace chipdock::runtime {

void Frame::execute_dynamic(const RunStep& run, const RunOptions& options) {
  const Step& step = *run.step;
  std::vector<TensorRef> tensors(step.inputs.size());
  std::vector<const TensorRef*> inputs(step.inputs.size(), nullptr);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (step.inputs[i] < 0) continue;
    tensors[i] = tensor(step.inputs[i]);
    inputs[i] = &tensors[i];
  }
  std::vector<TensorRef> outputs = run_dynamic(step, run, inputs, options);
  for (size_t i = 0; i < step.outputs.size() && i < outputs.size(); ++i) {
    if (step.outputs[i] >= 0)
      produced_[static_cast<size_t>(step.outputs[i])] = std::move(outputs[i]);
  }
  for (const int32_t slot : run.release) produced_[static_cast<size_t>(slot)] = TensorRef{};
}

std::vector<uint32_t> Frame::output_layouts(const Step& step) const {
  std::vector<uint32_t> layouts(step.outputs.size(), 0);
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (step.outputs[i] >= 0) layouts[i] = state(step.outputs[i]).layout;
  }
  return layouts;
}

std::vector<TensorRef> Frame::run_dynamic(const Step& step, const RunStep& run,
                                          const std::vector<const TensorRef*>& inputs,
                                          const RunOptions& options) {
  if (step.kind == StepKind::kCopy) {
    wait(options);
    return {move_tensor(*inputs[0], plan_.side_device(step.side), stream_)};
  }
  if (step.kind == StepKind::kControl) {
    wait(options);
    return run_control(plan_, step, inputs, options);
  }
  if (step.kind == StepKind::kHost) {
    if (stream_ != nullptr) stream_->sync();
    return run_host_op(plan_, step, inputs);
  }
  std::vector<chipdock_dtype> dtypes(step.outputs.size());
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (step.outputs[i] >= 0) dtypes[i] = state(step.outputs[i]).dtype;
  }
  if (step.kind == StepKind::kShapeOf) {
    auto values = std::make_shared<std::vector<int64_t>>(shape_of(*step.node, inputs[0]->dims));
    Dims dims;
    if (step.node->op == "Shape") dims = {static_cast<int64_t>(values->size())};
    const int64_t* data = values->data();
    return {wrap_host(plan_.host(), kit::kInt64, dims, data, std::move(values))};
  }
  if (step.kind == StepKind::kView) {
    std::vector<ShapeOutput> shapes(step.node->outputs.size());
    infer_shapes(*step.node, *step.op, shape_inputs(inputs, step.op->host_inputs), shapes);
    TensorRef view = *inputs[0];
    view.dims = shapes[0].dims;
    return {view};
  }
  if (run.instance == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, describe(*step.node), " has no kernel on ",
          plan_.side_device(step.side).name(), " for the shapes of this run");
  }
  const bool on_device = step.side == Side::kDevice;
  // What runs now may be waited for inside, without a way out: nothing else is to be waited for.
  if ((step.op->flags & kOpDataDependent) != 0) wait(options);
  NodeCall call{*step.node,
                *step.op,
                *run.instance,
                step.packed.empty() ? nullptr : &step.packed,
                step.host_inputs,
                step.host_outputs,
                plan_.options().max_threads,
                plan_.options().math_mode,
                plan_.options().deterministic,
                options.seed,
                run.seed_offset,
                on_device ? stream_ : nullptr,
                output_layouts(step)};
  return run_node(call, inputs, dtypes);
}

void Frame::record(const RunStep& run, const RunOptions& options, int64_t start_ns) {
  const Step& step = *run.step;
  ProfileRecord line;
  line.start_ns = start_ns;
  line.duration_ns = now_ns() - start_ns;
  line.thread = thread_label();
  line.device = plan_.side_device(step.side).name();
  if (step.node == nullptr) {
    line.name = "copy";
    line.category = "copy";
  } else {
    line.name = step.node->op;
    line.category = "node";
    line.args.emplace_back("node", step.node->name);
    if (run.instance != nullptr && run.instance->kernel().name != nullptr) {
      line.args.emplace_back("kernel", run.instance->kernel().name);
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] < 0) continue;
      const TensorRef out = tensor(step.outputs[i]);
      line.args.emplace_back("output " + std::to_string(i),
                             kit::dtype_name(out.dtype) + to_string(out.dims) +
                                 (out.layout == 0 ? "" : " layout " + std::to_string(out.layout)));
    }
  }
  options.profiler->add(std::move(line));
}

}  // namespace chipdock::runtime
