// SPDX-License-Identifier: Apache-2.0
// Capture and replay, by the host (work plugin) and by the plugin where it has graphs (cpu): forks
// and joins, many launches, updates, what a capture forbids, and memory that stays put while a
// graph lives.
#include <atomic>
#include <memory>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"

using namespace chipdock::check;

namespace {

std::vector<int64_t> read(Device& device, const Buffer& buffer, size_t count) {
  std::vector<int64_t> out(count);
  device.copy(at(buffer), host(out.data()), count * 8, nullptr);
  return out;
}

}  // namespace

TEST(captured_work_runs_only_at_launch_and_many_times) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto a = device->allocate(80, stream);
    auto b = device->allocate(80, stream);
    std::vector<int64_t> in(10, 4);
    auto runs = std::make_shared<std::atomic<int>>(0);
    const int64_t minus = -1;
    device->fill(at(*b), 80, &minus, 8, stream.get());
    stream->begin_capture();
    CHECK(stream->capturing());
    device->copy(host(in.data()), at(*a), 80, stream.get());
    device->copy(at(*a), at(*b), 80, stream.get());
    stream->host_function([runs](chipdock_status) { ++*runs; });
    auto graph = stream->end_capture();
    CHECK(!stream->capturing());
    stream->sync();
    CHECK_EQ(runs->load(), 0);
    CHECK_EQ(read(*device, *b, 10)[0], int64_t{-1});
    CHECK_EQ(graph->node_count(), size_t{3});
    for (int64_t i = 0; i < 100; ++i) {
      // The host memory of a captured copy is read anew at each launch. [GRA-5]
      in[9] = i;
      graph->launch(*stream);
      stream->sync();
      CHECK_EQ(read(*device, *b, 10)[9], i);
    }
    CHECK_EQ(runs->load(), 100);
    graph->launch(nullptr);
    CHECK_EQ(runs->load(), 101);
  }
}

TEST(a_host_function_that_the_plugin_cannot_record_makes_the_graph_one_of_the_host) {
  const char* cpu = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  if (cpu == nullptr || *cpu == '\0') return;
  auto device = Device::open(Plugin::load(cpu, {"mask=stream.host_function,validate", {}}), 0, {});
  auto stream = Stream::create(device);
  auto side = Stream::create(device);
  auto a = device->allocate(80, stream);
  auto b = device->allocate(80, stream);
  std::vector<int64_t> in(10, 4);
  std::vector<int64_t> seen;
  std::vector<int64_t> out(10);
  stream->begin_capture();
  device->copy(host(in.data()), at(*a), 80, stream.get());
  auto fork = Event::create(device, false);
  auto join = Event::create(device, false);
  fork->record(stream.get());
  side->wait(*fork);
  device->copy(at(*a), at(*b), 80, side.get());
  join->record(side.get());
  stream->wait(*join);
  device->copy(at(*b), host(out.data()), 80, stream.get());
  stream->host_function([&](chipdock_status state) {
    CHECK_EQ(state, CHIPDOCK_OK);
    seen.push_back(out[9]);
  });
  device->copy(at(*b), at(*a), 40, stream.get());
  auto graph = stream->end_capture();
  CHECK(!graph->native());
  CHECK_EQ(graph->node_count(), size_t{5});
  CHECK(seen.empty());
  for (int64_t i = 0; i < 3; ++i) {
    in[9] = i;
    graph->launch(*stream);
    stream->sync();
  }
  CHECK_EQ(seen, (std::vector<int64_t>{0, 1, 2}));
  // Inside of another capture it is replayed as well, and the plugin is not asked to record it.
  stream->begin_capture();
  graph->launch(*stream);
  auto outer = stream->end_capture();
  CHECK(!outer->native());
  in[9] = 7;
  outer->launch(*stream);
  stream->sync();
  CHECK_EQ(seen.back(), int64_t{7});
  // What it can record is still a graph of its own.
  stream->begin_capture();
  device->copy(at(*b), at(*a), 80, stream.get());
  CHECK(stream->end_capture()->native());
}

TEST(a_capture_forks_and_joins_over_streams) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto main = Stream::create(device);
    auto side = Stream::create(device);
    auto x = device->allocate(800, main);
    auto y = device->allocate(800, main);
    auto z = device->allocate(800, main);
    const int64_t one = 1;
    const int64_t two = 2;
    auto fork = Event::create(device, false);
    auto join = Event::create(device, false);
    main->begin_capture();
    device->fill(at(*x), 800, &one, 8, main.get());
    fork->record(main.get());
    side->wait(*fork);
    CHECK(side->capturing());
    device->copy(at(*x), at(*y), 800, side.get());
    device->fill(at(*z), 400, &two, 8, main.get());
    join->record(side.get());
    main->wait(*join);
    device->copy(at(*y), at(*z, 400), 400, main.get());
    auto graph = main->end_capture();
    CHECK(!side->capturing());
    for (int round = 0; round < 20; ++round) {
      const int64_t zero = 0;
      for (const auto& buffer : {x, y, z}) device->fill(at(*buffer), 800, &zero, 8, main.get());
      graph->launch(*main);
      main->sync();
      const auto out = read(*device, *z, 100);
      CHECK_EQ(out[0], int64_t{2});
      CHECK_EQ(out[49], int64_t{2});
      CHECK_EQ(out[50], int64_t{1});
      CHECK_EQ(out[99], int64_t{1});
    }
    side->sync();  // Out of the capture it works as before.
  }
}

TEST(a_fork_that_is_not_joined_is_refused) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto main = Stream::create(device);
    auto side = Stream::create(device);
    auto fork = Event::create(device, false);
    main->begin_capture();
    fork->record(main.get());
    side->wait(*fork);
    const Error error = error_of([&] { main->end_capture(); });
    CHECK_EQ(error.code(), CHIPDOCK_FAILED_PRECONDITION);
    CHECK(contains(error.what(), "joined"));
    CHECK(!main->capturing());
    CHECK(!side->capturing());
    main->sync();
    side->sync();
    CHECK_EQ(error_of([&] { main->wait(*fork); }).code(), CHIPDOCK_FAILED_PRECONDITION);
  }
}

TEST(what_a_capture_forbids_dooms_it_and_the_first_cause_stays) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto outside = Event::create(device, false);
    auto inside = Event::create(device, false);
    outside->record(stream.get());
    CHECK_EQ(error_of([&] { stream->end_capture(); }).code(), CHIPDOCK_FAILED_PRECONDITION);
    stream->begin_capture();
    CHECK_EQ(error_of([&] { stream->begin_capture(); }).code(), CHIPDOCK_FAILED_PRECONDITION);
    inside->record(stream.get());
    const Error first = error_of([&] { stream->sync(); });
    CHECK_EQ(first.code(), CHIPDOCK_FAILED_PRECONDITION);
    CHECK_EQ(error_of([&] { stream->query(); }).code(), CHIPDOCK_FAILED_PRECONDITION);
    CHECK_EQ(error_of([&] { inside->sync(); }).code(), CHIPDOCK_FAILED_PRECONDITION);
    CHECK_EQ(error_of([&] { stream->wait(*outside); }).code(), CHIPDOCK_FAILED_PRECONDITION);
    const Error end = error_of([&] { stream->end_capture(); });
    CHECK_EQ(std::string(end.what()), std::string(first.what()));
    stream->sync();
    stream->begin_capture();
    CHECK_EQ(stream->end_capture()->node_count(), size_t{0});
  }
}

TEST(a_launch_that_returns_a_result_cannot_be_captured) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  Kernel sum(device, "Sum");
  auto x = device->allocate(64, stream);
  int64_t total = 0;
  stream->begin_capture();
  CHECK_EQ(error_of([&] { sum.launch(stream.get(), x.get(), nullptr, nullptr, 8, &total); }).code(),
           CHIPDOCK_FAILED_PRECONDITION);
  CHECK_EQ(error_of([&] { stream->end_capture(); }).code(), CHIPDOCK_FAILED_PRECONDITION);
}

TEST(pointers_and_scalars_of_a_graph_are_updated) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  Kernel scale(device, "Scale");
  auto x = device->allocate(64, stream);
  auto y = device->allocate(64, stream);
  auto other = device->allocate(64, stream);
  const int64_t two = 2;
  const int64_t zero = 0;
  for (const auto& buffer : {x, y, other}) device->fill(at(*buffer), 64, &zero, 8, nullptr);
  device->fill(at(*x), 64, &two, 8, nullptr);
  stream->begin_capture();
  const int64_t three = 3;
  scale.launch(stream.get(), x.get(), &three, y.get(), 8);
  auto graph = stream->end_capture();
  graph->launch(*stream);
  stream->sync();
  CHECK_EQ(read(*device, *y, 8)[7], int64_t{6});

  const auto nodes = graph->nodes();
  CHECK_EQ(nodes.size(), size_t{1});
  CHECK_EQ(nodes[0].name, std::string("Scale"));
  GraphChange target;
  target.target = nodes[0].correlation_id;
  target.argument = -1;
  target.place = at(*other);
  GraphChange factor;
  factor.kind = CHIPDOCK_GRAPH_CHANGE_SCALAR;
  factor.target = nodes[0].correlation_id;
  factor.argument = 1;
  factor.scalar_size = 8;
  factor.value = 5;
  GraphChange wrong = factor;
  wrong.scalar_size = 4;
  // All or nothing. [GRA-9]
  CHECK_EQ(error_of([&] { graph->update({target, wrong}); }).code(), CHIPDOCK_INVALID_ARGUMENT);
  wrong = target;
  wrong.target = 999999;
  CHECK_EQ(error_of([&] { graph->update({target, wrong}); }).code(), CHIPDOCK_INVALID_ARGUMENT);
  Gate gate;
  gate.close(*stream);
  graph->launch(*stream);  // In flight: keeps the values it had.
  graph->update({target, factor});
  gate.open();
  stream->sync();
  CHECK_EQ(read(*device, *other, 8)[0], int64_t{0});
  graph->launch(*stream);
  stream->sync();
  CHECK_EQ(read(*device, *other, 8)[0], int64_t{10});
  CHECK_EQ(read(*device, *y, 8)[0], int64_t{6});
}

TEST(copies_of_a_graph_are_updated) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto a = device->allocate(64, stream);
    auto b = device->allocate(64, stream);
    const int64_t seven = 7;
    const int64_t nine = 9;
    std::vector<int64_t> out(8);
    device->fill(at(*a), 64, &seven, 8, nullptr);
    device->fill(at(*b), 64, &nine, 8, nullptr);
    stream->begin_capture();
    device->copy(at(*a), host(out.data()), 64, stream.get());
    auto graph = stream->end_capture();
    graph->launch(*stream);
    stream->sync();
    CHECK_EQ(out[3], int64_t{7});
    GraphChange change;
    change.target = graph->nodes()[0].correlation_id;
    change.argument = 0;
    change.place = at(*b);
    graph->update({change});
    graph->launch(*stream);
    stream->sync();
    CHECK_EQ(out[3], int64_t{9});
  }
}

TEST(an_error_inside_a_launch_names_the_captured_operation) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  Kernel fail(device, "Fail");
  stream->begin_capture();
  stream->host_function([](chipdock_status) {});
  fail.launch(stream.get(), nullptr, nullptr, nullptr, 0);
  auto graph = stream->end_capture();
  graph->launch(*stream);
  const Error error = error_of([&] { stream->sync(); });
  CHECK_EQ(error.code(), CHIPDOCK_INTERNAL);
  CHECK_EQ(error.correlation_id(), graph->nodes()[1].correlation_id);
  CHECK(contains(error.what(), "operation Fail, node 1 of 2"));
}

TEST(memory_allocated_in_a_capture_stays_while_the_graph_lives) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto other = Stream::create(device);
    std::vector<int64_t> out(16);
    const int64_t five = 5;
    stream->begin_capture();
    auto scratch = device->allocate(128, stream);
    const auto where = std::make_pair(scratch->memory(), scratch->offset());
    device->fill(at(*scratch), 128, &five, 8, stream.get());
    device->copy(at(*scratch), host(out.data()), 128, stream.get());
    scratch.reset();
    auto again =
        device->allocate(128, stream);  // Inside the capture, in stream order: reuse is right.
    CHECK(std::make_pair(again->memory(), again->offset()) == where);
    again->used_on(other);
    again.reset();
    auto graph = stream->end_capture();
    std::vector<std::shared_ptr<Buffer>> others;
    for (int i = 0; i < 200; ++i) {
      others.push_back(device->allocate(128, i % 2 == 0 ? stream : nullptr));
      CHECK(std::make_pair(others.back()->memory(), others.back()->offset()) != where);
    }
    graph->launch(*stream);
    stream->sync();
    CHECK_EQ(out[15], int64_t{5});
    others.clear();
    graph.reset();
    stream->sync();
    const AllocatorStats stats = device->allocator().stats();
    CHECK_EQ(stats.used_bytes, uint64_t{0});
    CHECK_EQ(device->allocator().trim(), stats.reserved_bytes);
  }
}

TEST(a_graph_may_go_while_its_launch_is_in_flight) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto runs = std::make_shared<std::atomic<int>>(0);
    stream->begin_capture();
    stream->host_function([runs](chipdock_status) { ++*runs; });
    auto graph = stream->end_capture();
    graph->launch(*stream);
    graph.reset();
    stream->sync();
    CHECK_EQ(runs->load(), 1);
  }
}
