// SPDX-License-Identifier: Apache-2.0
// See host_queue.hpp. A queue that waits for a point of another queue sleeps on its own condition
// variable and is woken by the point, so that abort can end the wait.
#include "host_queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <new>
#include <thread>
#include <utility>

namespace chipdock::runtime {
namespace {

/// Waits until `done` holds; false if the limit ran out. -1 is no limit.
template <class Done>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                int64_t timeout_ns, Done done) {
  if (timeout_ns < 0) {
    changed.wait(lock, done);
    return true;
  }
  // A limit beyond about 30 years would overflow the clock's arithmetic; nobody lives to see it
  // end.
  constexpr int64_t kLongest = int64_t{1000000000} * 1000000000;
  const auto limit = std::chrono::nanoseconds(std::min(timeout_ns, kLongest));
  return changed.wait_for(lock, limit, done);
}

Cause name_task(const Error& error, const std::string& label, const std::string& name,
                uint64_t id) {
  std::ostringstream text;
  text << error.what();
  const uint64_t shown = error.correlation_id() != 0 ? error.correlation_id() : id;
  if (!name.empty() && std::string(error.what()).find("(operation ") == std::string::npos) {
    text << " (operation " << name << " on " << label << ", correlation id " << shown << ")";
  }
  const int32_t scope =
      error.scope() > CHIPDOCK_SCOPE_STREAM ? error.scope() : CHIPDOCK_SCOPE_STREAM;
  return std::make_shared<Error>(error.code(), text.str(), error.vendor_code(), scope, shown);
}

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void check_timeout(int64_t timeout_ns) {
  if (timeout_ns >= -1) return;
  raise(CHIPDOCK_INVALID_ARGUMENT, "timeout_ns is ", timeout_ns,
        ", allowed are -1 for ever, 0 to ask only, and any number of nanoseconds above");
}

void EventState::reach(Cause cause) {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reached()) return;
    cause_ = std::move(cause);
    time_ns_ = now_ns();
    reached_.store(true, std::memory_order_release);
    wakes.swap(wakes_);
    changed_.notify_all();
  }
  for (const auto& wake : wakes) wake();
}

bool EventState::wait(int64_t timeout_ns) {
  if (reached()) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  return wait_until(changed_, lock, timeout_ns, [this] { return reached(); });
}

void EventState::on_reach(std::function<void()> wake) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!reached()) {
      wakes_.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

struct HostQueue::State {
  explicit State(std::string name) : label(std::move(name)) {}

  const std::string label;
  const pid_t owner = getpid();
  mutable std::mutex mutex;
  std::condition_variable
      changed;  ///< The thread waits here for tasks, and for points of other queues.
  std::condition_variable ended;  ///< sync waits here.
  std::deque<QueueTask> tasks;
  uint64_t pushed = 0;
  uint64_t finished = 0;
  Cause cause;
  bool closing = false;
  std::thread thread;

  void set_cause(const Cause& first) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!cause) cause = first;
    changed.notify_all();
  }

  void run_one(QueueTask& task, const Cause& failure) {
    if (failure && !task.always) return;
    try {
      task.run(failure);
    } catch (const Error& error) {
      set_cause(name_task(error, label, task.name, task.correlation_id));
    } catch (const std::bad_alloc&) {
      set_cause(name_task(Error(CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory is exhausted"),
                          label, task.name, task.correlation_id));
    } catch (const std::exception& error) {
      set_cause(name_task(Error(CHIPDOCK_INTERNAL, std::string("INTERNAL: ") + error.what()), label,
                          task.name, task.correlation_id));
    } catch (...) {
      set_cause(name_task(Error(CHIPDOCK_INTERNAL, "INTERNAL: an unknown exception was thrown"),
                          label, task.name, task.correlation_id));
    }
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closing || !tasks.empty(); });
      if (tasks.empty()) return;
      {
        QueueTask task = std::move(tasks.front());
        tasks.pop_front();
        const Cause failure = cause;
        lock.unlock();
        run_one(task, failure);
      }  // What the task owned goes here, without the lock and before the task counts as ended.
      lock.lock();
      ++finished;
      ended.notify_all();
    }
  }

  /// Runs on the queue's thread.
  void wait_for(EventState& point) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return point.reached() || cause != nullptr; });
  }
};

HostQueue::HostQueue(std::string label) : state_(std::make_shared<State>(std::move(label))) {}

HostQueue::~HostQueue() { close(); }

void HostQueue::close() {
  std::thread thread;
  {
    // In a forked child the thread is gone and the lock may be held for ever: leave all as it is.
    if (getpid() != state_->owner) {
      new std::shared_ptr<State>(state_);
      return;
    }
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closing = true;
    thread.swap(state_->thread);
    state_->changed.notify_all();
  }
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

void HostQueue::push(QueueTask task) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cause) {
    const Error& first = *state_->cause;
    std::ostringstream text;
    text << "FAILED_PRECONDITION: " << task.name << " was not queued, " << state_->label
         << " has failed with " << first.what();
    throw Error(CHIPDOCK_FAILED_PRECONDITION, text.str(), first.vendor_code(), first.scope(),
                first.correlation_id());
  }
  if (state_->closing) raise(CHIPDOCK_FAILED_PRECONDITION, state_->label, " is being destroyed");
  if (!state_->thread.joinable()) {
    state_->thread = std::thread([state = state_] { state->run(); });
  }
  state_->tasks.push_back(std::move(task));
  ++state_->pushed;
  state_->changed.notify_all();
}

void HostQueue::wait(std::shared_ptr<EventState> point) {
  if (point->reached() && !point->cause()) return;
  std::weak_ptr<State> weak = state_;
  point->on_reach([weak] {
    if (auto state = weak.lock()) {
      std::lock_guard<std::mutex> lock(state->mutex);
      state->changed.notify_all();
    }
  });
  State* state = state_.get();
  QueueTask task;
  task.run = [state, point](const Cause&) {
    state->wait_for(*point);
    // The cause is taken over as it is: it already names its own operation.
    if (point->reached() && point->cause()) state->set_cause(point->cause());
  };
  task.name = "wait for an event";
  push(std::move(task));
}

std::shared_ptr<EventState> HostQueue::record() {
  auto point = std::make_shared<EventState>();
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->finished == state_->pushed) {
      // Nothing is in flight, so the point is where the queue stands.
      point->reach(state_->cause);
      return point;
    }
    QueueTask task;
    task.run = [point](const Cause& failure) { point->reach(failure); };
    task.always = true;
    state_->tasks.push_back(std::move(task));
    ++state_->pushed;
    state_->changed.notify_all();
  }
  return point;
}

void HostQueue::record(const std::shared_ptr<EventState>& point) {
  QueueTask task;
  task.run = [point](const Cause& failure) { point->reach(failure); };
  task.always = true;
  task.name = "record of an event";
  push(std::move(task));
}

void HostQueue::sync(int64_t timeout_ns) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const uint64_t target = state_->pushed;
  State& state = *state_;
  const bool done =
      wait_until(state.ended, lock, timeout_ns, [&] { return state.finished >= target; });
  if (state.cause) throw Error(*state.cause);
  if (!done) {
    raise(CHIPDOCK_TIMEOUT, "sync of ", state.label, " ran out of its ", timeout_ns, " ns with ",
          target - state.finished, " operations left; the work goes on");
  }
}

bool HostQueue::idle() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cause) throw Error(*state_->cause);
  return state_->finished == state_->pushed;
}

bool HostQueue::quiet() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->finished == state_->pushed;
}

void HostQueue::fail(const Cause& cause) { state_->set_cause(cause); }

Cause HostQueue::cause() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->cause;
}

bool HostQueue::on_own_thread() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->thread.get_id() == std::this_thread::get_id();
}

}  // namespace chipdock::runtime
