// SPDX-License-Identifier: Apache-2.0
// What the tests of private layouts share: the device of tests/fakes/layouts.c, which finds out if
// the host mixes layouts up, small graphs for it, and the comparison with runs without layouts.
#ifndef CHIPDOCK_TESTS_CPP_LAYOUTS_FIXTURE_HPP_
#define CHIPDOCK_TESTS_CPP_LAYOUTS_FIXTURE_HPP_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/plan.hpp"
#include "fakes.hpp"

namespace chipdock::check {

inline std::shared_ptr<Device> open_layouts(const std::string& layers = "validate",
                                            const std::string& refused = "nothing") {
  static auto& plugins = *new std::map<std::string, std::shared_ptr<Plugin>>;
  std::shared_ptr<Plugin>& plugin = plugins[layers];
  if (plugin == nullptr) plugin = load_fake("layouts", layers);
  return Device::open(plugin, 0, {{"refuse", refused}});
}

inline const std::shared_ptr<Device>& host_device() {
  static const auto& device = *new std::shared_ptr<Device>(open_device("cpu"));
  return device;
}

/// Graphs of float matrices by name: net("x", "a = Neg(x); y = Add(a, x)", {"y"}).
class Net {
 public:
  Net() : graph(std::make_shared<IrGraph>()) {}
  explicit Net(const std::vector<std::string>& inputs) : Net() {
    for (const std::string& name : inputs) graph->inputs.push_back(value(name));
  }
  int32_t value(const std::string& name, chipdock_dtype dtype = kit::kFloat32) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    IrValue made;
    made.name = name;
    made.dtype = dtype;
    made.rank = 2;
    made.dims = {-1, -1};
    graph->values.push_back(made);
    return by_name_[name] = static_cast<int32_t>(graph->values.size() - 1);
  }
  Net& add(const std::string& output, const std::string& op,
           const std::vector<std::string>& inputs) {
    auto node = std::make_shared<IrNode>();
    node->op = op;
    node->name = output;
    node->since_version = 13;
    for (const std::string& name : inputs) node->inputs.push_back(value(name));
    node->outputs = {value(output)};
    graph->nodes.push_back(node);
    return *this;
  }
  Net& output(const std::string& name) {
    graph->outputs.push_back(value(name));
    return *this;
  }
  IrNode& last() { return *graph->nodes.back(); }

  std::shared_ptr<IrGraph> graph;

 private:
  std::map<std::string, int32_t> by_name_;
};

/// x through one operator after the other to y.
inline Net chain(const std::vector<std::string>& ops) {
  Net net({"x"});
  std::string last = "x";
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string next = i + 1 == ops.size() ? "y" : "t" + std::to_string(i);
    net.add(next, ops[i], {last});
    last = next;
  }
  net.output("y");
  return net;
}

inline std::shared_ptr<Plan> compile(const Net& net, const std::shared_ptr<Device>& device,
                                     bool layouts = true) {
  PlanOptions options;
  options.fallback = Fallback::kAllow;
  options.layouts = layouts;
  return Plan::compile(net.graph, device, host_device(), options);
}

/// "Neg7 Exp" for nodes in execution order with the layout that they work in, if any.
inline std::string shown(const Plan& plan) {
  std::string out;
  for (const NodeReport& line : plan.report()) {
    out += (out.empty() ? "" : " ") + line.op.substr(line.op.rfind('.') + 1);
    if (line.layout != 0) out += std::to_string(line.layout);
  }
  return out;
}

inline std::vector<float> numbers(const Dims& dims, float first) {
  std::vector<float> out(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = (i % 3 == 1 ? -1.0F : 1.0F) * (first + static_cast<float>(i));
  }
  return out;
}

inline TensorRef put(Device& device, const Dims& dims, float first) {
  TensorRef tensor = make_tensor(device, kit::kFloat32, dims, nullptr);
  write_tensor(tensor, numbers(dims, first).data(), nullptr);
  return tensor;
}

inline std::vector<std::vector<float>> run(Plan& plan, const Dims& dims, float first = 1,
                                           const RunOptions& options = {}) {
  std::vector<TensorRef> inputs;
  for (size_t i = 0; i < plan.graph().inputs.size(); ++i)
    inputs.push_back(put(*plan.device(), dims, first + 100 * static_cast<float>(i)));
  std::vector<std::vector<float>> out;
  for (const TensorRef& tensor : plan.run(inputs, options)) {
    CHECK_EQ(tensor.layout, 0U);
    // Dims are integers, twice as long; then these are their halves.
    out.emplace_back(static_cast<size_t>(tensor.bytes() / sizeof(float)));
    read_tensor(tensor, out.back().data(), nullptr);
  }
  return out;
}

/// The nodes with their layouts are as told, and the results those without layouts.
inline void check_net(const Net& net, const std::string& nodes,
                      const std::string& refused = "nothing") {
  for (const char* layers : {"none", "validate"}) {
    const auto device = open_layouts(layers, refused);
    const auto plan = compile(net, device);
    CHECK_EQ(shown(*plan), nodes);
    const auto plain = compile(net, device, false);
    for (const Dims& dims : {Dims{3, 5}, Dims{1, 1}, Dims{0, 4}, Dims{3, 5}}) {
      CHECK(run(*plan, dims) == run(*plain, dims));
      CHECK(run(*plan, dims, 7) == run(*plain, dims, 7));
    }
  }
}

}  // namespace chipdock::check

#endif  // CHIPDOCK_TESTS_CPP_LAYOUTS_FIXTURE_HPP_
