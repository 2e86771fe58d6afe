// SPDX-License-Identifier: Apache-2.0
// The emulation of a stream and of an event: one thread for each queue, started at first use, that
// runs tasks in order. Errors are sticky and keep their first cause. [STR-1] to [STR-7], [EVT-1] to
// [EVT-6] It knows no device and no plugin; what a task does is the caller's (operation.hpp).
#ifndef CHIPDOCK_RUNTIME_HOST_QUEUE_HPP_
#define CHIPDOCK_RUNTIME_HOST_QUEUE_HPP_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "error.hpp"

namespace chipdock::runtime {

/// Throws INVALID_ARGUMENT for a limit below -1. [DEV-8]
void check_timeout(int64_t timeout_ns);

/// The first error of a stream or device; NULL while there is none.
using Cause = std::shared_ptr<const Error>;

/// Nanoseconds of the steady clock; the time base of events and of the profiler.
int64_t now_ns();

/// One point in a queue: reached once, with or without a cause. A new record makes a new point, so
/// that waits queued before keep the earlier one. [EVT-1]
struct EventState {
 public:
  /// Marks the point as reached. Only the first call counts.
  void reach(Cause cause);
  bool reached() const { return reached_.load(std::memory_order_acquire); }
  /// Meaningful once reached.
  const Cause& cause() const { return cause_; }
  int64_t time_ns() const { return time_ns_; }
  /// False if `timeout_ns` (-1: no limit) ran out first.
  bool wait(int64_t timeout_ns);
  /// Calls `wake` when the point is reached, from the reaching thread; at once if it is already.
  void on_reach(std::function<void()> wake);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> reached_{false};
  Cause cause_;
  int64_t time_ns_ = 0;
  std::vector<std::function<void()>> wakes_;
};

/// Work of a queue. `run` throws Error to fail the queue; with `always` it is also called after a
/// failure, with the cause, and must not throw then.
struct QueueTask {
  std::function<void(const Cause& failure)> run;
  bool always = false;
  std::string name;  ///< Named in the error if the task fails.
  uint64_t correlation_id = 0;
};

class HostQueue {
 public:
  /// `label` names the queue in errors: "acme:0 stream 3".
  explicit HostQueue(std::string label);
  /// Runs what is queued, then ends the thread. On the queue's own thread it lets the thread end by
  /// itself.
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  /// Throws FAILED_PRECONDITION with the first cause if the queue has failed; the task does not run
  /// then.
  void push(QueueTask task);
  /// Later tasks wait for `point`; its cause fails this queue too. [STR-4]
  void wait(std::shared_ptr<EventState> point);
  /// A point behind everything queued so far. Never throws for a failed queue: the point is reached
  /// then with the cause.
  std::shared_ptr<EventState> record();
  /// Queues a record of `point`.
  void record(const std::shared_ptr<EventState>& point);

  /// Throws TIMEOUT, or the first cause.
  void sync(int64_t timeout_ns);
  /// Whether all tasks have ended. Throws the first cause.
  bool idle();
  /// As idle, without throwing; a failed queue that runs nothing any more is idle.
  bool quiet();
  /// Makes the queue failed; queued tasks that are not `always` do not start. The first cause
  /// stays.
  void fail(const Cause& cause);
  Cause cause() const;
  bool on_own_thread() const;
  /// Waits for all tasks and ends the thread; nothing may be pushed afterwards.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< Shared with the thread.
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_HOST_QUEUE_HPP_
