// SPDX-License-Identifier: Apache-2.0
// Streams, the tasks they run, and the points that events mark. One worker thread a stream, started
// by the first task. Table slots are in stream.cpp and event.cpp, the worker in queue.cpp.
#ifndef CHIPDOCK_PLUGIN_CPU_STREAM_HPP_
#define CHIPDOCK_PLUGIN_CPU_STREAM_HPP_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "abi.hpp"

namespace chipdock::plugin::cpu {

class Capture;

/// Why a stream failed: the first error of its work, handed on to whoever waits for it.
struct Cause {
  chipdock_status status = CHIPDOCK_INTERNAL;
  int64_t vendor_code = 0;
  uint64_t correlation_id = 0;
  std::string text;
  /// Set by the first stream that failed with it: a device counts the cause once, however many
  /// streams it is handed on to. [DEV-7]
  mutable std::atomic<bool> counted{false};
};
using CausePtr = std::shared_ptr<const Cause>;

/// Thrown by a task to fail its stream with the cause of another one. [STR-4]
struct Poisoned {
  CausePtr cause;
};

/// The exception being handled as a cause.
CausePtr current_cause(uint64_t correlation_id);

/// Fills `error` with a cause and returns its status.
chipdock_status report(const Cause& cause, int32_t scope, chipdock_error* error);

/// What a task is told about the run it is part of.
struct RunContext {
  chipdock_stream* stream = nullptr;  ///< NULL: inline, on the caller's thread.
  uint64_t parent_id = 0;             ///< Correlation id of the graph launch, or 0.
};

/// One piece of work. A captured one runs once per replay, so run() leaves the task as it was.
class Task {
 public:
  explicit Task(uint64_t correlation_id) : correlation_id_(correlation_id) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Does the work on the stream's worker. What it throws fails the stream.
  virtual void run(const RunContext& context) = 0;
  /// Called instead of run() once the stream has failed.
  virtual void skip(const CausePtr& /*cause*/) {}
  /// Whether a capture may hold it; if not, the name of the call for the message. [GRA-3]
  virtual const char* uncapturable() const { return nullptr; }
  /// A copy with one change of a graph update made. Throws kit::Failure. [GRA-9]
  virtual std::shared_ptr<Task> changed(const chipdock_graph_change& change) const;
  uint64_t correlation_id() const { return correlation_id_; }

 private:
  const uint64_t correlation_id_;
};
using TaskPtr = std::shared_ptr<Task>;

/// One recording of an event. Outlives event and stream for as long as somebody waits on it.
/// [EVT-3]
class Point {
 public:
  void reach(CausePtr cause);
  bool reached() const { return reached_.load(std::memory_order_acquire); }
  /// Waits up to `timeout_ns` (-1 for ever), or until `cancelled` is set and wake() called.
  bool wait(int64_t timeout_ns, const std::atomic<bool>* cancelled = nullptr);
  void wake();
  /// After reached(): NULL if all went well.
  const CausePtr& cause() const { return cause_; }
  int64_t time_ns() const { return time_ns_; }

  /// Set before the point is seen by others if it was recorded in a capture: it is then never
  /// reached, and a stream that waits on it joins the capture. [GRA-2]
  bool captured = false;
  std::weak_ptr<Capture> capture;

 private:
  std::mutex mutex_;
  std::condition_variable cv_;
  std::atomic<bool> reached_{false};
  CausePtr cause_;
  int64_t time_ns_ = 0;
};
using PointPtr = std::shared_ptr<Point>;

/// Marks a point when its turn comes.
class RecordTask : public Task {
 public:
  explicit RecordTask(PointPtr point);
  void run(const RunContext& context) override;
  void skip(const CausePtr& cause) override;

 private:
  const PointPtr point_;
};

/// Nanoseconds of the clock that all time stamps of this plugin come from.
int64_t now_ns();

/// Waits on `cv` until `done()`; -1 waits for ever. Returns done().
template <class Done>
bool wait_for(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, int64_t timeout_ns,
              Done done) {
  if (timeout_ns < 0) {
    cv.wait(lock, done);
    return true;
  }
  // A limit beyond a year is as good as none, and keeps the clock's arithmetic from wrapping.
  constexpr int64_t kYear = int64_t{366} * 24 * 3600 * 1'000'000'000;
  return cv.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kYear)), done);
}

}  // namespace chipdock::plugin::cpu

struct chipdock_stream {
 public:
  explicit chipdock_stream(chipdock_device& device) : device_(device) {}
  /// Lets the queued work end first. [STR-5]
  ~chipdock_stream();
  chipdock_stream(const chipdock_stream&) = delete;
  chipdock_stream& operator=(const chipdock_stream&) = delete;

  /// Queues a task, or adds it to the capture. Throws FAILED_PRECONDITION on a failed stream.
  void push(chipdock::plugin::cpu::TaskPtr task);
  /// A point behind all work queued so far, outside of any capture; NULL if there is none in
  /// flight.
  chipdock::plugin::cpu::PointPtr fence();
  /// Waits for all queued so far; false if the time ran out.
  bool sync(int64_t timeout_ns);
  bool idle() const;
  chipdock::plugin::cpu::CausePtr failure() const;
  /// Fails the stream. The first cause wins.
  void fail(chipdock::plugin::cpu::CausePtr cause);
  void abort();

  /// On the worker: waits for a point, or throws the cause of it or of an abort.
  void wait_point(const chipdock::plugin::cpu::PointPtr& point);
  /// Throws FAILED_PRECONDITION on a failed stream; dooms a capture, which `what` must not be part
  /// of.
  void enqueue_check(const char* what) const;
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  chipdock_device& device() const { return device_; }

  /// NULL unless the stream is being captured.
  std::shared_ptr<chipdock::plugin::cpu::Capture> capture() const;
  void set_capture(std::shared_ptr<chipdock::plugin::cpu::Capture> capture);

 private:
  void loop();
  void queue_locked(chipdock::plugin::cpu::TaskPtr task);
  void throw_if_failed() const;

  chipdock_device& device_;
  mutable std::mutex mutex_;
  std::condition_variable work_cv_;
  std::condition_variable done_cv_;
  std::deque<chipdock::plugin::cpu::TaskPtr> queue_;
  std::shared_ptr<chipdock::plugin::cpu::Capture> capture_;
  chipdock::plugin::cpu::CausePtr failure_;
  chipdock::plugin::cpu::PointPtr waiting_on_;
  bool sleeping_ = false;
  bool stopping_ = false;
  int waiters_ = 0;
  std::atomic<bool> aborted_{false};
  std::atomic<uint64_t> queued_{0};  // Written under mutex_; atomic for the spinning readers.
  std::atomic<uint64_t> ended_{0};
  std::thread worker_;
};

struct chipdock_event {
  chipdock_event(chipdock_device& device_, uint32_t flags_) : device(device_), flags(flags_) {}
  chipdock::plugin::cpu::PointPtr point() {
    const std::lock_guard<std::mutex> lock(mutex);
    return last;
  }

  chipdock_device& device;
  const uint32_t flags;
  std::mutex mutex;
  chipdock::plugin::cpu::PointPtr last;  // NULL until the first record.
};

#endif  // CHIPDOCK_PLUGIN_CPU_STREAM_HPP_
