// SPDX-License-Identifier: Apache-2.0
// chipdock_host_run_op: a graph of one node, compiled at the first call with an operator, its
// attributes and dtypes, and kept with the device.
#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

using runtime::IrGraph;
using runtime::IrNode;
using runtime::Plan;
using runtime::TensorRef;

constexpr size_t kCachedPlans = 256;

/// Everything that decides which plan a call needs, as bytes.
class Key {
 public:
  void add(const std::string& text) {
    add_number(text.size());
    bytes_ += text;
  }
  template <class T>
  void add_number(T number) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): of a pointer, its value counts.
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void add_dtype(bool given, chipdock_dtype dtype) {
    add_number(given ? uint32_t{1} << 31 | uint32_t{dtype.code} << 16 | dtype.bits : 0U);
  }
  void add(const chipdock_attribute& a) {
    add(std::string(a.name));
    add_number(a.kind);
    add_number(a.integer);
    add_number(a.number);
    add_number(a.count);
    if (a.text != nullptr) add(std::string(a.text, a.count));
    for (uint64_t i = 0; i < a.count; ++i) {
      if (a.integers != nullptr) add_number(a.integers[i]);
      if (a.numbers != nullptr) add_number(a.numbers[i]);
      if (a.texts != nullptr) add(std::string(a.texts[i]));
    }
    if (a.tensor == nullptr) return;
    const runtime::Dims dims(a.tensor->shape, a.tensor->shape + a.tensor->rank);
    add_dtype(true, a.tensor->dtype);
    add(runtime::to_string(dims));
    const auto count = static_cast<uint64_t>(runtime::element_count(dims));
    add(std::string(static_cast<const char*>(a.tensor->host),
                    kit::dtype_bytes(a.tensor->dtype, count)));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// The graph of one call; its inputs are the arguments that are given.
std::shared_ptr<IrGraph> make_graph(const chipdock_host_op_desc& desc, uint32_t output_count) {
  auto graph = std::make_shared<IrGraph>();
  auto node = std::make_shared<IrNode>();
  node->op = &need(desc.op, "op");
  node->domain = text_or_empty(desc.domain);
  node->since_version = desc.since_version;
  require(desc.since_version >= 1, "since_version of ", node->op, " is ", desc.since_version,
          ", it must be 1 or more [HGR-4]");
  add_attributes(node->attributes, desc.attributes, desc.attribute_count);
  const auto add_value = [&](const std::string& name, chipdock_dtype dtype) {
    runtime::IrValue value;
    value.name = name;
    value.dtype = dtype;
    graph->values.push_back(std::move(value));
    return static_cast<int32_t>(graph->values.size() - 1);
  };
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    if (desc.inputs[i] == nullptr) {
      node->inputs.push_back(-1);
      continue;
    }
    const int32_t value = add_value("x" + std::to_string(i), desc.inputs[i]->tensor.dtype);
    node->inputs.push_back(value);
    graph->inputs.push_back(value);
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    check_dtype(desc.output_dtypes[i], "output_dtypes entry");
    const int32_t value = add_value("y" + std::to_string(i), desc.output_dtypes[i]);
    node->outputs.push_back(value);
    graph->outputs.push_back(value);
  }
  graph->nodes.push_back(std::move(node));
  return graph;
}

std::string key_of(const IrGraph& graph, const chipdock_host_op_desc& desc,
                   const runtime::Device& host) {
  const IrNode& node = *graph.nodes[0];
  Key key;
  key.add(node.domain);
  key.add(node.op);
  key.add_number(node.since_version);
  key.add_number(desc.fallback);
  key.add_number(&host);
  key.add_number(node.inputs.size());
  for (const int32_t value : node.inputs) {
    const bool given = value >= 0;
    key.add_dtype(given, given ? graph.values[static_cast<size_t>(value)].dtype : chipdock_dtype{});
  }
  for (const int32_t value : node.outputs) {
    key.add_dtype(true, graph.values[static_cast<size_t>(value)].dtype);
  }
  for (uint32_t i = 0; i < node.attributes.count(); ++i) key.add(*node.attributes.data()[i]);
  return key.bytes();
}

std::shared_ptr<Plan> find(OpCache& cache, const std::string& key) {
  const std::lock_guard lock(cache.mutex);
  const auto found = cache.by_key.find(key);
  if (found == cache.by_key.end()) return nullptr;
  cache.entries.splice(cache.entries.begin(), cache.entries, found->second);
  return found->second->second;
}

void remember(OpCache& cache, const std::string& key, const std::shared_ptr<Plan>& plan) {
  const std::lock_guard lock(cache.mutex);
  if (cache.by_key.count(key) != 0) return;  // another thread was faster
  cache.entries.emplace_front(key, plan);
  cache.by_key[key] = cache.entries.begin();
  if (cache.entries.size() <= kCachedPlans) return;
  cache.by_key.erase(cache.entries.back().first);
  cache.entries.pop_back();
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_run_op(chipdock_host_device* device,
                                                   const chipdock_host_op_desc* desc,
                                                   uint32_t output_count,
                                                   chipdock_host_tensor** outputs,
                                                   chipdock_error* error) {
  return guard(error, [&] {
    need(device, "device");
    const chipdock_host_op_desc given = take(desc, "desc");
    only_flags(given.flags, 0, "desc");
    require(output_count >= 1, "output_count is 0, an operator has at least 1 output");
    need_list(outputs, output_count, "outputs");
    need_list(given.output_dtypes, output_count, "output_dtypes");
    need_list(given.inputs, given.input_count, "inputs");
    const auto host = host_device(*device, given.host);
    const auto graph = make_graph(given, output_count);
    const std::string key = key_of(*graph, given, *host);
    std::shared_ptr<Plan> plan = find(device->ops, key);
    if (plan == nullptr) {
      chipdock::runtime::PlanOptions options;
      options.fallback = read_fallback(given.fallback);
      plan = Plan::compile(graph, device->device, host, options);
      remember(device->ops, key, plan);
    }
    std::vector<TensorRef> inputs;
    for (uint32_t i = 0; i < given.input_count; ++i) {
      if (given.inputs[i] != nullptr) inputs.push_back(given.inputs[i]->tensor);
    }
    run_plan(*plan, inputs, given.stream, given.seed, output_count, outputs);
  });
}
