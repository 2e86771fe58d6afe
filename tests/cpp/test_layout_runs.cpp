// SPDX-License-Identifier: Apache-2.0
// Runs of plans with private layouts: sizes and padding, shapes that depend on data, bodies, the
// device as its own host, streams and threads, graphs made at random.
#include <atomic>
#include <random>
#include <thread>

#include "exec/frame.hpp"
#include "exec/specialize.hpp"
#include "layouts_fixture.hpp"

using namespace chipdock::check;
namespace kit = chipdock::kit;

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

TEST(a_captured_run_has_layouts_inside) {
  const auto device = open_layouts();
  const Net net = chain({"Neg", "Relu", "Neg", "Exp"});
  auto plan = compile(net, device);
  const auto plain = compile(net, device, false);
  const auto stream = Stream::create(device);
  const TensorRef in = put(*device, {3, 4}, 0);
  RunOptions options;
  options.stream = stream;
  stream->begin_capture();
  const TensorRef out = plan->run({in}, options)[0];
  const auto graph = stream->end_capture();
  plan.reset();
  for (int i = 0; i < 3; ++i) {
    const auto first = static_cast<float>(i);
    write_tensor(in, numbers({3, 4}, first).data(), nullptr);
    graph->launch(*stream);
    stream->sync();
    std::vector<float> got(12);
    read_tensor(out, got.data(), nullptr);
    CHECK(got == run(*plain, {3, 4}, first)[0]);
  }
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
