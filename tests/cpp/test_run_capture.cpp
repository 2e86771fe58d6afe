// SPDX-License-Identifier: Apache-2.0
// Runs of a plan that the caller captures, and runs on a stream of the caller.
#include <atomic>
#include <functional>

#include "plan_fixture.hpp"

using namespace chipdock::check;

TEST(a_run_can_be_captured_by_the_caller) {
  for (const auto& name : {"native", "emulated"}) {
    auto device = open_cpu(std::string(name) == "native" ? "validate" : "mask=stream.*+event.*");
    auto plan = compile(chain(7), device);
    auto stream = Stream::create(device);
    TensorRef in = put(*device, kit::kFloat32, numbers(32, 0));
    RunOptions options;
    options.stream = stream;
    stream->begin_capture();
    const TensorRef out = plan->run({in}, options)[0];
    auto graph = stream->end_capture();
    CHECK_EQ(graph->node_count(), size_t{7});
    plan.reset();  // The graph keeps what it names.
    for (int i = 0; i < 4; ++i) {
      const std::vector<float> values = numbers(32, static_cast<float>(i));
      write_tensor(in, values.data(), nullptr);
      graph->launch(*stream);
      stream->sync();
      CHECK(get(out) == negated(values));
    }
    graph.reset();
  }
}

TEST(a_run_that_cannot_be_captured_says_why_and_leaves_the_capture) {
  auto device = open_cpu();
  auto graph = chain(3);
  const int32_t shape = add_value(*graph, "drawn", kit::kFloat32, 1);
  add_node(*graph, "RandomNormalLike", {graph->outputs[0]}, shape, 1);
  graph->outputs = {shape};
  auto plan = compile(graph, device);
  auto stream = Stream::create(device);
  RunOptions options;
  options.stream = stream;
  TensorRef in = put(*device, kit::kFloat32, numbers(32, 0));
  const std::vector<float> values = numbers(32, 0);
  stream->begin_capture();
  const TensorRef borrowed = wrap_host(device, kit::kFloat32, {32}, values.data(), nullptr);
  const Error host = error_of([&] { plan->run({borrowed}, options); });
  CHECK_EQ(host.code(), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(contains(host.what(), "input 'x' is not in memory of"));
  const Error random = error_of([&] { plan->run({in}, options); });
  CHECK_EQ(random.code(), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(contains(random.what(), "RandomNormalLike node 'RandomNormalLike3' draws"));
  options.seeded = true;
  plan->run({in}, options);
  CHECK_EQ(stream->end_capture()->node_count(), size_t{4});
}

TEST(an_interrupted_run_does_not_wait_for_the_stream_it_was_given) {
  for (const char* layers : {"none", "mask=stream.*+event.*"}) {
    auto device = open_cpu(layers);
    auto plan = compile(chain(5), device);
    auto stream = Stream::create(device);
    Gate gate;
    gate.close(*stream);
    const InterruptCheck interrupt = [] { raise(CHIPDOCK_ABORTED, "interrupted"); };
    std::atomic<int> asked{0};
    const std::function<std::shared_ptr<const void>()> keep = [&] {
      ++asked;
      return std::make_shared<int>(1);
    };
    RunOptions options;
    options.stream = stream;
    options.interrupt = &interrupt;
    options.keep_inputs = &keep;
    TensorRef in = put(*device, kit::kFloat32, numbers(32, 0));
    CHECK_EQ(error_of([&] { plan->run({in}, options); }).code(), CHIPDOCK_ABORTED);
    CHECK_EQ(asked.load(), 1);
    in = TensorRef{};  // The frame left behind keeps it.
    check_run(*plan, 32, 3);
    gate.open();
    stream->sync();
    check_run(*plan, 32, 4);
    plan.reset();
    CHECK_EQ(device->allocator().stats().used_bytes, uint64_t{0});
  }
}
