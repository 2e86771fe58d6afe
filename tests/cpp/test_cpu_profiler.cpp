// SPDX-License-Identifier: Apache-2.0
// Records of the CPU plugin's profiler.
#include <mutex>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

struct Record {
  chipdock_profiler_record raw;
  std::string name;
};

/// A session that keeps what its sink gets.
class Session {
 public:
  explicit Session(Device& cpu, uint32_t kinds = 0, uint64_t buffer_bytes = 0) : cpu_(cpu) {
    auto desc = sized<chipdock_profiler_desc>();
    desc.kinds = kinds;
    desc.buffer_bytes = buffer_bytes;
    desc.context = this;
    desc.sink = [](void* context, const chipdock_profiler_record* const* records, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i) {
        static_cast<Session*>(context)->records.push_back(
            {*records[i], records[i]->name != nullptr ? records[i]->name : ""});
      }
    };
    status = cpu.profiler->start(cpu.handle, &desc, &session_, &cpu.error);
  }
  ~Session() { stop(); }
  void stop() {
    if (session_ != nullptr) CHECK_EQ(cpu_.profiler->stop(session_, &cpu_.error), CHIPDOCK_OK);
    session_ = nullptr;
  }
  void flush() { CHECK_EQ(cpu_.profiler->flush(session_, -1, &cpu_.error), CHIPDOCK_OK); }

  std::vector<Record> records;
  chipdock_status status = CHIPDOCK_OK;

 private:
  Device& cpu_;
  chipdock_profiler_session* session_ = nullptr;
};

TEST(records_carry_times_names_and_ids) {
  Device cpu;
  Add add(cpu);
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2});
  Session session(cpu);
  chipdock_stream* queue = cpu.make_stream();
  float host[2];
  CHECK_EQ(add.launch(a, a, a, 2, nullptr, 5), CHIPDOCK_OK);
  CHECK_EQ(add.launch(a, a, a, 2, queue, 6), CHIPDOCK_OK);
  CHECK_EQ(cpu.copy(Device::at(a), Device::at(host), 8, queue, 7), CHIPDOCK_OK);
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  session.flush();
  CHECK_EQ(session.records.size(), 3u);
  int64_t last = 0;
  for (size_t i = 0; i < session.records.size(); ++i) {
    const chipdock_profiler_record& record = session.records[i].raw;
    CHECK_EQ(record.correlation_id, 5 + i);
    CHECK(record.start_ns >= last && record.end_ns >= record.start_ns);
    last = record.end_ns;
    CHECK(record.device == cpu.handle && record.stream == (i == 0 ? nullptr : queue));
  }
  CHECK_EQ(session.records[0].name, std::string(add.kernel->name));
  CHECK_EQ(session.records[2].raw.kind, int32_t{CHIPDOCK_PROFILER_COPY});
  CHECK_EQ(session.records[2].raw.bytes, 8u);
  cpu.destroy(queue);
  session.stop();
  CHECK_EQ(add.launch(a, a, a, 2, nullptr, 9), CHIPDOCK_OK);
  CHECK_EQ(session.records.size(), 3u);
  cpu.free(a);
}

TEST(work_of_a_graph_names_its_launch_as_parent) {
  Device cpu;
  Add add(cpu);
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2});
  chipdock_stream* queue = cpu.make_stream();
  const auto capture = sized<chipdock_capture_desc>();
  CHECK_EQ(cpu.graph->begin_capture(queue, &capture, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(add.launch(a, a, a, 2, queue, 3), CHIPDOCK_OK);
  chipdock_graph* graph = nullptr;
  chipdock_graph_exec* exec = nullptr;
  CHECK_EQ(cpu.graph->end_capture(queue, &graph, &cpu.error), CHIPDOCK_OK);
  const auto instantiate = sized<chipdock_instantiate_desc>();
  CHECK_EQ(cpu.graph->instantiate(graph, &instantiate, &exec, &cpu.error), CHIPDOCK_OK);
  Session session(cpu);
  auto launch = sized<chipdock_graph_launch_desc>();
  launch.correlation_id = 50;
  CHECK_EQ(cpu.graph->launch(exec, &launch, &cpu.error), CHIPDOCK_OK);
  session.stop();
  CHECK_EQ(session.records.size(), 2u);
  CHECK_EQ(session.records[0].raw.correlation_id, 3u);
  CHECK_EQ(session.records[0].raw.parent_id, 50u);
  CHECK_EQ(session.records[1].raw.kind, int32_t{CHIPDOCK_PROFILER_GRAPH});
  CHECK_EQ(cpu.graph->destroy_exec(exec, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.graph->destroy_graph(graph, &cpu.error), CHIPDOCK_OK);
  cpu.destroy(queue);
  cpu.free(a);
}

TEST(kinds_are_chosen_and_a_second_session_is_busy) {
  Device cpu;
  Add add(cpu);
  chipdock_memory* a = cpu.alloc(8);
  Session session(cpu, 1u << CHIPDOCK_PROFILER_FILL);
  CHECK_EQ(session.status, CHIPDOCK_OK);
  CHECK_EQ(Session(cpu).status, CHIPDOCK_BUSY);
  auto fill = sized<chipdock_fill_desc>();
  const chipdock_place to = Device::at(a);
  fill.pattern_size = 1;
  fill.target = &to;
  fill.size = 8;
  CHECK_EQ(cpu.memory->fill(cpu.handle, &fill, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(add.launch(a, a, a, 2), CHIPDOCK_OK);
  session.stop();
  CHECK_EQ(session.records.size(), 1u);
  CHECK_EQ(Session(cpu, 1u << 20).status, CHIPDOCK_UNSUPPORTED);
  cpu.free(a);
}

TEST(lost_records_are_counted) {
  Device cpu;
  chipdock_memory* a = cpu.alloc(8);
  float host[2];
  Session session(cpu, 0, 1);  // Room for one record.
  for (int i = 0; i < 5; ++i) CHECK_EQ(cpu.copy(Device::at(a), Device::at(host), 8), CHIPDOCK_OK);
  session.flush();
  CHECK_EQ(session.records.size(), 2u);
  CHECK_EQ(session.records[1].raw.kind, int32_t{CHIPDOCK_PROFILER_DROPPED});
  CHECK_EQ(session.records[1].raw.bytes, 4u);
  cpu.free(a);
}

TEST(the_clock_lies_between_two_host_times) {
  Device cpu;
  auto sample = sized<chipdock_clock_sample>();
  CHECK_EQ(cpu.profiler->clock(cpu.handle, &sample, &cpu.error), CHIPDOCK_OK);
  CHECK(sample.host_before_ns <= sample.device_ns && sample.device_ns <= sample.host_after_ns);
}

}  // namespace
