// SPDX-License-Identifier: Apache-2.0
// Capture and replay of the CPU plugin.
#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

struct Fixture : Device {
  Fixture() : add(new Add(*this)), queue(make_stream()) {}
  ~Fixture() {
    if (exec != nullptr) CHECK_EQ(graph->destroy_exec(exec, &error), CHIPDOCK_OK);
    destroy(queue);
    delete add;
  }
  void begin() {
    const auto desc = sized<chipdock_capture_desc>();
    CHECK_EQ(graph->begin_capture(queue, &desc, &error), CHIPDOCK_OK);
  }
  chipdock_status end(chipdock_graph** out) { return graph->end_capture(queue, out, &error); }
  /// Ends the capture and keeps only the exec.
  chipdock_graph_info finish() {
    chipdock_graph* made = nullptr;
    CHECK_EQ(end(&made), CHIPDOCK_OK);
    auto info = sized<chipdock_graph_info>();
    CHECK_EQ(graph->info(made, &info, &error), CHIPDOCK_OK);
    const auto desc = sized<chipdock_instantiate_desc>();
    CHECK_EQ(graph->instantiate(made, &desc, &exec, &error), CHIPDOCK_OK);
    CHECK_EQ(graph->destroy_graph(made, &error), CHIPDOCK_OK);
    return info;
  }
  chipdock_status replay(chipdock_stream* on, uint64_t correlation_id = 0) {
    auto desc = sized<chipdock_graph_launch_desc>();
    desc.stream = on;
    desc.correlation_id = correlation_id;
    return graph->launch(exec, &desc, &error);
  }
  chipdock_status change(const chipdock_graph_change& one) {
    const chipdock_graph_change* changes[] = {&one};
    auto desc = sized<chipdock_graph_update_desc>();
    desc.change_count = 1;
    desc.changes = changes;
    return graph->update(exec, &desc, &error);
  }
  int32_t state(chipdock_stream* of) {
    int32_t out = -1;
    CHECK_EQ(graph->capture_state(of, &out, &error), CHIPDOCK_OK);
    return out;
  }

  Add* add;
  chipdock_stream* queue;
  chipdock_graph_exec* exec = nullptr;
};

TEST(captured_work_runs_at_launch_and_not_before) {
  Fixture cpu;
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2});
  chipdock_memory* y = cpu.upload(std::vector<float>{0, 0});
  int calls = 0;
  CHECK_EQ(cpu.state(cpu.queue), int32_t{CHIPDOCK_CAPTURE_NONE});
  cpu.begin();
  CHECK_EQ(cpu.state(cpu.queue), int32_t{CHIPDOCK_CAPTURE_ACTIVE});
  CHECK_EQ(cpu.add->launch(a, y, y, 2, cpu.queue, 1), CHIPDOCK_OK);
  CHECK_EQ(cpu.add->launch(a, y, y, 2, cpu.queue, 2), CHIPDOCK_OK);
  CHECK_EQ(cpu.host_function(
               cpu.queue, [](void* out, chipdock_status) { ++*static_cast<int*>(out); }, &calls),
           CHIPDOCK_OK);
  const auto info = cpu.finish();
  CHECK_EQ(info.node_count, 3u);
  CHECK_EQ(info.stream_count, 1u);
  CHECK_EQ(cpu.state(cpu.queue), int32_t{CHIPDOCK_CAPTURE_NONE});
  CHECK(cpu.download<float>(y, 2) == (std::vector<float>{0, 0}));
  CHECK_EQ(cpu.replay(cpu.queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.replay(cpu.queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(cpu.queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.replay(nullptr), CHIPDOCK_OK);
  CHECK(cpu.download<float>(y, 2) == (std::vector<float>{6, 12}));
  CHECK_EQ(calls, 3);
  cpu.free(a);
  cpu.free(y);
}

TEST(update_moves_pointers_for_later_launches_only) {
  Fixture cpu;
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2});
  chipdock_memory* b = cpu.upload(std::vector<float>{10, 20});
  chipdock_memory* y = cpu.alloc(8);
  cpu.begin();
  CHECK_EQ(cpu.add->launch(a, a, y, 2, cpu.queue, 5), CHIPDOCK_OK);
  cpu.finish();
  Gate gate;
  gate.close(cpu, cpu.queue);
  CHECK_EQ(cpu.replay(cpu.queue), CHIPDOCK_OK);
  auto change = sized<chipdock_graph_change>();
  change.kind = CHIPDOCK_GRAPH_CHANGE_MEMORY;
  change.target = 5;
  change.argument = 1;
  change.memory = b;
  CHECK_EQ(cpu.change(change), CHIPDOCK_OK);
  gate.open();
  CHECK_EQ(cpu.stream->sync(cpu.queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK(cpu.download<float>(y, 2) == (std::vector<float>{2, 4}));
  CHECK_EQ(cpu.replay(nullptr), CHIPDOCK_OK);
  CHECK(cpu.download<float>(y, 2) == (std::vector<float>{11, 22}));
  change.argument = 2;
  CHECK_EQ(cpu.change(change), CHIPDOCK_INVALID_ARGUMENT);
  change.argument = -2;
  CHECK_EQ(cpu.change(change), CHIPDOCK_INVALID_ARGUMENT);
  change.argument = 0;
  change.offset = 4;
  CHECK_EQ(cpu.change(change), CHIPDOCK_INVALID_ARGUMENT);
  change.target = 6;
  CHECK_EQ(cpu.change(change), CHIPDOCK_INVALID_ARGUMENT);
  change.kind = 99;
  CHECK_EQ(cpu.change(change), CHIPDOCK_UNSUPPORTED);
  for (chipdock_memory* block : {a, b, y}) cpu.free(block);
}

TEST(update_changes_both_ends_of_a_copy) {
  Fixture cpu;
  chipdock_memory* block = cpu.upload(std::vector<float>{1, 2, 3, 4});
  float first[2] = {};
  float second[2] = {};
  cpu.begin();
  CHECK_EQ(cpu.copy(Device::at(block), Device::at(first), 8, cpu.queue, 3), CHIPDOCK_OK);
  cpu.finish();
  auto change = sized<chipdock_graph_change>();
  change.kind = CHIPDOCK_GRAPH_CHANGE_MEMORY;
  change.target = 3;
  change.argument = 0;
  change.memory = block;
  change.offset = 8;
  CHECK_EQ(cpu.change(change), CHIPDOCK_OK);
  change.argument = -1;
  change.memory = nullptr;
  change.offset = 0;
  change.host = second;
  CHECK_EQ(cpu.change(change), CHIPDOCK_OK);
  CHECK_EQ(cpu.replay(nullptr), CHIPDOCK_OK);
  CHECK(first[0] == 0 && second[0] == 3 && second[1] == 4);
  cpu.free(block);
}

TEST(fork_and_join_take_other_streams_in) {
  Fixture cpu;
  chipdock_memory* a = cpu.upload(std::vector<float>{1});
  chipdock_memory* y = cpu.upload(std::vector<float>{0});
  chipdock_stream* side = cpu.make_stream();
  chipdock_event* fork = cpu.make_event();
  chipdock_event* join = cpu.make_event();
  cpu.begin();
  CHECK_EQ(cpu.add->launch(a, a, y, 1, cpu.queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(fork, cpu.queue, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(side, fork, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.state(side), int32_t{CHIPDOCK_CAPTURE_ACTIVE});
  CHECK_EQ(cpu.add->launch(y, y, y, 1, side), CHIPDOCK_OK);
  CHECK_EQ(cpu.event->record(join, side, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(cpu.queue, join, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.finish().stream_count, 2u);
  CHECK_EQ(cpu.state(side), int32_t{CHIPDOCK_CAPTURE_NONE});
  CHECK_EQ(cpu.replay(nullptr), CHIPDOCK_OK);
  CHECK_EQ(cpu.download<float>(y, 1)[0], 4.0f);
  cpu.destroy(side);
  cpu.destroy(fork);
  cpu.destroy(join);
  cpu.free(a);
  cpu.free(y);
}

TEST(a_fork_that_is_not_joined_gives_no_graph) {
  Fixture cpu;
  chipdock_stream* side = cpu.make_stream();
  chipdock_event* fork = cpu.make_event();
  cpu.begin();
  CHECK_EQ(cpu.event->record(fork, cpu.queue, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(side, fork, &cpu.error), CHIPDOCK_OK);
  chipdock_graph* made = nullptr;
  CHECK_EQ(cpu.end(&made), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(made == nullptr && cpu.text_has("joined"));
  CHECK_EQ(cpu.state(side), int32_t{CHIPDOCK_CAPTURE_NONE});
  CHECK_EQ(cpu.stream->sync(side, -1, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(side);
  cpu.destroy(fork);
}

TEST(forbidden_calls_doom_a_capture_with_their_cause) {
  Fixture cpu;
  chipdock_graph* made = nullptr;
  chipdock_event* event = cpu.make_event();
  chipdock_stream* other = cpu.make_stream();
  CHECK_EQ(cpu.event->record(event, other, &cpu.error), CHIPDOCK_OK);
  for (int call = 0; call < 4; ++call) {
    cpu.begin();
    chipdock_status status = CHIPDOCK_OK;
    if (call == 0) status = cpu.stream->sync(cpu.queue, -1, &cpu.error);
    if (call == 1) status = cpu.stream->query(cpu.queue, &cpu.error);
    if (call == 2) status = cpu.stream->wait_event(cpu.queue, event, &cpu.error);
    if (call == 3) {
      chipdock_event* inside = cpu.make_event();
      CHECK_EQ(cpu.event->record(inside, cpu.queue, &cpu.error), CHIPDOCK_OK);
      status = cpu.event->sync(inside, -1, &cpu.error);
      cpu.destroy(inside);
    }
    CHECK_EQ(status, CHIPDOCK_FAILED_PRECONDITION);
    CHECK_EQ(cpu.state(cpu.queue), int32_t{CHIPDOCK_CAPTURE_DOOMED});
    const char* words[] = {"sync", "query", "wait_event", "sync of an event"};
    CHECK_EQ(cpu.end(&made), CHIPDOCK_FAILED_PRECONDITION);
    CHECK(made == nullptr && cpu.text_has(words[call]));
  }
  CHECK_EQ(cpu.end(&made), CHIPDOCK_FAILED_PRECONDITION);
  cpu.destroy(event);
  cpu.destroy(other);
}

TEST(free_async_in_a_capture_frees_nothing) {
  Fixture cpu;
  chipdock_memory* block = cpu.alloc(64);
  cpu.begin();
  CHECK_EQ(cpu.memory->free_async(cpu.handle, block, cpu.queue, &cpu.error),
           CHIPDOCK_FAILED_PRECONDITION);
  chipdock_graph* made = nullptr;
  CHECK_EQ(cpu.end(&made), CHIPDOCK_FAILED_PRECONDITION);
  cpu.free(block);
}

TEST(destroying_a_captured_stream_ends_in_an_error) {
  Fixture cpu;
  chipdock_stream* side = cpu.make_stream();
  chipdock_event* fork = cpu.make_event();
  cpu.begin();
  CHECK_EQ(cpu.event->record(fork, cpu.queue, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->wait_event(side, fork, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(side);
  chipdock_graph* made = nullptr;
  CHECK_EQ(cpu.end(&made), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(cpu.text_has("destroyed"));
  cpu.destroy(fork);
}

TEST(an_error_in_a_launch_names_the_captured_enqueue) {
  Fixture cpu;
  chipdock_memory* block = cpu.alloc(64);
  std::atomic<int> state{-1};
  cpu.begin();
  CHECK_EQ(cpu.add->launch(block, block, block, 3, cpu.queue, 41, 2), CHIPDOCK_OK);
  CHECK_EQ(cpu.host_function(
               cpu.queue,
               [](void* out, chipdock_status given) {
                 static_cast<std::atomic<int>*>(out)->store(given);
               },
               &state),
           CHIPDOCK_OK);
  cpu.finish();
  CHECK_EQ(cpu.replay(nullptr, 90), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.error.correlation_id, 41u);
  CHECK_EQ(cpu.replay(cpu.queue, 91), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(cpu.queue, -1, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.error.correlation_id, 41u);
  CHECK_EQ(state.load(), int{CHIPDOCK_INVALID_ARGUMENT});
  cpu.free(block);
}

TEST(destroy_exec_waits_for_a_launch_in_flight) {
  Fixture cpu;
  chipdock_memory* a = cpu.upload(std::vector<float>{1});
  chipdock_memory* y = cpu.alloc(4);
  cpu.begin();
  CHECK_EQ(cpu.add->launch(a, a, y, 1, cpu.queue), CHIPDOCK_OK);
  cpu.finish();
  for (int i = 0; i < 20; ++i) CHECK_EQ(cpu.replay(cpu.queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.graph->destroy_exec(std::exchange(cpu.exec, nullptr), &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->query(cpu.queue, &cpu.error), cpu.stream->sync(cpu.queue, -1, &cpu.error));
  CHECK_EQ(cpu.download<float>(y, 1)[0], 2.0f);
  cpu.free(a);
  cpu.free(y);
}

}  // namespace
