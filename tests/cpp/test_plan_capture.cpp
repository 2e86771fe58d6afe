// SPDX-License-Identifier: Apache-2.0
// Segments of a plan as graphs of the cpu plugin: replays give what ordinary runs give, follow
// bound memory, name the operation that failed, give way when memory is short, and are not there
// without the graph table.
#include <atomic>
#include <thread>

#include "plan_fixture.hpp"

using namespace chipdock::check;

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
