// SPDX-License-Identifier: Apache-2.0
// Segments of a plan as graphs of the cpu plugin: replays give what ordinary runs give, follow
// bound memory, name the operation that failed, give way when memory is short, and are not there
// without the graph table. And runs that the caller captures.
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/plan.hpp"

using namespace chipdock::check;
namespace kit = chipdock::kit;

namespace {

std::shared_ptr<Device> open_cpu(const std::string& layers = "none") {
  const char* path = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  return Device::open(Plugin::load(path != nullptr ? path : "", {layers, {}}), 0, {});
}

int32_t add_value(IrGraph& graph, const std::string& name, chipdock_dtype dtype, int32_t rank) {
  IrValue value;
  value.name = name;
  value.dtype = dtype;
  value.rank = rank;
  value.dims.assign(static_cast<size_t>(rank), -1);
  graph.values.push_back(value);
  return static_cast<int32_t>(graph.values.size() - 1);
}

void add_node(IrGraph& graph, const std::string& op, std::vector<int32_t> inputs, int32_t output,
              int32_t version = 13) {
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
std::shared_ptr<IrGraph> chain(int length) {
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
std::shared_ptr<IrGraph> picker(int more = 0) {
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

std::shared_ptr<Plan> compile(const std::shared_ptr<IrGraph>& graph,
                              const std::shared_ptr<Device>& device,
                              CapturePolicy capture = CapturePolicy::kOn, size_t signatures = 32,
                              uint64_t memory_limit = 0) {
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

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<float> get(const TensorRef& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.size()));
  read_tensor(tensor, out.data(), nullptr);
  return out;
}

std::vector<float> negated(std::vector<float> values) {
  for (float& value : values) value = -value;
  return values;
}

/// One run of a chain of odd length, compared.
void check_run(Plan& plan, size_t count, float first, const RunOptions& options = {}) {
  const std::vector<float> in = numbers(count, first);
  const auto out = plan.run({put(*plan.device(), kit::kFloat32, in)}, options);
  CHECK(get(out[0]) == negated(in));
}

size_t captured_steps(Plan& plan) {
  size_t count = 0;
  for (const SegmentReport& line : plan.segments()) count += line.steps.size();
  return count;
}

}  // namespace

TEST(a_repeated_signature_is_captured_and_replays_what_changed_inputs_give) {
  auto device = open_cpu("validate");
  auto plan = compile(chain(7), device);
  check_run(*plan, 100, 0);
  CHECK_EQ(plan->segments().size(), size_t{0});
  const uint64_t before = device->stats().launch_count;
  for (int i = 1; i < 20; ++i) check_run(*plan, 100, static_cast<float>(i));
  // The first step reads and the last one writes memory of the caller.
  CHECK_EQ(plan->segments().size(), size_t{1});
  CHECK_EQ(captured_steps(*plan), size_t{5});
  CHECK_EQ(plan->segments()[0].key, (std::vector<int64_t>{1, 100}));
  CHECK(device->stats().launch_count > before);
  auto stream = Stream::create(device);
  RunOptions options;
  options.stream = stream;
  for (int i = 0; i < 5; ++i) check_run(*plan, 100, static_cast<float>(i), options);
  CHECK_EQ(captured_steps(*plan), size_t{5});
}

TEST(by_itself_a_device_that_prefers_inline_work_is_not_captured) {
  auto device = open_cpu();
  CHECK(device->prefers_inline());
  auto plan = compile(chain(7), device, CapturePolicy::kAuto);
  for (int i = 0; i < 4; ++i) check_run(*plan, 10, 1);
  CHECK_EQ(plan->segments().size(), size_t{0});
}

TEST(an_evicted_signature_frees_its_graph_and_its_memory) {
  auto device = open_cpu("validate");
  auto plan = compile(chain(5), device, CapturePolicy::kOn, 2);
  const auto used = [&] { return device->allocator().stats().used_bytes; };
  for (size_t count = 1000; count < 1010; ++count) {
    for (int i = 0; i < 3; ++i) check_run(*plan, count, static_cast<float>(i));
  }
  CHECK_EQ(plan->segments().size(), size_t{2});
  CHECK(used() > 0);
  CHECK(used() <= 2 * 2 * 4352);  // two signatures, two vectors each
  plan.reset();
  CHECK_EQ(used(), uint64_t{0});
}

TEST(a_plan_keeps_few_recordings_and_none_above_its_memory_limit) {
  auto device = open_cpu();
  auto plan = compile(chain(5), device);
  for (size_t count = 100; count < 120; ++count) {
    for (int i = 0; i < 2; ++i) check_run(*plan, count, 1);
  }
  CHECK_EQ(plan->segments().size(), size_t{8});
  // Room for one signature's arena: the graph of the other one has to go each time.
  auto tight = compile(chain(5), device, CapturePolicy::kOn, 32, 2 * 4096 + 512);
  for (int i = 0; i < 6; ++i) {
    check_run(*tight, 1024, 1);
    check_run(*tight, 1000, 2);
  }
  CHECK(tight->segments().size() <= 1);
}

TEST(threads_replay_graphs_of_their_own) {
  auto device = open_cpu("validate");
  auto plan = compile(chain(9), device);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 20; ++i) {
          const std::vector<float> in = numbers(64, static_cast<float>(100 * t + i));
          const auto out = plan->run({put(*device, kit::kFloat32, in)}, {});
          if (get(out[0]) != negated(in)) ++wrong;
        }
      } catch (const Error&) {
        ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(captured_steps(*plan), size_t{7});
}

TEST(a_failure_in_a_segment_names_the_node) {
  for (const bool queued : {false, true}) {
    auto device = open_cpu();
    auto plan = compile(picker(), device);
    const auto run = [&](int64_t index) {
      RunOptions options;
      if (queued) options.stream = Stream::create(device);
      const auto out = plan->run({put(*device, kit::kFloat32, numbers(4, 1)),
                                  put(*device, kit::kInt64, std::vector<int64_t>{index})},
                                 options);
      return get(out[0])[0];
    };
    for (int i = 0; i < 3; ++i) CHECK_EQ(run(2), 3.0F);
    CHECK_EQ(captured_steps(*plan), size_t{2});
    const Error error = error_of([&] { run(9); });
    CHECK_EQ(error.code(), CHIPDOCK_INVALID_ARGUMENT);
    CHECK(error.correlation_id() != 0);
    CHECK(contains(error.what(), "Gather node 'Gather3', captured in a segment"));
    for (int i = 0; i < 3; ++i) CHECK_EQ(run(1), 2.0F);
  }
}

TEST(a_failure_while_later_steps_are_queued_is_the_one_reported) {
  auto device = open_cpu();
  auto plan = compile(picker(4000), device);
  RunOptions options;
  options.stream = Stream::create(device);
  const auto run = [&](int64_t index) {
    plan->run({put(*device, kit::kFloat32, numbers(4, 1)),
               put(*device, kit::kInt64, std::vector<int64_t>{index})},
              options);
  };
  const Error error = error_of([&] { run(9); });
  CHECK_EQ(error.code(), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(contains(error.what(), "Gather"));
  // The stream of an earlier failure refuses a run: nothing of that one has failed.
  const Error refused = error_of([&] { run(1); });
  CHECK_EQ(refused.code(), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(contains(refused.what(), "has failed"));
}

TEST(without_the_graph_table_nothing_is_captured) {
  for (const char* layers : {"mask=graph.*", "mask=required", "mask=stream.*+event.*"}) {
    auto device = open_cpu(layers);
    auto host = open_cpu();
    PlanOptions options;
    options.capture = CapturePolicy::kOn;
    options.fallback = Fallback::kAllow;
    auto plan = Plan::compile(chain(7), device, host, options);
    for (int i = 0; i < 4; ++i) check_run(*plan, 10, static_cast<float>(i));
    CHECK_EQ(plan->segments().size(), size_t{0});
  }
}

TEST(a_capture_that_fails_leaves_ordinary_runs) {
  for (const char* slot : {"graph.begin_capture", "graph.end_capture", "graph.instantiate"}) {
    for (const char* code : {"OUT_OF_MEMORY", "UNSUPPORTED"}) {
      auto device = open_cpu(std::string("fault=") + slot + ":1:" + code);
      auto plan = compile(chain(7), device);
      for (int i = 0; i < 6; ++i) check_run(*plan, 10, static_cast<float>(i));
      CHECK_EQ(plan->segments().size(), size_t{0});
    }
  }
}

TEST(a_launch_that_fails_fails_the_run_and_the_plan_runs_again) {
  auto device = open_cpu("fault=graph.launch:2");
  auto plan = compile(chain(7), device);
  for (int i = 0; i < 2; ++i) check_run(*plan, 10, 1);
  const Error error = error_of([&] { check_run(*plan, 10, 2); });
  CHECK_EQ(error.code(), CHIPDOCK_INTERNAL);
  CHECK(contains(error.what(), "graph.launch"));
  for (int i = 0; i < 4; ++i) check_run(*plan, 10, static_cast<float>(i));
}

TEST(bound_memory_is_captured_too_and_followed_when_it_changes) {
  for (const char* layers : {"validate", "mask=graph.update", "fault=graph.update:1:UNSUPPORTED",
                             "fault=graph.update:2"}) {
    auto device = open_cpu(layers);
    auto plan = compile(chain(7), device);
    std::vector<TensorRef> in, out;
    for (int i = 0; i < 3; ++i) {
      in.push_back(put(*device, kit::kFloat32, numbers(64, 0)));
      out.push_back(put(*device, kit::kFloat32, numbers(64, 0)));
    }
    const auto run = [&](size_t which, float first) {
      const std::vector<float> values = numbers(64, first);
      write_tensor(in[which], values.data(), nullptr);
      std::vector<TensorRef> bound = {out[which]};
      RunOptions options;
      options.bound_outputs = &bound;
      const auto result = plan->run({in[which]}, options);
      CHECK(result[0].buffer == out[which].buffer);
      CHECK(get(out[which]) == negated(values));
    };
    run(0, 1);
    for (int i = 0; i < 3; ++i) run(0, static_cast<float>(i));
    CHECK_EQ(captured_steps(*plan), size_t{7});
    // To and fro, as the two halves of a cache; then elsewhere, often enough to be learnt anew.
    for (int i = 0; i < 6; ++i) run(static_cast<size_t>(i % 2), static_cast<float>(i));
    for (int i = 0; i < 6; ++i) run(2, static_cast<float>(i));
    CHECK_EQ(captured_steps(*plan), size_t{7});
    // A run that binds nothing gets memory of its own.
    const std::vector<float> before = get(out[2]);
    for (int i = 0; i < 6; ++i) check_run(*plan, 64, 50);
    CHECK(get(out[2]) == before);
    CHECK_EQ(captured_steps(*plan), size_t{5});
  }
}

TEST(memory_that_runs_out_is_taken_from_recordings) {
  auto device = open_cpu();
  auto plan = compile(chain(5), device);
  for (size_t count : {size_t{1} << 20, (size_t{1} << 20) + 64}) {
    for (int i = 0; i < 2; ++i) check_run(*plan, count, 1);
  }
  CHECK_EQ(plan->segments().size(), size_t{2});
  device->trim();
  device->allocator().set_limit(device->allocator().stats().reserved_bytes + (size_t{8} << 20));
  check_run(*plan, (size_t{1} << 20) + 128, 1);
  CHECK_EQ(plan->segments().size(), size_t{0});
}

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
