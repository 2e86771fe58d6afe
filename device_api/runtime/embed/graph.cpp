// SPDX-License-Identifier: Apache-2.0
// host_graph.h: building the executor's graph, with the checks that the Python layer makes for ONNX
// files: every value has one source, and that before it is read.
#include "embed/embed.hpp"
#include "exec/check_bodies.hpp"

namespace chipdock::embed {
namespace {

using runtime::IrConstant;
using runtime::IrGraph;
using runtime::IrNode;
using runtime::IrSubgraph;

constexpr uint64_t kConstantAlignment = 16;

chipdock_host_graph& open(chipdock_host_graph* graph) {
  chipdock_host_graph& own = need(graph, "graph");
  if (own.frozen) {
    runtime::raise(CHIPDOCK_FAILED_PRECONDITION,
                   "the graph was compiled or made a body and does not change any more [HGR-5]");
  }
  return own;
}

std::string describe(const chipdock_host_graph& graph, int32_t value) {
  const std::string& name = graph.graph->values[static_cast<size_t>(value)].name;
  return "value " + std::to_string(value) + (name.empty() ? "" : " ('" + name + "')");
}

void check_value(const chipdock_host_graph& graph, int32_t value, const char* what) {
  require(value >= 0 && static_cast<size_t>(value) < graph.sourced.size(), what, " names value ",
          value, ", the graph has ", graph.sourced.size());
}

void check_source(const chipdock_host_graph& graph, int32_t value, bool wanted, const char* what) {
  check_value(graph, value, what);
  const bool has = graph.sourced[static_cast<size_t>(value)];
  require(has == wanted, what, " names ", describe(graph, value),
          has ? ", which has a source already [HGR-1]" : ", which has no source yet [HGR-2]");
}

std::vector<int32_t> read_values(const chipdock_host_graph& graph, uint32_t count,
                                 const int32_t* values, bool sourced, bool optional,
                                 const char* what) {
  need_list(values, count, what);
  std::vector<int32_t> out(values, values + count);
  for (const int32_t value : out) {
    if (!optional || value != CHIPDOCK_HOST_NO_VALUE) check_source(graph, value, sourced, what);
  }
  return out;
}

/// Marks values as sourced; one that stands twice in the list has two sources.
void give_sources(chipdock_host_graph& graph, const std::vector<int32_t>& values,
                  const char* what) {
  std::vector<int32_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) {
    require(sorted[i] < 0 || sorted[i] != sorted[i - 1], what, " names value ", sorted[i],
            " twice [HGR-1]");
  }
  for (const int32_t value : values) {
    if (value >= 0) graph.sourced[static_cast<size_t>(value)] = true;
  }
}

IrConstant read_constant(const chipdock_host_value_desc& desc, const runtime::Dims& dims,
                         std::shared_ptr<Borrowed>& borrowed) {
  runtime::check_bytes(desc.dtype, dims, "constant");
  IrConstant constant;
  constant.dtype = desc.dtype;
  constant.dims = dims;
  constant.bytes =
      kit::dtype_bytes(desc.dtype, static_cast<uint64_t>(runtime::element_count(dims)));
  require(desc.size == constant.bytes, "a constant of shape ", runtime::to_string(dims), " and ",
          kit::dtype_name(desc.dtype), " has ", constant.bytes, " bytes, size is ", desc.size);
  if (desc.release == nullptr) {
    std::shared_ptr<char[]> copy(new char[desc.size + 1]);
    std::memcpy(copy.get(), desc.data, desc.size);
    constant.data = copy.get();
    constant.keep = std::move(copy);
    return constant;
  }
  require(reinterpret_cast<uintptr_t>(desc.data) % kConstantAlignment == 0,
          "data of a constant that is kept must be aligned to ", kConstantAlignment, " bytes");
  borrowed = std::make_shared<Borrowed>(desc.release, desc.context);
  constant.data = desc.data;
  constant.keep = borrowed;
  return constant;
}

IrSubgraph read_body(const chipdock_host_graph& outer, const chipdock_host_body* given) {
  const chipdock_host_body body = take(given, "bodies entry");
  IrSubgraph out;
  out.attribute = &need(body.attribute, "attribute of a body");
  out.graph = need(body.graph, "graph of a body").graph;
  const std::vector<int32_t>& inputs = out.graph->inputs;
  require(out.graph != outer.graph, "a graph cannot be its own body");
  require(!out.graph->outputs.empty(), "body '", out.attribute, "' has no outputs set");
  require(body.capture_count <= inputs.size(), "body '", out.attribute, "' has ", inputs.size(),
          " inputs, it cannot capture ", body.capture_count, " values [HGR-6]");
  const std::vector<int32_t> captured =
      read_values(outer, body.capture_count, body.captures, true, false, "captures");
  const size_t formal = inputs.size() - captured.size();
  for (size_t i = 0; i < captured.size(); ++i) {
    const int32_t inner = inputs[formal + i];
    const chipdock_dtype from = outer.graph->values[static_cast<size_t>(captured[i])].dtype;
    const chipdock_dtype to = out.graph->values[static_cast<size_t>(inner)].dtype;
    require(kit::operator==(from, to), "body '", out.attribute, "' captures ",
            describe(outer, captured[i]), " of ", kit::dtype_name(from), " as ",
            kit::dtype_name(to));
    out.captures.emplace_back(captured[i], inner);
  }
  return out;
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_graph_create(chipdock_host_graph** out_graph,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    need(out_graph, "out_graph");
    auto made = std::make_unique<chipdock_host_graph>();
    made->graph = std::make_shared<IrGraph>();
    *out_graph = made.release();
  });
}

void CHIPDOCK_CALL chipdock_host_graph_destroy(chipdock_host_graph* graph) { delete graph; }

chipdock_status CHIPDOCK_CALL chipdock_host_graph_add_value(chipdock_host_graph* graph,
                                                            const chipdock_host_value_desc* desc,
                                                            int32_t* out_value,
                                                            chipdock_error* error) {
  return guard(error, [&] {
    chipdock_host_graph& own = open(graph);
    need(out_value, "out_value");
    const chipdock_host_value_desc given = take(desc, "desc");
    only_flags(given.flags, 0, "desc");
    check_dtype(given.dtype, "desc");
    require(own.sourced.size() < INT32_MAX, "the graph is full");
    const bool constant = given.data != nullptr;
    require(constant || (given.size == 0 && given.release == nullptr),
            "desc has size or release, but no data");
    chipdock::runtime::IrValue value;
    value.name = text_or_empty(given.name);
    value.dtype = given.dtype;
    if (given.rank != -1 || constant) {
      value.dims = read_dims(given.rank, given.dims, !constant, "desc");
      value.rank = given.rank;
    }
    const auto number = static_cast<int32_t>(own.sourced.size());
    std::shared_ptr<Borrowed> borrowed;
    if (constant) own.graph->constants[number] = read_constant(given, value.dims, borrowed);
    own.graph->values.push_back(std::move(value));
    own.sourced.push_back(constant);
    if (borrowed != nullptr) borrowed->arm();
    *out_value = number;
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_graph_add_node(chipdock_host_graph* graph,
                                                           const chipdock_host_node_desc* desc,
                                                           chipdock_error* error) {
  return guard(error, [&] {
    chipdock_host_graph& own = open(graph);
    const chipdock_host_node_desc given = take(desc, "desc");
    auto node = std::make_shared<IrNode>();
    node->op = &need(given.op, "op");
    node->domain = text_or_empty(given.domain);
    node->name = text_or_empty(given.name);
    node->since_version = given.since_version;
    require(given.since_version >= 1, "since_version of ", node->op, " is ", given.since_version,
            ", it must be 1 or more [HGR-4]");
    require(given.output_count >= 1, node->op, " has no outputs");
    node->inputs = read_values(own, given.input_count, given.inputs, true, true, "inputs");
    node->outputs = read_values(own, given.output_count, given.outputs, false, true, "outputs");
    add_attributes(node->attributes, given.attributes, given.attribute_count);
    need_list(given.bodies, given.body_count, "bodies");
    for (uint32_t i = 0; i < given.body_count; ++i) {
      node->subgraphs.push_back(read_body(own, given.bodies[i]));
    }
    if (given.body_count > 0 || chipdock::runtime::is_control(*node)) {
      chipdock::runtime::check_bodies(*node);
    }
    own.graph->nodes.reserve(own.graph->nodes.size() + 1);
    give_sources(own, node->outputs, "outputs");
    own.graph->nodes.push_back(std::move(node));
    for (uint32_t i = 0; i < given.body_count; ++i) given.bodies[i]->graph->frozen = true;
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_graph_set_inputs(chipdock_host_graph* graph,
                                                             uint32_t count, const int32_t* values,
                                                             chipdock_error* error) {
  return guard(error, [&] {
    chipdock_host_graph& own = open(graph);
    if (own.inputs_set) {
      chipdock::runtime::raise(CHIPDOCK_FAILED_PRECONDITION, "the inputs of the graph are set");
    }
    std::vector<int32_t> inputs = read_values(own, count, values, false, false, "values");
    give_sources(own, inputs, "values");
    own.graph->inputs = std::move(inputs);
    own.inputs_set = true;
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_graph_set_outputs(chipdock_host_graph* graph,
                                                              uint32_t count, const int32_t* values,
                                                              chipdock_error* error) {
  return guard(error, [&] {
    chipdock_host_graph& own = open(graph);
    require(count >= 1, "a graph has at least 1 output");
    own.graph->outputs = read_values(own, count, values, true, false, "values");
  });
}
