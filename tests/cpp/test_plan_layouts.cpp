// SPDX-License-Identifier: Apache-2.0
// Private layouts in plans, over the device of tests/fakes/layouts.c, which finds out if the host
// mixes layouts up: where Reorders are put, that results are those without, what keeps layouts out.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/frame.hpp"
#include "exec/plan.hpp"
#include "exec/specialize.hpp"
#include "fakes.hpp"

using namespace chipdock::check;
namespace kit = chipdock::kit;

namespace {

std::shared_ptr<Device> open_layouts(const std::string& layers = "validate",
                                     const std::string& refused = "nothing") {
  static auto& plugins = *new std::map<std::string, std::shared_ptr<Plugin>>;
  std::shared_ptr<Plugin>& plugin = plugins[layers];
  if (plugin == nullptr) plugin = load_fake("layouts", layers);
  return Device::open(plugin, 0, {{"refuse", refused}});
}

const std::shared_ptr<Device>& host_device() {
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
Net chain(const std::vector<std::string>& ops) {
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

std::shared_ptr<Plan> compile(const Net& net, const std::shared_ptr<Device>& device,
                              bool layouts = true) {
  PlanOptions options;
  options.fallback = Fallback::kAllow;
  options.layouts = layouts;
  return Plan::compile(net.graph, device, host_device(), options);
}

/// "Neg7 Exp" for nodes in execution order with the layout that they work in, if any.
std::string shown(const Plan& plan) {
  std::string out;
  for (const NodeReport& line : plan.report()) {
    out += (out.empty() ? "" : " ") + line.op.substr(line.op.rfind('.') + 1);
    if (line.layout != 0) out += std::to_string(line.layout);
  }
  return out;
}

std::vector<float> numbers(const Dims& dims, float first) {
  std::vector<float> out(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = (i % 3 == 1 ? -1.0F : 1.0F) * (first + static_cast<float>(i));
  }
  return out;
}

TensorRef put(Device& device, const Dims& dims, float first) {
  TensorRef tensor = make_tensor(device, kit::kFloat32, dims, nullptr);
  write_tensor(tensor, numbers(dims, first).data(), nullptr);
  return tensor;
}

std::vector<std::vector<float>> run(Plan& plan, const Dims& dims, float first = 1,
                                    const RunOptions& options = {}) {
  std::vector<TensorRef> inputs;
  for (size_t i = 0; i < plan.graph().inputs.size(); ++i)
    inputs.push_back(put(*plan.device(), dims, first + 100 * static_cast<float>(i)));
  std::vector<std::vector<float>> out;
  for (const TensorRef& tensor : plan.run(inputs, options)) {
    CHECK_EQ(tensor.layout, 0U);
    out.emplace_back(static_cast<size_t>(tensor.size()));
    read_tensor(tensor, out.back().data(), nullptr);
  }
  return out;
}

/// The nodes with their layouts are as told, and the results those without layouts.
void check_net(const Net& net, const std::string& nodes, const std::string& refused = "nothing") {
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

}  // namespace

TEST(a_region_of_two_that_gain_takes_what_is_between_them) {
  check_net(chain({"Neg", "Relu", "Neg"}), "Reorder7 Neg7 Relu7 Neg7 Reorder7");
  check_net(chain({"Exp", "Neg", "Relu", "Neg", "Exp"}),
            "Exp Reorder7 Neg7 Relu7 Neg7 Reorder7 Exp");
}

TEST(one_that_gains_is_not_worth_two_reorders) {
  check_net(chain({"Neg"}), "Neg");
  check_net(chain({"Relu", "Neg", "Relu"}), "Relu Neg Relu");
  check_net(chain({"Neg", "Exp", "Neg"}), "Neg Exp Neg");
}

TEST(nodes_that_only_follow_make_no_region) { check_net(chain({"Relu", "Relu"}), "Relu Relu"); }

TEST(a_gain_is_worth_one_reorder) { check_net(chain({"Ceil"}), "Ceil7 Reorder7"); }

TEST(a_node_that_reads_a_layout_and_writes_none_ends_a_region) {
  check_net(chain({"Ceil", "Floor"}), "Ceil7 Floor7");
  check_net(chain({"Neg", "Neg", "Floor", "Exp"}), "Reorder7 Neg7 Neg7 Floor7 Exp");
}

TEST(readers_of_one_value_share_its_reorder) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"x"}).add("y", "Add", {"a", "b"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Add7 Reorder7");
}

TEST(a_reader_outside_gets_the_value_without_a_layout) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("c", "Exp", {"a"}).add("d", "Exp", {"a"});
  net.output("b").output("c").output("d");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Exp Exp Reorder7");
}

TEST(an_output_of_the_graph_may_be_read_inside_a_region) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).output("a").output("b").output("a");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Reorder7");
}

TEST(a_follower_that_costs_a_reorder_stays_out) {
  Net net({"x", "z"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("c", "Add", {"b", "z"});
  net.add("y", "Exp", {"c"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Add Exp");
}

TEST(an_argument_given_twice_is_one_value) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Add", {"a", "a"}).add("y", "Neg", {"b"}).output("y");
  check_net(net, "Reorder7 Neg7 Add7 Neg7 Reorder7");
}

TEST(nodes_that_nobody_reads_ask_for_nothing) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("dead", "Exp", {"a"}).add("y", "Neg", {"a"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7");
}

TEST(two_layouts_meet_without_one) {
  check_net(chain({"Neg", "Neg", "Sqrt", "Relu", "Sqrt"}),
            "Reorder7 Neg7 Neg7 Reorder7 Reorder9 Sqrt9 Relu9 Sqrt9 Reorder9");
}

TEST(a_node_of_the_host_reads_and_writes_no_layout) {
  check_net(chain({"Neg", "Neg", "Abs", "Neg", "Neg"}),
            "Reorder7 Neg7 Neg7 Reorder7 Abs Reorder7 Neg7 Neg7 Reorder7");
}

TEST(a_view_shows_memory_without_a_layout) {
  check_net(chain({"Neg", "Neg", "Flatten", "Neg", "Neg"}),
            "Reorder7 Neg7 Neg7 Reorder7 Flatten Reorder7 Neg7 Neg7 Reorder7");
}

TEST(what_follows_from_shapes_stays_out) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("y", "Exp", {"b"}).output("y");
  net.add("s", "Shape", {"x"}).add("f", "Cast", {"s"}).add("n", "Neg", {"f"});
  net.add("z", "Neg", {"n"}).output("z");
  net.graph->values[static_cast<size_t>(net.value("s"))].dtype = kit::kInt64;
  net.graph->nodes[4]->attributes.add_integer("to", 1);
  const auto plan = compile(net, open_layouts());
  CHECK_EQ(shown(*plan), "Reorder7 Neg7 Neg7 Reorder7 Exp Shape Cast Neg Neg");
  CHECK(run(*plan, {2, 3})[1] == (std::vector<float>{2, 3}));
}

TEST(layouts_can_be_switched_off) {
  const auto device = open_layouts();
  CHECK_EQ(shown(*compile(chain({"Neg", "Neg"}), device, false)), "Neg Neg");
}

TEST(without_the_slot_for_sizes_there_are_no_layouts) {
  const auto device = Device::open(load_fake("layouts", "none", {{"lacks", "size"}}), 0, {});
  CHECK(device->tables().kernel.launch != nullptr);
  CHECK(device->tables().kernel.layout_size == nullptr);
  const auto plan = compile(chain({"Neg", "Neg"}), device);
  CHECK_EQ(shown(*plan), "Neg Neg");
  CHECK(run(*plan, {2, 2}) == run(*compile(chain({"Neg", "Neg"}), open_layouts()), {2, 2}));
}

TEST(a_region_whose_reorder_or_kernel_is_refused_stays_as_it_was) {
  const Net net = chain({"Neg", "Relu", "Neg"});
  check_net(net, "Neg Relu Neg", "reorder");
  check_net(net, "Neg Relu Neg", "reorder in create");
  check_net(net, "Neg Relu Neg", "neg in create");
  // The other region is not concerned.
  check_net(chain({"Neg", "Neg", "Sqrt", "Sqrt"}), "Neg Neg Reorder9 Sqrt9 Sqrt9 Reorder9",
            "neg in create");
}

TEST(shapes_that_depend_on_data_work_in_layouts) {
  Net net({"x"});
  net.add("n", "NonZero", {"x"}).add("f", "Cast", {"n"}).add("a", "Neg", {"f"});
  net.add("b", "Relu", {"a"}).add("y", "Neg", {"a"}).output("b").output("y");
  net.graph->values[static_cast<size_t>(net.value("n"))].dtype = kit::kInt64;
  net.graph->nodes[1]->attributes.add_integer("to", 1);
  net.add("c", "Neg", {"y"}).output("c");
  const auto plan = compile(net, open_layouts());
  CHECK_EQ(shown(*plan), "NonZero Cast Reorder7 Neg7 Relu7 Neg7 Neg7 Reorder7 Reorder7 Reorder7");
  const auto out = run(*plan, {1, 3});  // 1 -2 3
  CHECK(out[1] == (std::vector<float>{0, 0, 0, 0, 1, 2}));
  CHECK(out[2] == (std::vector<float>{0, 0, 0, 0, -1, -2}));
}

TEST(a_body_reads_values_without_layouts_and_has_regions_of_its_own) {
  Net body({"c"});
  body.add("d", "Neg", {"c"}).add("e", "Neg", {"d"}).output("e");
  Net other({"c"});
  other.add("e", "Exp", {"c"}).output("e");
  Net net;
  net.graph->inputs = {net.value("x"), net.value("cond", kit::kBool)};
  IrValue& flag = net.graph->values[1];
  flag.rank = 0;
  flag.dims.clear();
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("y", "If", {"cond"});
  net.last().subgraphs = {{"then_branch", body.graph, {{net.value("b"), 0}}},
                          {"else_branch", other.graph, {{net.value("b"), 0}}}};
  net.output("y");
  const auto device = open_layouts();
  const auto plan = compile(net, device);
  CHECK_EQ(shown(*plan), "Reorder7 Neg7 Neg7 Reorder7 Reorder7 Neg7 Neg7 Reorder7 Exp If");
  for (const uint8_t condition : {1, 0}) {
    TensorRef cond = make_tensor(*device, kit::kBool, {}, nullptr);
    write_tensor(cond, &condition, nullptr);
    const auto out = plan->run({put(*device, {2, 2}, 1), cond}, {});
    std::vector<float> got(4);
    read_tensor(out[0], got.data(), nullptr);
    std::vector<float> expected = numbers({2, 2}, 1);
    for (float& x : expected) x *= condition != 0 ? 1 : 2;
    CHECK(got == expected);
  }
}

TEST(storage_has_the_size_that_the_plugin_said) {
  const auto device = open_layouts();
  const auto plan = compile(chain({"Neg", "Relu", "Neg", "Exp"}), device);
  const auto spec = specialize(*plan, {{4, 16}});
  size_t laid_out = 0;
  for (const SlotState& slot : spec->slots) {
    if (slot.layout == 0) continue;
    ++laid_out;
    CHECK_EQ(slot.bytes(), uint64_t{4 * 16 * 4 + 8});
    CHECK_EQ(slot.plain_bytes(), uint64_t{4 * 16 * 4});
  }
  CHECK_EQ(laid_out, size_t{4});
  // Two live at once, both in the layout.
  CHECK_EQ(spec->activation_lower_bound, uint64_t{2 * (4 * 16 * 4 + 8)});
  CHECK_EQ(spec->layout_padding, uint64_t{16});
  CHECK(spec->activation_bytes >= spec->activation_lower_bound);
}

TEST(sizes_are_asked_once_for_a_signature) {
  // Three values in the layout for each of two signatures; the seventh question would fail.
  const auto device = open_layouts("fault=kernel.layout_size:7");
  const auto plan = compile(chain({"Neg", "Neg"}), device);
  for (int i = 0; i < 20; ++i) {
    run(*plan, {2, 3}, static_cast<float>(i));
    run(*plan, {3, 3}, static_cast<float>(i));
  }
  CHECK_EQ(error_of([&] { run(*plan, {4, 3}); }).code(), CHIPDOCK_INTERNAL);
}

TEST(a_size_that_is_refused_fails_the_run) {
  const auto plan = compile(chain({"Neg", "Neg"}), open_layouts("none", "size"));
  const Error error = error_of([&] { run(*plan, {2, 3}); });
  CHECK_EQ(error.code(), CHIPDOCK_UNSUPPORTED);
  CHECK(contains(error.what(), "layout_size"));
}

TEST(a_device_that_is_its_own_host_has_layouts_too) {
  const auto device = open_layouts();
  const Net net = chain({"Neg", "Relu", "Neg", "Exp"});
  PlanOptions options;
  const auto plan = Plan::compile(net.graph, device, device, options);
  CHECK_EQ(shown(*plan), "Reorder7 Neg7 Relu7 Neg7 Reorder7 Exp");
  CHECK(run(*plan, {3, 3}) == run(*compile(net, device, false), {3, 3}));
}

TEST(graphs_made_at_random_compute_what_they_do_without_layouts) {
  const char* const ops[] = {"Neg", "Neg", "Sqrt", "Ceil", "Floor", "Relu", "Add", "Exp", "Abs"};
  const auto device = open_layouts();
  size_t with_layouts = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 numbers(seed);
    const auto below = [&](size_t limit) { return numbers() % limit; };
    Net net({"x", "z"});
    std::vector<std::string> names = {"x", "z"};
    const size_t length = 2 + below(14);
    for (size_t i = 0; i < length; ++i) {
      // Mostly what was computed last: regions are chains with branches.
      const auto pick = [&] {
        const size_t back = below(3) == 0 ? below(names.size()) : 0;
        return names[names.size() - 1 - back];
      };
      const std::string op = ops[below(std::size(ops))];
      const std::string name = "t" + std::to_string(i);
      std::vector<std::string> inputs = {pick()};
      if (op == "Add") inputs.push_back(pick());
      net.add(name, op, inputs);
      names.push_back(name);
    }
    net.output(names.back());
    while (below(2) == 0) net.output(names[2 + below(length)]);
    const auto plan = compile(net, device);
    const auto plain = compile(net, device, false);
    if (shown(*plan) != shown(*plain)) ++with_layouts;
    CHECK(run(*plan, {2, 3}) == run(*plain, {2, 3}));
  }
  CHECK(with_layouts > 50);
}

TEST(runs_on_streams_and_from_threads_agree) {
  const auto device = open_layouts();
  const Net net = chain({"Neg", "Relu", "Neg", "Exp"});
  const auto plan = compile(net, device);
  const auto plain = compile(net, device, false);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      RunOptions options;
      if (t % 2 == 1) options.stream = Stream::create(device);
      for (int i = 0; i < 10; ++i) {
        const Dims dims{2 + i % 3, 4};
        const auto first = static_cast<float>(10 * t + i);
        if (run(*plan, dims, first, options) != run(*plain, dims, first)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
}
