// SPDX-License-Identifier: Apache-2.0
// Streams and events of the CPU plugin: real asynchrony, order, failures, abort.
#include <mutex>
#include <thread>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

constexpr int64_t kSecond = 1'000'000'000;

/// A launch that fails while it runs: the two inputs of Add cannot be broadcast.
class Failing {
 public:
  explicit Failing(Device& cpu) : cpu_(cpu), add_(cpu), block_(cpu.alloc(64)) {}
  ~Failing() { cpu_.free(block_); }
  chipdock_status launch(chipdock_stream* queue, uint64_t correlation_id) {
    return add_.launch(block_, block_, block_, 3, queue, correlation_id, 2);
  }

 private:
  Device& cpu_;
  Add add_;
  chipdock_memory* block_;
};

void store_state(void* out, chipdock_status state) {
  static_cast<std::atomic<int>*>(out)->store(state);
}

TEST(enqueue_returns_before_the_work_has_run) {
  Device cpu;
  chipdock_stream* queue = cpu.make_stream();
  Gate gate;
  gate.close(cpu, queue);
  std::atomic<int> state{-1};
  CHECK_EQ(cpu.host_function(queue, store_state, &state), CHIPDOCK_OK);
  CHECK_EQ(state.load(), -1);
  CHECK_EQ(cpu.stream->query(queue, &cpu.error), CHIPDOCK_NOT_READY);
  CHECK_EQ(cpu.stream->sync(queue, 0, &cpu.error), CHIPDOCK_TIMEOUT);
  CHECK_EQ(cpu.stream->sync(queue, 1000, &cpu.error), CHIPDOCK_TIMEOUT);
  CHECK_EQ(cpu.device->sync(cpu.handle, 1000, &cpu.error), CHIPDOCK_TIMEOUT);
  gate.open();
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(state.load(), 0);
  CHECK_EQ(cpu.stream->query(queue, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.device->sync(cpu.handle, -1, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(queue);
}

TEST(work_runs_in_order) {
  Device cpu;
  chipdock_stream* queue = cpu.make_stream();
  std::vector<int> order;
  struct Item {
    std::vector<int>* order;
    int number;
  };
  std::vector<Item> items;
  for (int i = 0; i < 200; ++i) items.push_back({&order, i});
  for (Item& item : items) {
    CHECK_EQ(cpu.host_function(
                 queue,
                 [](void* given, chipdock_status) {
                   auto* item = static_cast<Item*>(given);
                   item->order->push_back(item->number);
                 },
                 &item),
             CHIPDOCK_OK);
  }
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  bool sorted = order.size() == 200;
  for (int i = 0; sorted && i < 200; ++i) sorted = order[static_cast<size_t>(i)] == i;
  CHECK(sorted);
  cpu.destroy(queue);
}

TEST(destroy_lets_queued_work_end) {
  Device cpu;
  chipdock_stream* queue = cpu.make_stream();
  std::atomic<int> state{-1};
  for (int i = 0; i < 50; ++i) CHECK_EQ(cpu.host_function(queue, store_state, &state), CHIPDOCK_OK);
  cpu.destroy(queue);
  CHECK_EQ(state.load(), 0);
}

TEST(a_failure_is_sticky_and_names_its_operation) {
  Device cpu;
  Failing failing(cpu);
  chipdock_stream* queue = cpu.make_stream();
  Gate gate;
  gate.close(cpu, queue);
  std::atomic<int> state{-1};
  CHECK_EQ(failing.launch(queue, 77), CHIPDOCK_OK);
  CHECK_EQ(failing.launch(queue, 78), CHIPDOCK_OK);
  CHECK_EQ(cpu.host_function(queue, store_state, &state), CHIPDOCK_OK);
  gate.open();
  for (int i = 0; i < 2; ++i) {
    cpu.error = sized<chipdock_error>();
    CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
    CHECK_EQ(cpu.error.correlation_id, 77u);
    CHECK_EQ(cpu.error.scope, int32_t{CHIPDOCK_SCOPE_STREAM});
    CHECK_EQ(cpu.error.code, int32_t{CHIPDOCK_INVALID_ARGUMENT});
  }
  CHECK_EQ(cpu.stream->query(queue, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(state.load(), int{CHIPDOCK_INVALID_ARGUMENT});
  CHECK_EQ(cpu.reported.load(), 77u);
  CHECK_EQ(failing.launch(queue, 79), CHIPDOCK_FAILED_PRECONDITION);
  CHECK_EQ(cpu.host_function(queue, store_state, &state), CHIPDOCK_FAILED_PRECONDITION);
  CHECK_EQ(cpu.device->sync(cpu.handle, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.error.correlation_id, 77u);
  CHECK_EQ(cpu.device->sync(cpu.handle, -1, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(queue);
}

TEST(events_order_streams) {
  Device cpu;
  chipdock_stream* first = cpu.make_stream();
  chipdock_stream* second = cpu.make_stream();
  chipdock_event* event = cpu.make_event();
  Gate gate;
  gate.close(cpu, first);
  int value = 0;
  CHECK_EQ(cpu.host_function(
               first, [](void* out, chipdock_status) { *static_cast<int*>(out) = 5; }, &value),
           CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(event, first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(second, event, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->query(event, &cpu.error), CHIPDOCK_NOT_READY);
  CHECK_EQ(cpu.event->sync(event, 1000, &cpu.error), CHIPDOCK_TIMEOUT);
  cpu.destroy(event);  // Waits that are queued are not disturbed.
  CHECK_EQ(cpu.host_function(
               second, [](void* out, chipdock_status) { *static_cast<int*>(out) *= 2; }, &value),
           CHIPDOCK_OK);
  gate.open();
  CHECK_EQ(cpu.stream->sync(second, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(value, 10);
  cpu.destroy(first);
  cpu.destroy(second);
}

TEST(a_second_record_moves_the_event_but_not_earlier_waits) {
  Device cpu;
  chipdock_stream* first = cpu.make_stream();
  chipdock_stream* second = cpu.make_stream();
  chipdock_event* event = cpu.make_event();
  CHECK_EQ(cpu.event->query(event, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->sync(event, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(event, first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(second, event, &cpu.error), CHIPDOCK_OK);
  Gate gate;
  gate.close(cpu, first);
  CHECK_EQ(cpu.event->record(event, first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(second, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->query(event, &cpu.error), CHIPDOCK_NOT_READY);
  gate.open();
  CHECK_EQ(cpu.event->sync(event, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(event, nullptr, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->query(event, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(event);
  cpu.destroy(first);
  cpu.destroy(second);
}

TEST(waiting_on_a_failed_stream_keeps_the_first_cause) {
  Device cpu;
  Failing failing(cpu);
  chipdock_stream* first = cpu.make_stream();
  chipdock_stream* second = cpu.make_stream();
  chipdock_event* event = cpu.make_event();
  Gate gate;
  gate.close(cpu, first);
  CHECK_EQ(failing.launch(first, 31), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(event, first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(second, event, &cpu.error), CHIPDOCK_OK);
  gate.open();
  CHECK_EQ(cpu.stream->sync(second, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.error.correlation_id, 31u);
  CHECK_EQ(cpu.event->sync(event, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.event->query(event, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  // Two streams failed with one cause: the device counts it once.
  CHECK_EQ(cpu.device->sync(cpu.handle, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.device->sync(cpu.handle, -1, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(event);
  cpu.destroy(first);
  cpu.destroy(second);
}

TEST(elapsed_needs_two_timing_events_that_are_reached) {
  Device cpu;
  chipdock_stream* queue = cpu.make_stream();
  chipdock_event* start = cpu.make_event(CHIPDOCK_EVENT_TIMING);
  chipdock_event* end = cpu.make_event(CHIPDOCK_EVENT_TIMING);
  chipdock_event* plain = cpu.make_event();
  int64_t nanoseconds = -5;
  CHECK_EQ(cpu.event->elapsed(start, end, &nanoseconds, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.event->record(start, queue, &cpu.error), CHIPDOCK_OK);
  Gate gate;
  gate.close(cpu, queue);
  CHECK_EQ(cpu.event->record(end, queue, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->elapsed(start, end, &nanoseconds, &cpu.error), CHIPDOCK_NOT_READY);
  CHECK_EQ(cpu.event->elapsed(start, plain, &nanoseconds, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(nanoseconds, -5);
  gate.open();
  CHECK_EQ(cpu.event->sync(end, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->elapsed(start, end, &nanoseconds, &cpu.error), CHIPDOCK_OK);
  CHECK(nanoseconds > 0 && nanoseconds < 60 * kSecond);
  int64_t backwards = 0;
  CHECK_EQ(cpu.event->elapsed(end, start, &backwards, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(backwards, -nanoseconds);
  for (chipdock_event* event : {start, end, plain}) cpu.destroy(event);
  cpu.destroy(queue);
}

TEST(ipc_events_and_native_streams_are_unsupported) {
  Device cpu;
  auto event_desc = sized<chipdock_event_desc>();
  event_desc.flags = CHIPDOCK_EVENT_IPC;
  chipdock_event* event = nullptr;
  CHECK_EQ(cpu.event->create(cpu.handle, &event_desc, &event, &cpu.error), CHIPDOCK_UNSUPPORTED);
  auto stream_desc = sized<chipdock_stream_desc>();
  stream_desc.native = &cpu;
  chipdock_stream* queue = nullptr;
  CHECK_EQ(cpu.stream->create(cpu.handle, &stream_desc, &queue, &cpu.error), CHIPDOCK_UNSUPPORTED);
  CHECK(cpu.stream->native == nullptr && cpu.event->export_ipc == nullptr);
}

TEST(values_order_streams_and_the_host) {
  Device cpu;
  chipdock_memory* block = cpu.upload(std::vector<uint64_t>(2, 0));
  chipdock_stream* first = cpu.make_stream();
  chipdock_stream* second = cpu.make_stream();
  CHECK_EQ(cpu.value(second, CHIPDOCK_VALUE_WAIT_EQUAL, block, 9, 8), CHIPDOCK_OK);
  CHECK_EQ(cpu.value(second, CHIPDOCK_VALUE_WAIT_GREATER_EQUAL, block, 3), CHIPDOCK_OK);
  CHECK_EQ(cpu.value(second, CHIPDOCK_VALUE_WAIT_AND, block, 4), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->query(second, &cpu.error), CHIPDOCK_NOT_READY);
  CHECK_EQ(cpu.value(first, CHIPDOCK_VALUE_WRITE, block, 4), CHIPDOCK_OK);
  CHECK_EQ(cpu.value(first, CHIPDOCK_VALUE_WRITE, block, 9, 8), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(second, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.value(first, CHIPDOCK_VALUE_WRITE, block, 0, 4), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.value(first, CHIPDOCK_VALUE_WRITE, block, 0, 16), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.value(first, 9, block, 0), CHIPDOCK_UNSUPPORTED);
  cpu.destroy(first);
  cpu.destroy(second);
  cpu.free(block);
}

TEST(abort_ends_waits_and_runs_host_functions_with_aborted) {
  Device cpu;
  chipdock_memory* block = cpu.upload(std::vector<uint64_t>(1, 0));
  chipdock_stream* held = cpu.make_stream();
  chipdock_stream* waiting = cpu.make_stream();
  chipdock_event* event = cpu.make_event();
  CHECK_EQ(cpu.value(held, CHIPDOCK_VALUE_WAIT_EQUAL, block, 1), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(event, held, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(waiting, event, &cpu.error), CHIPDOCK_OK);
  std::atomic<int> state{-1};
  CHECK_EQ(cpu.host_function(waiting, store_state, &state), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->abort(waiting, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(waiting, -1, &cpu.error), CHIPDOCK_ABORTED);
  CHECK_EQ(state.load(), int{CHIPDOCK_ABORTED});
  CHECK_EQ(cpu.host_function(waiting, store_state, &state), CHIPDOCK_FAILED_PRECONDITION);
  CHECK_EQ(cpu.stream->abort(held, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->sync(event, -1, &cpu.error), CHIPDOCK_ABORTED);
  cpu.destroy(held);
  cpu.destroy(waiting);
  cpu.destroy(event);
  cpu.free(block);
}

TEST(many_streams_and_threads_at_once) {
  Device cpu;
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      chipdock_error error = sized<chipdock_error>();
      auto stream_desc = sized<chipdock_stream_desc>();
      auto event_desc = sized<chipdock_event_desc>();
      auto function = sized<chipdock_host_function_desc>();
      function.function = [](void* out, chipdock_status) {
        ++*static_cast<std::atomic<int>*>(out);
      };
      function.context = &ran;
      for (int i = 0; i < 10; ++i) {
        chipdock_stream* queues[2] = {};
        chipdock_event* event = nullptr;
        for (auto& queue : queues) cpu.stream->create(cpu.handle, &stream_desc, &queue, &error);
        cpu.event->create(cpu.handle, &event_desc, &event, &error);
        for (int k = 0; k < 20; ++k) {
          cpu.stream->host_function(queues[k % 2], &function, &error);
          cpu.event->record(event, queues[k % 2], &error);
          cpu.stream->wait_event(queues[(k + 1) % 2], event, &error);
        }
        cpu.event->destroy(event, &error);
        cpu.stream->sync(queues[0], -1, &error);
        for (auto* queue : queues) cpu.stream->destroy(queue, &error);
      }
    });
  }
  chipdock_error error = sized<chipdock_error>();
  for (int i = 0; i < 20; ++i) cpu.device->sync(cpu.handle, -1, &error);
  for (auto& thread : threads) thread.join();
  CHECK_EQ(ran.load(), 4 * 10 * 20);
}

}  // namespace
