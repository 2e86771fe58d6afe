// SPDX-License-Identifier: Apache-2.0
// How a stream runs its tasks: one worker, in order, and after a failure nothing more.
#include <chrono>
#include <system_error>
#include <utility>

#include "device.hpp"
#include "graph.hpp"
#include "spin.hpp"
#include "stream.hpp"

namespace chipdock::plugin::cpu {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CausePtr current_cause(uint64_t correlation_id) {
  auto cause = std::make_shared<Cause>();
  cause->correlation_id = correlation_id;
  try {
    throw;
  } catch (const Poisoned& poisoned) {
    return poisoned.cause;
  } catch (const kit::Failure& failure) {
    cause->status = failure.code();
    cause->vendor_code = failure.vendor_code();
    cause->text = failure.what();
  } catch (const std::bad_alloc&) {
    cause->status = CHIPDOCK_OUT_OF_MEMORY;
    cause->text = "OUT_OF_MEMORY: host memory is exhausted";
  } catch (const std::exception& other) {
    cause->text = std::string("INTERNAL: ") + other.what();
  } catch (...) {
    cause->text = "INTERNAL: an unknown exception was thrown";
  }
  return cause;
}

chipdock_status report(const Cause& cause, int32_t scope, chipdock_error* error) {
  chipdock_fail(error, cause.status, cause.text.c_str());
  if (error != nullptr && error->struct_size >= offsetof(chipdock_error, text)) {
    error->vendor_code = cause.vendor_code;
    error->scope = scope;
    error->correlation_id = cause.correlation_id;
  }
  return cause.status;
}

std::shared_ptr<Task> Task::changed(const chipdock_graph_change&) const {
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, "the captured enqueue ", correlation_id_,
            " has nothing that an update could change");
}

RecordTask::RecordTask(PointPtr point) : Task(0), point_(std::move(point)) {}

void RecordTask::run(const RunContext&) { point_->reach(nullptr); }

void RecordTask::skip(const CausePtr& cause) { point_->reach(cause); }

void Point::reach(CausePtr cause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cause_ = std::move(cause);
    time_ns_ = now_ns();
    reached_.store(true, std::memory_order_release);
  }
  cv_.notify_all();
}

bool Point::wait(int64_t timeout_ns, const std::atomic<bool>* cancelled) {
  if (reached()) return true;
  if (timeout_ns == 0) return false;
  const auto over = [&] {
    return reached() || (cancelled != nullptr && cancelled->load(std::memory_order_acquire));
  };
  if (spin_until(over)) return reached();
  std::unique_lock<std::mutex> lock(mutex_);
  wait_for(cv_, lock, timeout_ns, over);
  return reached();
}

void Point::wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
  }
  cv_.notify_all();
}

}  // namespace chipdock::plugin::cpu

namespace kit = chipdock::kit;
using chipdock::plugin::cpu::Capture;
using chipdock::plugin::cpu::Cause;
using chipdock::plugin::cpu::CausePtr;
using chipdock::plugin::cpu::current_cause;
using chipdock::plugin::cpu::Point;
using chipdock::plugin::cpu::PointPtr;
using chipdock::plugin::cpu::Poisoned;
using chipdock::plugin::cpu::RecordTask;
using chipdock::plugin::cpu::spin_until;
using chipdock::plugin::cpu::TaskPtr;

chipdock_stream::~chipdock_stream() {
  if (const auto open = capture()) open->lose(*this);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    queued_.fetch_add(1);  // Ends a spin.
  }
  work_cv_.notify_all();
  if (worker_.joinable()) worker_.join();
}

void chipdock_stream::throw_if_failed() const {
  if (failure_ == nullptr) return;
  kit::fail(
      CHIPDOCK_FAILED_PRECONDITION,
      "the stream has failed and takes no more work; destroy it. First cause: ", failure_->text);
}

void chipdock_stream::push(TaskPtr task) {
  bool wake = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    throw_if_failed();
    if (capture_ != nullptr) {
      const auto open = capture_;
      lock.unlock();
      open->add(*this, std::move(task));
      return;
    }
    queue_locked(std::move(task));
    wake = std::exchange(sleeping_, false);
  }
  if (wake) work_cv_.notify_one();
}

void chipdock_stream::queue_locked(TaskPtr task) {
  queue_.push_back(std::move(task));
  if (!worker_.joinable()) {
    try {
      worker_ = std::thread([this] { loop(); });
    } catch (const std::system_error& error) {
      queue_.pop_back();
      kit::fail(CHIPDOCK_OUT_OF_MEMORY, "a stream's thread could not be started: ", error.what());
    }
  }
  queued_.fetch_add(1, std::memory_order_release);
}

PointPtr chipdock_stream::fence() {
  PointPtr point;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.load() >= queued_.load()) return nullptr;
    point = std::make_shared<Point>();
    queue_locked(std::make_shared<RecordTask>(point));
  }
  work_cv_.notify_one();
  return point;
}

void chipdock_stream::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (queue_.empty()) {
      if (stopping_) return;
      const uint64_t seen = queued_.load(std::memory_order_relaxed);
      lock.unlock();
      spin_until([&] { return queued_.load(std::memory_order_acquire) != seen; });
      lock.lock();
      if (!queue_.empty() || stopping_) continue;
      sleeping_ = true;
      work_cv_.wait(lock, [&] { return !queue_.empty() || stopping_; });
      sleeping_ = false;
      continue;
    }
    TaskPtr task = std::move(queue_.front());
    queue_.pop_front();
    CausePtr cause = failure_;
    lock.unlock();
    if (cause != nullptr) {
      task->skip(cause);
    } else {
      try {
        task->run({this, 0});
      } catch (...) {
        this->fail(current_cause(task->correlation_id()));
      }
    }
    task.reset();  // Before the work counts as ended: what it holds may belong to the waiter.
    lock.lock();
    ended_.fetch_add(1, std::memory_order_release);
    if (waiters_ > 0) done_cv_.notify_all();
  }
}

bool chipdock_stream::sync(int64_t timeout_ns) {
  const uint64_t target = queued_.load(std::memory_order_acquire);
  const auto done = [&] { return ended_.load(std::memory_order_acquire) >= target; };
  if (done()) return true;
  if (timeout_ns == 0) return false;
  if (spin_until(done)) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiters_;
  const bool ended = chipdock::plugin::cpu::wait_for(done_cv_, lock, timeout_ns, done);
  --waiters_;
  return ended;
}

std::shared_ptr<Capture> chipdock_stream::capture() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return capture_;
}

void chipdock_stream::set_capture(std::shared_ptr<Capture> capture) {
  const std::lock_guard<std::mutex> lock(mutex_);
  capture_ = std::move(capture);
}

void chipdock_stream::enqueue_check(const char* what) const {
  std::unique_lock<std::mutex> lock(mutex_);
  throw_if_failed();
  const auto open = capture_;
  lock.unlock();
  if (open != nullptr) open->doom(std::string(what) + " was called on a captured stream [GRA-3]");
}

bool chipdock_stream::idle() const {
  return ended_.load(std::memory_order_acquire) >= queued_.load(std::memory_order_acquire);
}

CausePtr chipdock_stream::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

void chipdock_stream::fail(CausePtr cause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ != nullptr) return;
    failure_ = cause;
  }
  device_.stream_failed(*this, cause);
}

void chipdock_stream::abort() {
  auto cause = std::make_shared<Cause>();
  cause->status = CHIPDOCK_ABORTED;
  cause->text = "ABORTED: the stream was aborted; destroy it";
  PointPtr waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ == nullptr) failure_ = std::move(cause);
    aborted_.store(true, std::memory_order_release);
    waiting = waiting_on_;
  }
  if (waiting != nullptr) waiting->wake();
}

void chipdock_stream::wait_point(const PointPtr& point) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_on_ = point;
  }
  const bool reached = point->wait(-1, &aborted_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_on_ = nullptr;
  }
  if (!reached) kit::fail(CHIPDOCK_ABORTED, "the stream was aborted while it waited for an event");
  if (point->cause() != nullptr) throw Poisoned{point->cause()};
}
