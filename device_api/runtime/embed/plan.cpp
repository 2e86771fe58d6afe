// SPDX-License-Identifier: Apache-2.0
// host_plan.h but for run_op: compiling graphs, telling where nodes run, running.
#include "embed/embed.hpp"

namespace chipdock::embed {

using runtime::Device;
using runtime::Plan;
using runtime::TensorRef;

runtime::Fallback read_fallback(int32_t fallback) {
  if (fallback == CHIPDOCK_HOST_FALLBACK_ERROR) return runtime::Fallback::kError;
  if (fallback == CHIPDOCK_HOST_FALLBACK_ALLOW) return runtime::Fallback::kAllow;
  runtime::raise(CHIPDOCK_UNSUPPORTED, "fallback is ", fallback, ", known are 0 and 1");
}

std::shared_ptr<Device> host_device(const chipdock_host_device& device,
                                    const chipdock_host_device* host) {
  const std::shared_ptr<Device>& chosen = host != nullptr ? host->device : device.device;
  if (!chosen->host_visible() || (chosen->info().flags & CHIPDOCK_DEVICE_READS_HOST) == 0 ||
      chosen->tables().kernel.launch == nullptr) {
    runtime::raise(CHIPDOCK_FAILED_PRECONDITION, chosen->name(),
                   " cannot be the host device: it has no kernels, or its memory cannot be read by "
                   "the host; open one that can, such as the one inside chipdock, and name it in "
                   "desc.host [HPL-3]");
  }
  return chosen;
}

namespace {

runtime::PlanOptions read_plan_options(const chipdock_host_plan_desc& desc) {
  runtime::PlanOptions options;
  options.fallback = read_fallback(desc.fallback);
  options.max_threads = desc.max_threads;
  options.memory_limit = desc.memory_limit;
  require(desc.deterministic <= 1, "deterministic is ", desc.deterministic, ", it must be 0 or 1");
  options.deterministic = desc.deterministic == 1;
  if (desc.cached_shapes != 0) options.cached_signatures = desc.cached_shapes;
  if (desc.math_mode < CHIPDOCK_MATH_STRICT || desc.math_mode > CHIPDOCK_MATH_BF16X3) {
    runtime::raise(CHIPDOCK_UNSUPPORTED, "math_mode is ", desc.math_mode, ", known are 0 to 2");
  }
  options.math_mode = desc.math_mode;
  return options;
}

int32_t placement_of(runtime::Placement placement) {
  switch (placement) {
    case runtime::Placement::kDevice:
      return CHIPDOCK_HOST_PLACEMENT_DEVICE;
    case runtime::Placement::kFallback:
      return CHIPDOCK_HOST_PLACEMENT_FALLBACK;
    case runtime::Placement::kShape:
      return CHIPDOCK_HOST_PLACEMENT_SHAPE;
    case runtime::Placement::kView:
      return CHIPDOCK_HOST_PLACEMENT_VIEW;
    case runtime::Placement::kFolded:
      return CHIPDOCK_HOST_PLACEMENT_FOLDED;
    case runtime::Placement::kControl:
    case runtime::Placement::kHost:  // driven by the host as well
      break;
  }
  return CHIPDOCK_HOST_PLACEMENT_CONTROL;
}

void check_given_output(const Plan& plan, size_t i, const TensorRef& given) {
  const runtime::IrGraph& graph = plan.graph();
  const runtime::IrValue& value = graph.values[static_cast<size_t>(graph.outputs[i])];
  require(kit::operator==(given.dtype, value.dtype), "output ", i, " is ",
          kit::dtype_name(given.dtype), ", the graph computes ", kit::dtype_name(value.dtype));
}

}  // namespace

void run_plan(Plan& plan, const std::vector<TensorRef>& inputs, const chipdock_host_stream* stream,
              uint64_t seed, uint32_t output_count, chipdock_host_tensor** outputs) {
  require(output_count == plan.graph().outputs.size(), "the graph has ",
          plan.graph().outputs.size(), " outputs, output_count is ", output_count);
  need_list(outputs, output_count, "outputs");
  std::vector<TensorRef> bound(output_count);
  std::vector<std::unique_ptr<chipdock_host_tensor>> made(output_count);
  bool any = false;
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i] == nullptr) {
      made[i] = std::make_unique<chipdock_host_tensor>();
      continue;
    }
    bound[i] = outputs[i]->tensor;
    check_given_output(plan, i, bound[i]);
    any = true;
  }
  runtime::RunOptions options;
  if (stream != nullptr) options.stream = stream->stream;
  if (any) options.bound_outputs = &bound;
  options.seed = seed;
  std::vector<TensorRef> results = plan.run(inputs, options);
  for (size_t i = 0; i < output_count; ++i) {
    if (made[i] == nullptr) continue;
    made[i]->tensor = std::move(results[i]);
    made[i]->device = plan.device();
    outputs[i] = made[i].release();
  }
}

}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_plan_compile(chipdock_host_graph* graph,
                                                         chipdock_host_device* device,
                                                         const chipdock_host_plan_desc* desc,
                                                         chipdock_host_plan** out_plan,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    chipdock_host_graph& own = need(graph, "graph");
    need(device, "device");
    need(out_plan, "out_plan");
    chipdock_host_plan_desc given{};
    if (desc != nullptr) given = take(desc, "desc");
    const chipdock::runtime::PlanOptions options = read_plan_options(given);
    require(!own.graph->outputs.empty(), "the graph has no outputs set");
    auto made = std::make_unique<chipdock_host_plan>();
    own.frozen = true;
    made->plan =
        Plan::compile(own.graph, device->device, host_device(*device, given.host), options);
    *out_plan = made.release();
  });
}

void CHIPDOCK_CALL chipdock_host_plan_destroy(chipdock_host_plan* plan) { delete plan; }

chipdock_status CHIPDOCK_CALL chipdock_host_plan_describe(const chipdock_host_plan* plan,
                                                          chipdock_host_plan_info* out_info,
                                                          chipdock_error* error) {
  return guard(error, [&] {
    const Plan& own = *need(plan, "plan").plan;
    chipdock_host_plan_info info{};
    info.input_count = static_cast<uint32_t>(own.graph().inputs.size());
    info.output_count = static_cast<uint32_t>(own.graph().outputs.size());
    info.node_count = static_cast<uint32_t>(own.report().size());
    info.weight_bytes = own.weight_bytes();
    chipdock::kit::write_struct(out_info, info, "out_info");
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_plan_node(const chipdock_host_plan* plan,
                                                      uint32_t index,
                                                      chipdock_host_node_info* out_info,
                                                      chipdock_error* error) {
  return guard(error, [&] {
    const Plan& own = *need(plan, "plan").plan;
    require(index < own.report().size(), "node ", index, " does not exist, the plan has ",
            own.report().size());
    const chipdock::runtime::NodeReport& line = own.report()[index];
    chipdock_host_node_info info{};
    info.placement = placement_of(line.placement);
    info.since_version = line.since_version;
    info.name = line.name.c_str();
    info.op = line.op.c_str();
    info.device = line.device.c_str();
    info.kernel = line.kernel.c_str();
    info.reason = line.reason.c_str();
    chipdock::kit::write_struct(out_info, info, "out_info");
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_plan_run(chipdock_host_plan* plan,
                                                     const chipdock_host_run_desc* desc,
                                                     uint32_t output_count,
                                                     chipdock_host_tensor** outputs,
                                                     chipdock_error* error) {
  return guard(error, [&] {
    Plan& own = *need(plan, "plan").plan;
    const chipdock_host_run_desc given = take(desc, "desc");
    need_list(given.inputs, given.input_count, "inputs");
    std::vector<TensorRef> inputs;
    inputs.reserve(given.input_count);
    for (uint32_t i = 0; i < given.input_count; ++i) {
      inputs.push_back(need(given.inputs[i], "inputs entry").tensor);
    }
    run_plan(own, inputs, given.stream, given.seed, output_count, outputs);
  });
}
