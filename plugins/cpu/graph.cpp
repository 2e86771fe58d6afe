// SPDX-License-Identifier: Apache-2.0
// The graph table: captures, graphs, and their replay as one task.
#include "graph.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <utility>

#include "device.hpp"
#include "profiler.hpp"

namespace {

/// Replays in flight of one exec; destroy_exec waits for them.
struct Flights {
  std::mutex mutex;
  std::condition_variable cv;
  int count = 0;
};

}  // namespace

struct chipdock_graph {
  chipdock_graph(chipdock_device& device_,
                 std::pair<chipdock::plugin::cpu::TaskList, uint64_t> work)
      : device(device_), tasks(std::move(work.first)), streams(work.second) {
    device.others.fetch_add(1);
  }
  ~chipdock_graph() { device.others.fetch_sub(1); }

  chipdock_device& device;
  const chipdock::plugin::cpu::TaskList tasks;
  const uint64_t streams;
};

struct chipdock_graph_exec {
  explicit chipdock_graph_exec(const chipdock_graph& graph)
      : device(graph.device),
        tasks(std::make_shared<const chipdock::plugin::cpu::TaskList>(graph.tasks)) {
    device.others.fetch_add(1);
  }
  ~chipdock_graph_exec() { device.others.fetch_sub(1); }

  chipdock_device& device;
  /// Replaced as a whole by update: a launch in flight keeps the list it began with. [GRA-9]
  std::shared_ptr<const chipdock::plugin::cpu::TaskList> tasks;
  const std::shared_ptr<Flights> flights = std::make_shared<Flights>();
};

namespace chipdock::plugin::cpu {
namespace {

class ReplayTask : public Task {
 public:
  ReplayTask(const chipdock_graph_exec& exec, uint64_t correlation_id)
      : Task(correlation_id), device_(exec.device), tasks_(exec.tasks), flights_(exec.flights) {
    const std::lock_guard<std::mutex> lock(flights_->mutex);
    ++flights_->count;
  }
  ~ReplayTask() override {
    tasks_.reset();
    const std::lock_guard<std::mutex> lock(flights_->mutex);
    --flights_->count;
    flights_->cv.notify_all();
  }

  void run(const RunContext& context) override {
    const ProfileScope scope(device_, CHIPDOCK_PROFILER_GRAPH, nullptr, correlation_id(), 0,
                             context);
    const RunContext inner{context.stream, correlation_id()};
    CausePtr cause;
    for (const TaskPtr& task : *tasks_) {
      if (cause == nullptr && context.stream != nullptr && context.stream->aborted()) {
        cause = context.stream->failure();
      }
      if (cause != nullptr) {
        task->skip(cause);
        continue;
      }
      try {
        task->run(inner);
      } catch (...) {
        cause = current_cause(task->correlation_id());
      }
    }
    if (cause != nullptr) throw Poisoned{cause};
  }
  void skip(const CausePtr& cause) override {
    for (const TaskPtr& task : *tasks_) task->skip(cause);
  }
  const char* uncapturable() const override { return "launch of a graph"; }

 private:
  chipdock_device& device_;
  std::shared_ptr<const TaskList> tasks_;
  const std::shared_ptr<Flights> flights_;
};

chipdock_status begin_capture(chipdock_stream* stream, const chipdock_capture_desc* given,
                              chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(stream, "stream");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_capture_desc, correlation_id), "capture desc");
    check_flags(desc.flags, 0, "capture desc");
    if (stream->capture() != nullptr) {
      kit::fail(CHIPDOCK_FAILED_PRECONDITION, "the stream is being captured already");
    }
    stream->enqueue_check("begin_capture");
    stream->set_capture(std::make_shared<Capture>(*stream));
  });
}

chipdock_status end_capture(chipdock_stream* stream, chipdock_graph** out_graph,
                            chipdock_error* error) {
  CausePtr cause;
  const chipdock_status status = kit::guard(error, [&] {
    const auto capture = deref(stream, "stream").capture();
    if (capture == nullptr) {
      kit::fail(CHIPDOCK_FAILED_PRECONDITION, "end_capture of a stream that is not captured");
    }
    try {
      auto work = capture->end(*stream);
      chipdock_graph*& out = deref(out_graph, "out_graph");  // Before anything could leak.
      out = new chipdock_graph(stream->device(), std::move(work));
    } catch (const Poisoned& poisoned) {
      cause = poisoned.cause;
    }
  });
  return cause != nullptr ? report(*cause, CHIPDOCK_SCOPE_CALL, error) : status;
}

chipdock_status capture_state(chipdock_stream* stream, int32_t* out_state, chipdock_error* error) {
  return kit::guard(error, [&] {
    int32_t& state = deref(out_state, "out_state");
    const auto capture = deref(stream, "stream").capture();
    state = capture == nullptr  ? CHIPDOCK_CAPTURE_NONE
            : capture->doomed() ? CHIPDOCK_CAPTURE_DOOMED
                                : CHIPDOCK_CAPTURE_ACTIVE;
  });
}

chipdock_status info(chipdock_graph* graph, chipdock_graph_info* out_info, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(graph, "graph");
    chipdock_graph_info value{};
    value.node_count = graph->tasks.size();
    value.stream_count = graph->streams;
    kit::write_struct(out_info, value, "out_info");
  });
}

chipdock_status instantiate(chipdock_graph* graph, const chipdock_instantiate_desc* given,
                            chipdock_graph_exec** out_exec, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(graph, "graph");
    chipdock_graph_exec*& out = deref(out_exec, "out_exec");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_instantiate_desc, correlation_id), "instantiate desc");
    check_flags(desc.flags, 0, "instantiate desc");
    out = new chipdock_graph_exec(*graph);
  });
}

chipdock_status update(chipdock_graph_exec* exec, const chipdock_graph_update_desc* given,
                       chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(exec, "exec");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_graph_update_desc, correlation_id), "graph update desc");
    kit::require(desc.change_count == 0 || desc.changes != nullptr, "changes is NULL");
    auto tasks = std::make_shared<TaskList>(*exec->tasks);
    for (uint32_t i = 0; i < desc.change_count; ++i) {
      const auto change = kit::read_struct(
          desc.changes[i], CHIPDOCK_CPU_FIRST(chipdock_graph_change, value), "graph change");
      if (change.kind < CHIPDOCK_GRAPH_CHANGE_MEMORY || change.kind > CHIPDOCK_GRAPH_CHANGE_SEED) {
        kit::fail(CHIPDOCK_UNSUPPORTED, "graph change kind ", change.kind, " is unknown");
      }
      TaskPtr* found = nullptr;
      for (TaskPtr& task : *tasks) {
        if (change.target != 0 && task->correlation_id() == change.target) found = &task;
      }
      kit::require(found != nullptr, "the graph has no enqueue with correlation id ", change.target,
                   " [GRA-7]");
      *found = (*found)->changed(change);
    }
    exec->tasks = std::move(tasks);
  });
}

chipdock_status launch(chipdock_graph_exec* exec, const chipdock_graph_launch_desc* given,
                       chipdock_error* error) {
  CausePtr cause;
  const chipdock_status status = kit::guard(error, [&] {
    deref(exec, "exec");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_graph_launch_desc, correlation_id), "graph launch desc");
    check_flags(desc.flags, 0, "graph launch desc");
    auto task = std::make_shared<ReplayTask>(*exec, desc.correlation_id);
    if (desc.stream != nullptr) {
      desc.stream->push(std::move(task));
      return;
    }
    try {
      task->run({});
    } catch (const Poisoned& poisoned) {
      cause = poisoned.cause;
    }
  });
  return cause != nullptr ? report(*cause, CHIPDOCK_SCOPE_CALL, error) : status;
}

chipdock_status destroy_graph(chipdock_graph* graph, chipdock_error* error) {
  return kit::guard(error, [&] { delete &deref(graph, "graph"); });
}

chipdock_status destroy_exec(chipdock_graph_exec* exec, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(exec, "exec");
    {
      std::unique_lock<std::mutex> lock(exec->flights->mutex);
      exec->flights->cv.wait(lock, [&] { return exec->flights->count == 0; });
    }
    delete exec;
  });
}

}  // namespace

const chipdock_graph_api kGraphApi = {CHIPDOCK_TABLE(GRAPH, graph),
                                      begin_capture,
                                      end_capture,
                                      capture_state,
                                      info,
                                      instantiate,
                                      update,
                                      launch,
                                      destroy_graph,
                                      destroy_exec};

}  // namespace chipdock::plugin::cpu
