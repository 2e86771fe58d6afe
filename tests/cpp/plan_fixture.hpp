// SPDX-License-Identifier: Apache-2.0
// Small graphs as plans of the cpu plugin, and what a run of one gives.
#ifndef CHIPDOCK_TESTS_CPP_PLAN_FIXTURE_HPP_
#define CHIPDOCK_TESTS_CPP_PLAN_FIXTURE_HPP_

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/plan.hpp"

namespace chipdock::check {

namespace kit = chipdock::kit;

inline std::shared_ptr<Device> open_cpu(const std::string& layers = "none") {
  const char* path = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  return Device::open(Plugin::load(path != nullptr ? path : "", {layers, {}}), 0, {});
}

inline int32_t add_value(IrGraph& graph, const std::string& name, chipdock_dtype dtype,
                         int32_t rank) {
  IrValue value;
  value.name = name;
  value.dtype = dtype;
  value.rank = rank;
  value.dims.assign(static_cast<size_t>(rank), -1);
  graph.values.push_back(value);
  return static_cast<int32_t>(graph.values.size() - 1);
}

inline void add_node(IrGraph& graph, const std::string& op, std::vector<int32_t> inputs,
                     int32_t output, int32_t version = 13) {
  auto node = std::make_shared<IrNode>();
  node->op = op;
  node->name = op + std::to_string(graph.nodes.size());
  node->since_version = version;
  node->inputs = std::move(inputs);
  node->outputs = {output};
  graph.nodes.push_back(node);
}

/// y = -x after `length` Negs if `length` is odd; all but the first and the last work on memory of
/// the plan.
inline std::shared_ptr<IrGraph> chain(int length) {
  auto graph = std::make_shared<IrGraph>();
  int32_t last = add_value(*graph, "x", kit::kFloat32, 1);
  graph->inputs = {last};
  for (int i = 0; i < length; ++i) {
    const int32_t next = add_value(*graph, "t" + std::to_string(i), kit::kFloat32, 1);
    add_node(*graph, "Neg", {last}, next);
    last = next;
  }
  graph->outputs = {last};
  return graph;
}

/// y = Neg(Gather(-x, Neg(Neg(i)))): an index out of range is found by the kernel, in a segment.
/// `more` Negs follow, an even number.
inline std::shared_ptr<IrGraph> picker(int more = 0) {
  auto graph = std::make_shared<IrGraph>();
  const int32_t x = add_value(*graph, "x", kit::kFloat32, 1);
  const int32_t i = add_value(*graph, "i", kit::kInt64, 1);
  const int32_t a = add_value(*graph, "a", kit::kFloat32, 1);
  const int32_t j = add_value(*graph, "j", kit::kInt64, 1);
  const int32_t k = add_value(*graph, "k", kit::kInt64, 1);
  const int32_t b = add_value(*graph, "b", kit::kFloat32, 1);
  int32_t y = add_value(*graph, "y", kit::kFloat32, 1);
  graph->inputs = {x, i};
  add_node(*graph, "Neg", {x}, a);
  add_node(*graph, "Neg", {i}, j);
  add_node(*graph, "Neg", {j}, k);
  add_node(*graph, "Gather", {a, k}, b);
  add_node(*graph, "Neg", {b}, y);
  for (int n = 0; n < more; ++n) {
    const int32_t next = add_value(*graph, "y" + std::to_string(n), kit::kFloat32, 1);
    add_node(*graph, "Neg", {y}, next);
    y = next;
  }
  graph->outputs = {y};
  return graph;
}

inline std::shared_ptr<Plan> compile(const std::shared_ptr<IrGraph>& graph,
                                     const std::shared_ptr<Device>& device,
                                     CapturePolicy capture = CapturePolicy::kOn,
                                     size_t signatures = 32, uint64_t memory_limit = 0) {
  PlanOptions options;
  options.capture = capture;
  options.cached_signatures = signatures;
  options.memory_limit = memory_limit;
  return Plan::compile(graph, device, device, options);
}

template <class T>
TensorRef put(Device& device, chipdock_dtype dtype, const std::vector<T>& values) {
  TensorRef tensor = make_tensor(device, dtype, {static_cast<int64_t>(values.size())}, nullptr);
  write_tensor(tensor, values.data(), nullptr);
  return tensor;
}

inline std::vector<float> numbers(size_t count, float first) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

inline std::vector<float> get(const TensorRef& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.size()));
  read_tensor(tensor, out.data(), nullptr);
  return out;
}

inline std::vector<float> negated(std::vector<float> values) {
  for (float& value : values) value = -value;
  return values;
}

/// One run of a chain of odd length, compared.
inline void check_run(Plan& plan, size_t count, float first, const RunOptions& options = {}) {
  const std::vector<float> in = numbers(count, first);
  const auto out = plan.run({put(*plan.device(), kit::kFloat32, in)}, options);
  CHECK(get(out[0]) == negated(in));
}

inline size_t captured_steps(Plan& plan) {
  size_t count = 0;
  for (const SegmentReport& line : plan.segments()) count += line.nodes.size();
  return count;
}

}  // namespace chipdock::check

#endif  // CHIPDOCK_TESTS_CPP_PLAN_FIXTURE_HPP_
