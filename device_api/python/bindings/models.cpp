// SPDX-License-Identifier: Apache-2.0
// Building a graph, compiling it to a plan, running it. The Python layer (chipdock._lower) reads
// ONNX.
#include <cstring>
#include <optional>
#include <random>

#include "bindings.hpp"
#include "core_docs.hpp"
#include "exec/frame.hpp"  // NOLINT(misc-include-cleaner): completes what Specialization owns
#include "exec/plan.hpp"
#include "exec/specialize.hpp"
#include "host_ops/host_op.hpp"
#include "profiler.hpp"

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::Dims;
using runtime::IrConstant;
using runtime::IrGraph;
using runtime::IrNode;
using runtime::Plan;
using runtime::PlanOptions;
using runtime::RunOptions;
using runtime::TensorRef;

/// numpy's object dtype stands for every value that only the host can hold.
chipdock_dtype dtype_from(const py::object& dtype) {
  const py::dtype numpy = py::dtype::from_args(dtype);
  return numpy.kind() == 'O' ? runtime::kHostDtype : from_numpy_dtype(numpy);
}

int32_t add_value(IrGraph& graph, const std::string& name, const py::object& dtype,
                  const std::optional<Dims>& dims) {
  runtime::IrValue value;
  value.name = name;
  if (!dtype.is_none()) value.dtype = dtype_from(dtype);
  if (dims.has_value()) {
    value.rank = static_cast<int32_t>(dims->size());
    value.dims = *dims;
  }
  graph.values.push_back(std::move(value));
  return static_cast<int32_t>(graph.values.size() - 1);
}

/// Keeps the array; copies it only if it is not C-contiguous, misaligned or sub-byte.
IrConstant make_constant(const py::array& given) {
  py::array array = py::array::ensure(given, py::array::c_style);
  IrConstant constant;
  if (holds_strings(array)) {
    const TensorRef strings = strings_of(array);
    constant.dtype = strings.dtype;
    constant.dims = strings.dims;
    constant.object = strings.object;
    return constant;
  }
  const chipdock_dtype dtype = from_numpy_dtype(array.dtype());
  constant.dtype = dtype;
  constant.dims.assign(array.shape(), array.shape() + array.ndim());
  constant.bytes = kit::dtype_bytes(dtype, static_cast<uint64_t>(array.size()));
  if (dtype.bits < 8) {
    auto kept = std::make_shared<TensorRef>(borrow_numpy(array, nullptr));
    constant.data = kept->host();
    constant.keep = kept;
    return constant;
  }
  if (reinterpret_cast<uintptr_t>(array.data()) % 16 != 0) {
    std::shared_ptr<char[]> copy(new char[constant.bytes + 1]);
    std::memcpy(copy.get(), array.data(), constant.bytes);
    constant.data = copy.get();
    constant.keep = std::move(copy);
    return constant;
  }
  constant.data = array.data();
  constant.keep = keep_object(std::move(array));
  return constant;
}

void add_attribute(IrNode& node, const std::string& name, const std::string& kind,
                   const py::object& value) {
  runtime::Attributes& attributes = node.attributes;
  if (kind == "int") return attributes.add_integer(name, value.cast<int64_t>());
  if (kind == "float") return attributes.add_number(name, value.cast<double>());
  if (kind == "string") return attributes.add_text(name, value.cast<std::string>());
  if (kind == "ints") return attributes.add_integers(name, value.cast<std::vector<int64_t>>());
  if (kind == "floats") return attributes.add_numbers(name, value.cast<std::vector<double>>());
  if (kind == "strings") return attributes.add_texts(name, value.cast<std::vector<std::string>>());
  if (kind == "tensor") {
    const IrConstant constant = make_constant(value.cast<py::array>());
    return attributes.add_tensor(name, constant.dtype, constant.dims, constant.data,
                                 constant.bytes);
  }
  runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "attribute '", name, "' has kind '", kind, "'");
}

void register_graph(py::module_& module) {
  py::class_<IrNode, std::shared_ptr<IrNode>>(module, "GraphNode", docs::GraphNode::kClass)
      .def("add_attribute", &add_attribute, py::arg("name"), py::arg("kind"), py::arg("value"),
           docs::GraphNode::add_attribute)
      .def(
          "add_subgraph",
          [](IrNode& node, const std::string& attribute, std::shared_ptr<IrGraph> graph,
             const std::vector<std::pair<int32_t, int32_t>>& captures) {
            node.subgraphs.push_back({attribute, std::move(graph), captures});
          },
          py::arg("attribute"), py::arg("graph"), py::arg("captures"),
          docs::GraphNode::add_subgraph);
  py::class_<IrGraph, std::shared_ptr<IrGraph>>(module, "ModelGraph", docs::ModelGraph::kClass)
      .def(py::init<>(), docs::ModelGraph::kInit)
      .def("add_value", &add_value, py::arg("name"), py::arg("dtype"), py::arg("dims"),
           docs::ModelGraph::add_value)
      .def(
          "set_value",
          [](IrGraph& graph, int32_t value, const py::object& dtype) {
            graph.values.at(static_cast<size_t>(value)).dtype = dtype_from(dtype);
          },
          py::arg("value"), py::arg("dtype"), docs::ModelGraph::set_value)
      .def(
          "name_dims",
          [](IrGraph& graph, int32_t value, const std::vector<std::string>& names) {
            graph.values.at(static_cast<size_t>(value)).symbols = names;
          },
          py::arg("value"), py::arg("names"), docs::ModelGraph::name_dims)
      .def(
          "add_constant",
          [](IrGraph& graph, int32_t value, const py::array& array) {
            IrConstant constant = make_constant(array);
            graph.values.at(static_cast<size_t>(value)).dtype = constant.dtype;
            graph.constants[value] = std::move(constant);
          },
          py::arg("value"), py::arg("array"), docs::ModelGraph::add_constant)
      .def(
          "add_node",
          [](IrGraph& graph, const std::string& name, const std::string& domain,
             const std::string& op, int32_t since_version, const std::vector<int32_t>& inputs,
             const std::vector<int32_t>& outputs) {
            auto node = std::make_shared<IrNode>();
            node->name = name;
            node->domain = domain;
            node->op = op;
            node->since_version = since_version;
            node->inputs = inputs;
            node->outputs = outputs;
            graph.nodes.push_back(node);
            return node;
          },
          py::arg("name"), py::arg("domain"), py::arg("op"), py::arg("since_version"),
          py::arg("inputs"), py::arg("outputs"), docs::ModelGraph::add_node)
      .def_property_readonly(
          "node_count", [](const IrGraph& graph) { return graph.nodes.size(); },
          docs::ModelGraph::node_count)
      .def("stand_for", &IrGraph::stand_for, py::arg("first"), docs::ModelGraph::stand_for)
      .def(
          "set_inputs",
          [](IrGraph& graph, const std::vector<int32_t>& values) { graph.inputs = values; },
          py::arg("values"), docs::ModelGraph::set_inputs)
      .def(
          "set_outputs",
          [](IrGraph& graph, const std::vector<int32_t>& values) { graph.outputs = values; },
          py::arg("values"), docs::ModelGraph::set_outputs);
}

PlanOptions plan_options(const py::dict& given) {
  PlanOptions options;
  const auto fallback = given["fallback"].cast<std::string>();
  options.fallback = fallback == "allow"  ? runtime::Fallback::kAllow
                     : fallback == "warn" ? runtime::Fallback::kWarn
                                          : runtime::Fallback::kError;
  options.max_threads = given["threads"].cast<uint32_t>();
  options.memory_limit = given["memory_limit"].cast<uint64_t>();
  options.deterministic = given["deterministic"].cast<bool>();
  options.cached_signatures = given["cached_signatures"].cast<size_t>();
  const auto capture = given["capture"].cast<std::string>();
  options.capture = capture == "on"    ? runtime::CapturePolicy::kOn
                    : capture == "off" ? runtime::CapturePolicy::kOff
                                       : runtime::CapturePolicy::kAuto;
  options.layouts = given["layouts"].cast<bool>();
  return options;
}

const char* placement_name(runtime::Placement placement) {
  switch (placement) {
    case runtime::Placement::kDevice:
      return "device";
    case runtime::Placement::kFallback:
      return "fallback";
    case runtime::Placement::kShape:
      return "shape";
    case runtime::Placement::kView:
      return "view";
    case runtime::Placement::kFolded:
      return "folded";
    case runtime::Placement::kControl:
      return "control";
    case runtime::Placement::kHost:
      return "host";
  }
  return "";
}

py::list report_list(const Plan& plan) {
  py::list out;
  for (const runtime::NodeReport& line : plan.report()) {
    py::dict entry;
    entry["name"] = line.name;
    entry["op"] = line.op;
    entry["since_version"] = line.since_version;
    entry["placement"] = placement_name(line.placement);
    entry["device"] = line.device;
    entry["kernel"] = line.kernel;
    entry["reason"] = line.reason;
    entry["layout"] = line.layout;
    out.append(entry);
  }
  return out;
}

/// Another seed for each run. The device of the system is asked once a thread: it costs 10 us.
uint64_t fresh_seed() {
  static thread_local std::mt19937_64 numbers(std::random_device{}());
  return numbers();
}

py::list run_plan(const std::shared_ptr<Plan>& plan, const py::sequence& values,
                  std::shared_ptr<runtime::Stream> stream, runtime::Profiler* profiler,
                  std::optional<uint64_t> seed, const py::object& bound) {
  std::vector<py::object> held;
  std::vector<TensorRef> inputs;
  inputs.reserve(values.size());
  const IrGraph& graph = plan->graph();
  for (const py::handle value : values) {
    const size_t i = inputs.size();
    const bool on_host =
        i < graph.inputs.size() &&
        runtime::is_host_dtype(graph.values[static_cast<size_t>(graph.inputs[i])].dtype);
    inputs.push_back(on_host ? host_value(value, plan->host(), held)
                             : input_tensor(value, plan->host(), held));
  }
  std::vector<TensorRef> bound_outputs;
  RunOptions options;
  if (!bound.is_none()) {
    for (const py::handle output : bound.cast<py::sequence>()) {
      bound_outputs.push_back(output.is_none() ? TensorRef{} : output.cast<const Array&>().tensor);
    }
    options.bound_outputs = &bound_outputs;
  }
  static const runtime::InterruptCheck kInterrupt = check_signals;
  options.stream = std::move(stream);
  options.profiler = profiler;
  options.interrupt = &kInterrupt;
  options.seed = seed.has_value() ? *seed : fresh_seed();
  options.seeded = seed.has_value();
  // Borrowed arrays outlive the call if a run ends before its work has.
  const std::function<std::shared_ptr<const void>()> keep = [&held] {
    const py::gil_scoped_acquire gil;
    return keep_object(py::cast(held));
  };
  options.keep_inputs = &keep;
  std::vector<TensorRef> outputs;
  {
    const NoGilScope no_gil;
    outputs = plan->run(inputs, options);
  }
  py::list out(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    out[i] = to_python(std::move(outputs[i]), plan->device());
  return out;
}

/// For each captured segment: the input shapes it is for, and its nodes as (operator, name).
py::list segment_list(Plan& plan) {
  py::list out;
  for (const runtime::SegmentReport& line : plan.segments()) {
    py::list shapes;
    for (size_t at = 0; at < line.key.size();) {
      const auto rank = static_cast<size_t>(line.key[at++]);
      py::tuple shape(rank);
      for (size_t i = 0; i < rank; ++i) shape[i] = line.key[at++];
      shapes.append(std::move(shape));
    }
    py::list nodes;
    for (const IrNode* node : line.nodes) nodes.append(py::make_tuple(node->op, node->name));
    out.append(py::make_tuple(std::move(shapes), std::move(nodes)));
  }
  return out;
}

py::dict memory_report(Plan& plan, const std::vector<Dims>& inputs) {
  std::shared_ptr<runtime::Specialization> spec;
  {
    const NoGilScope no_gil;
    spec = runtime::specialize(plan, inputs);
  }
  uint64_t workspace = 0;
  for (const runtime::RunStep& step : spec->steps)
    workspace = std::max(workspace, step.workspace_bytes);
  py::dict out;
  out["weight_bytes"] = plan.weight_bytes();
  out["activation_bytes"] = spec->activation_bytes;
  out["activation_lower_bound"] = spec->activation_lower_bound;
  out["layout_padding_bytes"] = spec->layout_padding;
  out["workspace_bytes"] = workspace;
  out["arena_bytes"] = spec->memory[0].arena_bytes;
  out["host_arena_bytes"] = spec->memory[1].arena_bytes;
  out["steps"] = spec->steps.size();
  size_t dynamic = 0;
  for (const runtime::RunStep& step : spec->steps) dynamic += step.dynamic ? 1 : 0;
  out["dynamic_steps"] = dynamic;
  return out;
}

using Versions = std::tuple<std::string, std::string, int32_t, int32_t>;

std::vector<Versions> known_operators(bool needs_kernel) {
  std::vector<Versions> out;
  constexpr uint32_t kNoKernel = runtime::kOpView | runtime::kOpShapeOnly;
  for (const runtime::Op& op : runtime::all_ops()) {
    if (needs_kernel == ((op.flags & kNoKernel) == 0))
      out.emplace_back(op.domain, op.name, op.since, op.until);
  }
  if (needs_kernel) return out;
  for (const runtime::HostOp& op : runtime::all_host_ops()) {
    // The others are known for numbers as well, and need a kernel for those.
    if (runtime::find_op(op.domain, op.name, op.since) == nullptr)
      out.emplace_back(op.domain, op.name, op.since, op.until);
  }
  for (const char* name : {"If", "Loop", "Scan"}) out.emplace_back("", name, 1, 0);
  return out;
}

}  // namespace

TensorRef input_tensor(const py::handle& value, const std::shared_ptr<Device>& host,
                       std::vector<py::object>& held) {
  if (py::isinstance<Array>(value)) {
    const auto& array = value.cast<const Array&>();
    if (array.tensor.buffer != nullptr && array.tensor.buffer->memory() == nullptr &&
        !array.contiguous()) {
      held.push_back(py::cast(make_array(dense(array), array.device)));
      return held.back().cast<const Array&>().tensor;
    }
    return dense(array);
  }
  py::array array = py::array::ensure(value, py::array::c_style);
  if (!array) throw py::error_already_set();
  if (reinterpret_cast<uintptr_t>(array.data()) %
          static_cast<uintptr_t>(std::max<py::ssize_t>(array.itemsize(), 1)) !=
      0) {
    array = array.attr("copy")();
  }
  const TensorRef tensor = borrow_numpy(array, host);
  held.push_back(std::move(array));
  return tensor;
}

void register_models(py::module_& module) {
  register_graph(module);
  module.def("known_operators", &known_operators, py::arg("needs_kernel"), docs::known_operators);
  py::class_<Plan, std::shared_ptr<Plan>>(module, "Plan", kNoGilInDestructor, docs::Plan::kClass)
      .def_static(
          "compile",
          [](std::shared_ptr<IrGraph> graph, std::shared_ptr<Device> device,
             std::shared_ptr<Device> host, const py::dict& options) {
            const PlanOptions parsed = plan_options(options);
            const NoGilScope no_gil;
            return Plan::compile(std::move(graph), std::move(device), std::move(host), parsed);
          },
          py::arg("graph"), py::arg("device"), py::arg("host"), py::arg("options"),
          docs::Plan::compile)
      .def("run", &run_plan, py::arg("inputs"), py::arg("stream") = nullptr,
           py::arg("profiler") = nullptr, py::arg("seed") = py::none(),
           py::arg("bound") = py::none(), docs::Plan::run)
      .def("report", &report_list, docs::Plan::report)
      .def("segments", &segment_list, docs::Plan::segments)
      .def("memory", &memory_report, py::arg("input_shapes"), docs::Plan::memory)
      .def_property_readonly("device", &Plan::device, docs::Plan::device)
      .def_property_readonly("host", &Plan::host, docs::Plan::host)
      .def_property_readonly("weight_bytes", &Plan::weight_bytes, docs::Plan::weight_bytes);
}

}  // namespace chipdock::python
