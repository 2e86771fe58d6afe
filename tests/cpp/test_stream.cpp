// SPDX-License-Identifier: Apache-2.0
// Streams and events, emulated (work plugin) and native (cpu plugin): order, waits, sticky errors
// with their first cause, timeouts, abort, destroy with work in flight. Streams are held up by
// gates, never by time.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "host_queue.hpp"

using namespace chipdock::check;

TEST(work_runs_in_order) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto seen = std::make_shared<std::vector<int>>();
    for (int i = 0; i < 200; ++i) {
      stream->host_function([seen, i](chipdock_status state) {
        if (state == CHIPDOCK_OK) seen->push_back(i);
      });
    }
    stream->sync();
    CHECK_EQ(seen->size(), size_t{200});
    for (int i = 0; i < 200; ++i) CHECK_EQ((*seen)[static_cast<size_t>(i)], i);
    CHECK(stream->query());
  }
}

TEST(copies_and_fills_of_a_stream_take_effect_in_order) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto a = device->allocate(4096, stream);
    auto b = device->allocate(4096, stream);
    std::vector<uint8_t> in(4096, 7);
    std::vector<uint8_t> out(4096, 0);
    const uint32_t pattern = 0x01020304;
    Gate gate;
    gate.close(*stream);
    device->copy(host(in.data()), at(*a), 4096, stream.get());
    device->fill(at(*a, 1024), 1024, &pattern, 4, stream.get());
    device->copy(at(*a), at(*b), 4096, stream.get());
    device->copy(at(*b), host(out.data()), 4096, stream.get());
    CHECK(!stream->query());
    gate.open();
    stream->sync();
    CHECK_EQ(int{out[0]}, 7);
    CHECK_EQ(int{out[1024]}, 4);
    CHECK_EQ(int{out[2047]}, 1);
    CHECK_EQ(int{out[2048]}, 7);
  }
}

TEST(sync_times_out_and_the_work_goes_on) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto event = Event::create(device, false);
    Gate gate;
    gate.close(*stream);
    event->record(stream.get());
    CHECK_EQ(error_of([&] { stream->sync(0); }).code(), CHIPDOCK_TIMEOUT);
    CHECK_EQ(error_of([&] { event->sync(1000); }).code(), CHIPDOCK_TIMEOUT);
    CHECK_EQ(error_of([&] { device->sync(1000); }).code(), CHIPDOCK_TIMEOUT);
    CHECK(!event->query());
    gate.open();
    event->sync();
    stream->sync();
    device->sync();
    CHECK(event->query());
  }
}

TEST(failed_work_is_sticky_and_names_its_operation) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  Kernel fail(device, "Fail");
  Gate gate;
  gate.close(*stream);
  fail.launch(stream.get(), nullptr, nullptr, nullptr, 0);
  std::atomic<int> state{-1};
  stream->host_function([&](chipdock_status given) { state = given; });
  gate.open();
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of([&] { stream->sync(); });
    CHECK_EQ(error.code(), CHIPDOCK_INTERNAL);
    CHECK_EQ(error.scope(), static_cast<int32_t>(CHIPDOCK_SCOPE_STREAM));
    CHECK(error.correlation_id() != 0);
    CHECK(contains(error.what(), "Fail"));
    CHECK(contains(error.what(), "failed on purpose"));
    CHECK_EQ(device->operation_name(error.correlation_id()), std::string("Fail"));
  }
  CHECK_EQ(state.load(), static_cast<int>(CHIPDOCK_INTERNAL));
  const Error refused = error_of([&] { stream->host_function([](chipdock_status) {}); });
  CHECK_EQ(refused.code(), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(contains(refused.what(), "failed on purpose"));
  // Other streams and inline work of the device are not touched by an error of one stream.
  auto other = Stream::create(device);
  other->sync();
  device->check_alive();
}

TEST(waiting_on_an_event_of_a_failed_stream_poisons_with_the_first_cause) {
  auto device = open_device("work");
  auto first = Stream::create(device);
  auto second = Stream::create(device);
  auto third = Stream::create(device);
  auto event = Event::create(device, false);
  auto chained = Event::create(device, false);
  Kernel fail(device, "Fail");
  Gate gate;
  gate.close(*first);
  fail.launch(first.get(), nullptr, nullptr, nullptr, 0);
  event->record(first.get());
  second->wait(*event);
  fail.launch(second.get(), nullptr, nullptr, nullptr, 0);  // Must not become the cause.
  chained->record(second.get());
  third->wait(*chained);
  gate.open();
  const Error cause = error_of([&] { first->sync(); });
  for (auto& stream : {second, third}) {
    const Error error = error_of([&] { stream->sync(); });
    CHECK_EQ(error.code(), cause.code());
    CHECK_EQ(error.correlation_id(), cause.correlation_id());
    CHECK_EQ(std::string(error.what()), std::string(cause.what()));
  }
  CHECK_EQ(error_of([&] { event->sync(); }).correlation_id(), cause.correlation_id());
  CHECK_EQ(error_of([&] { event->query(); }).correlation_id(), cause.correlation_id());
  CHECK_EQ(error_of([&] { device->sync(); }).correlation_id(), cause.correlation_id());
}

TEST(an_event_may_go_while_it_is_pending) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto first = Stream::create(device);
    auto second = Stream::create(device);
    auto order = std::make_shared<std::atomic<int>>(0);
    Gate gate;
    gate.close(*first);
    first->host_function([order](chipdock_status) { order->store(1); });
    auto event = Event::create(device, false);
    event->record(first.get());
    second->wait(*event);
    event.reset();
    auto seen = std::make_shared<std::atomic<int>>(-1);
    second->host_function([order, seen](chipdock_status) { seen->store(order->load()); });
    CHECK(!second->query());
    gate.open();
    second->sync();
    CHECK_EQ(seen->load(), 1);
    first->sync();
  }
}

TEST(a_wait_keeps_the_point_it_was_queued_for) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto first = Stream::create(device);
    auto second = Stream::create(device);
    auto event = Event::create(device, false);
    second->wait(*event);  // Never recorded: no wait. [EVT-2]
    CHECK(event->query());
    event->record(first.get());
    second->wait(*event);
    Gate gate;
    gate.close(*first);
    event->record(first.get());  // Moves the event behind the gate; the wait above stays.
    second->sync();
    CHECK(!event->query());
    gate.open();
    event->sync();
    first->sync();
  }
}

TEST(streams_that_wait_for_each_other_do_not_deadlock) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto first = Stream::create(device);
    auto second = Stream::create(device);
    auto ping = Event::create(device, false);
    auto pong = Event::create(device, false);
    auto count = std::make_shared<std::atomic<int>>(0);
    for (int round = 0; round < 50; ++round) {
      first->host_function([count](chipdock_status) { ++*count; });
      ping->record(first.get());
      second->wait(*ping);
      second->host_function([count](chipdock_status) { ++*count; });
      pong->record(second.get());
      first->wait(*pong);
    }
    first->sync();
    second->sync();
    CHECK_EQ(count->load(), 100);
  }
}

TEST(abort_ends_a_wait_and_queued_work) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    if (name != "work" && device->tables().stream.abort == nullptr) continue;
    auto blocker = Stream::create(device);
    auto stream = Stream::create(device);
    auto event = Event::create(device, false);
    Gate gate;
    gate.close(*blocker);
    event->record(blocker.get());
    stream->wait(*event);
    auto state = std::make_shared<std::atomic<int>>(-1);
    stream->host_function([state](chipdock_status given) { state->store(given); });
    stream->abort();
    CHECK_EQ(error_of([&] { stream->sync(); }).code(), CHIPDOCK_ABORTED);
    CHECK_EQ(error_of([&] { stream->host_function([](chipdock_status) {}); }).code(),
             CHIPDOCK_FAILED_PRECONDITION);
    stream.reset();
    CHECK_EQ(state->load(), static_cast<int>(CHIPDOCK_ABORTED));
    gate.open();
    blocker->sync();
  }
}

TEST(destroy_ends_the_work_in_flight) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto done = std::make_shared<std::atomic<int>>(0);
    {
      auto stream = Stream::create(device);
      for (int i = 0; i < 20; ++i) stream->host_function([done](chipdock_status) { ++*done; });
    }
    CHECK_EQ(done->load(), 20);
  }
}

TEST(a_stream_may_be_dropped_by_its_own_work) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  auto last = std::make_shared<EventState>();
  Gate gate;
  gate.close(*stream);
  auto holder = std::make_shared<std::shared_ptr<Stream>>(stream);
  stream->host_function([holder](chipdock_status) { holder->reset(); });
  stream->host_function([last](chipdock_status) { last->reach(nullptr); });
  stream.reset();
  gate.open();
  CHECK(last->wait(-1));
}

TEST(a_launch_on_an_emulated_stream_keeps_its_description) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  Kernel scale(device, "Scale");
  Kernel sum(device, "Sum");
  auto x = device->allocate(8 * 8, stream);
  auto y = device->allocate(8 * 8, stream);
  const std::vector<int64_t> in = {1, 2, 3, 4, 5, 6, 7, 8};
  device->copy(host(in.data()), at(*x), 64, stream.get());
  Gate gate;
  gate.close(*stream);
  const int64_t three = 3;
  scale.launch(stream.get(), x.get(), &three, y.get(), 8);
  gate.open();
  int64_t total = 0;
  sum.launch(stream.get(), y.get(), nullptr, nullptr, 8,
             &total);  // A host output is there on return. [KRN-7]
  CHECK_EQ(total, int64_t{3 * 36});
}

TEST(values_order_streams_where_the_host_sees_the_memory) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto first = Stream::create(device);
    auto second = Stream::create(device);
    auto flag = device->allocate(64, nullptr);
    const uint64_t zero = 0;
    device->fill(at(*flag), 64, &zero, 8, nullptr);
    auto seen = std::make_shared<std::atomic<int>>(0);
    first->value(CHIPDOCK_VALUE_WAIT_EQUAL, at(*flag), 5);
    first->value(CHIPDOCK_VALUE_WAIT_GREATER_EQUAL, at(*flag), 4);
    first->value(CHIPDOCK_VALUE_WAIT_AND, at(*flag), 1);
    first->host_function([seen](chipdock_status) { seen->store(1); });
    CHECK(!first->query());
    second->value(CHIPDOCK_VALUE_WRITE, at(*flag), 5);
    first->sync();
    second->sync();
    CHECK_EQ(seen->load(), 1);
    CHECK_EQ(error_of([&] { first->value(CHIPDOCK_VALUE_WRITE, at(*flag, 4), 5); }).code(),
             CHIPDOCK_INVALID_ARGUMENT);
  }
  auto nano = open_device("nano");
  auto stream = Stream::create(nano);
  auto flag = nano->allocate(64, nullptr);
  CHECK_EQ(error_of([&] { stream->value(CHIPDOCK_VALUE_WRITE, at(*flag), 5); }).code(),
           CHIPDOCK_UNSUPPORTED);
}

TEST(an_aborted_stream_leaves_its_value_wait) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  auto flag = device->allocate(64, nullptr);
  const uint64_t zero = 0;
  device->fill(at(*flag), 64, &zero, 8, nullptr);
  stream->value(CHIPDOCK_VALUE_WAIT_EQUAL, at(*flag), 1);
  stream->abort();
  CHECK_EQ(error_of([&] { stream->sync(); }).code(), CHIPDOCK_ABORTED);
}

TEST(elapsed_is_measured_between_reached_timing_events) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto start = Event::create(device, true);
    auto end = Event::create(device, true);
    auto plain = Event::create(device, false);
    start->record(stream.get());
    Gate gate;
    gate.close(*stream);
    end->record(stream.get());
    CHECK_EQ(error_of([&] { end->elapsed_since(*start); }).code(), CHIPDOCK_NOT_READY);
    gate.open();
    end->sync();
    CHECK(end->elapsed_since(*start) > 0);
    CHECK(start->elapsed_since(*end) < 0);
    plain->record(stream.get());
    plain->sync();
    CHECK_EQ(error_of([&] { plain->elapsed_since(*start); }).code(), CHIPDOCK_INVALID_ARGUMENT);
  }
}

TEST(a_host_function_that_throws_fails_an_emulated_stream) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  stream->host_function([](chipdock_status) { throw std::runtime_error("told to"); });
  const Error error = error_of([&] { stream->sync(); });
  CHECK_EQ(error.code(), CHIPDOCK_INTERNAL);
  CHECK(contains(error.what(), "told to"));
  CHECK(contains(error.what(), "host function"));
}

TEST(several_threads_may_enqueue_on_one_stream) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto other = Stream::create(device);
    auto count = std::make_shared<int>(0);  // Not atomic: the stream's order protects it.
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        auto event = Event::create(device, false);
        for (int i = 0; i < 100; ++i) {
          stream->host_function([count](chipdock_status) { ++*count; });
          event->record(stream.get());
          other->wait(*event);
          stream->query();
        }
        stream->sync();
      });
    }
    for (auto& thread : threads) thread.join();
    other->sync();
    CHECK_EQ(*count, 400);
  }
}

TEST(a_stream_of_another_plugin_is_waited_for_on_the_host) {
  auto here = open_device("work");
  auto there = open_device("nano");
  auto first = Stream::create(here);
  auto second = Stream::create(there);
  auto event = Event::create(here, false);
  auto seen = std::make_shared<std::atomic<int>>(0);
  first->host_function([seen](chipdock_status) { seen->store(1); });
  event->record(first.get());
  second->wait(*event);
  auto then = std::make_shared<std::atomic<int>>(0);
  second->host_function([=](chipdock_status) { then->store(seen->load()); });
  second->sync();
  CHECK_EQ(then->load(), 1);
  CHECK_EQ(error_of([&] { event->record(second.get()); }).code(), CHIPDOCK_INVALID_ARGUMENT);
}
