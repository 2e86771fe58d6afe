// SPDX-License-Identifier: Apache-2.0
// Jobs live on their callers' stacks and hang in one short list. A worker joins the first job that
// still wants one, takes slices from its counter, and looks again. Both sides spin for a moment
// before they sleep, since the next kernel of a model usually comes within microseconds. A worker
// that was seen last on its next caller's core is sent to another one.
#include "thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "callers.hpp"
#include "placement.hpp"
#include "spin.hpp"

namespace chipdock::plugin::cpu {
namespace {

// More slices than threads even out threads that started late or lost their core for a while.
constexpr int64_t kSlicesPerThread = 4;

// A worker waits longer than a caller: between two kernels that use it there may be several small
// ones that do not, and to wake it costs as much as they take.
constexpr std::chrono::microseconds kWorkerSpinTime{300};

// Set while the thread runs a slice: a nested call then stays on this thread.
thread_local bool t_in_slice = false;

}  // namespace

struct ThreadPool::State {
  /// One parallel_for.
  struct Job {
    Job(int64_t count_, int64_t slices_, int wanted_, RangeFunction body_)
        : count(count_), slices(slices_), body(body_), wanted(wanted_) {}

    const int64_t count;
    const int64_t slices;
    const RangeFunction body;
    int wanted;  // Workers that may still join; guarded by the pool's mutex.
    Job* next = nullptr;
    std::atomic<int64_t> taken{0};
    std::atomic<int> workers{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure;  // Written by the slice that set `failed`.

    void work() {
      t_in_slice = true;
      while (true) {
        const int64_t slice = taken.fetch_add(1, std::memory_order_relaxed);
        if (slice >= slices) break;
        if (failed.load(std::memory_order_relaxed)) continue;
        try {
          body(begin(slice), begin(slice + 1));
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
        }
      }
      t_in_slice = false;
    }
    bool open() const { return wanted > 0 && taken.load(std::memory_order_relaxed) < slices; }

   private:
    /// First item of a slice; the remainder of count / slices goes one each to the first ones.
    int64_t begin(int64_t slice) const {
      return slice * (count / slices) + std::min(slice, count % slices);
    }
  };

  explicit State(int threads_) : threads(threads_) {}

  const int threads;
  Callers callers;
  std::atomic<bool> started{false};
  std::mutex mutex;
  std::condition_variable work_cv;
  std::condition_variable done_cv;
  Job* jobs = nullptr;  // Guarded by mutex, like the next four.
  int sleeping = 0;
  bool stopping = false;
  std::vector<std::thread> workers;
  std::deque<Seat> seats;           // One a worker; complete once `started` is set.
  std::atomic<uint64_t> posted{0};  // Changes with every new job, for spinning workers.
  std::atomic<int> waiting{0};      // Callers asleep on done_cv.

  void start() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (started.load(std::memory_order_relaxed)) return;
    try {
      while (static_cast<int>(workers.size()) < threads - 1) {
        Seat& seat = seats.emplace_back();
        workers.emplace_back([this, &seat] { loop(seat); });
      }
    } catch (const std::system_error&) {
      // No more threads to be had: callers work alone or with those that did start.
    }
    started.store(true, std::memory_order_release);
  }

  void loop(Seat& seat) {
    std::unique_lock<std::mutex> lock(mutex);
    while (!stopping) {
      Job* job = jobs;
      while (job != nullptr && !job->open()) job = job->next;
      if (job == nullptr) {
        const uint64_t seen = posted.load(std::memory_order_relaxed);
        lock.unlock();
        seat.take();
        spin_until([&] { return posted.load(std::memory_order_acquire) != seen; }, kWorkerSpinTime);
        lock.lock();
        ++sleeping;
        while (posted.load(std::memory_order_relaxed) == seen && !stopping) work_cv.wait(lock);
        --sleeping;
        continue;
      }
      --job->wanted;
      job->workers.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      seat.take();
      job->work();
      // The job may be gone once the count is down; only the pool is touched from there on.
      job->workers.fetch_sub(1);
      if (waiting.load() > 0) {
        {
          const std::lock_guard<std::mutex> guard(mutex);
        }
        done_cv.notify_all();
      }
      lock.lock();
    }
  }

  void post(Job& job) {
    int wake = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      job.next = jobs;
      jobs = &job;
      posted.fetch_add(1, std::memory_order_release);
      wake = std::min(sleeping, job.wanted);
    }
    const int core = Seat::caller_core();
    for (Seat& seat : seats) seat.leave_to_caller(core);
    for (int i = 0; i < wake; ++i) work_cv.notify_one();
  }

  /// Takes the job off the list, so that nobody joins any more, and waits for those who had joined.
  void finish(Job& job) {
    std::unique_lock<std::mutex> lock(mutex);
    Job** link = &jobs;
    while (*link != &job) link = &(*link)->next;
    *link = job.next;
    const auto done = [&] { return job.workers.load() == 0; };
    if (done()) return;
    lock.unlock();
    if (spin_until(done)) return;
    lock.lock();
    waiting.fetch_add(1);
    done_cv.wait(lock, done);
    waiting.fetch_sub(1);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(std::max(1, threads))) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
    state_->posted.fetch_add(1);
  }
  state_->work_cv.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::parallel_for(int64_t count, int64_t grain, int max_threads, RangeFunction body) {
  if (count <= 0) return;
  State& state = *state_;
  const int threads = max_threads > 0 ? std::min(max_threads, state.threads) : state.threads;
  const int64_t most = count / std::max<int64_t>(1, grain);
  if (threads == 1 || most <= 1 || t_in_slice) {
    body(0, count);
    return;
  }
  const Callers::Guard guard(state.callers);
  // Whoever runs a kernel beside this one has its core too.
  const int helpers = std::min(threads - 1, state.threads - state.callers.count());
  if (helpers <= 0) {
    body(0, count);
    return;
  }
  const int64_t slices = std::min(most, threads * kSlicesPerThread);
  if (!state.started.load(std::memory_order_acquire)) state.start();
  State::Job job(count, slices, static_cast<int>(std::min<int64_t>(helpers, slices - 1)), body);
  state.post(job);
  job.work();
  state.finish(job);
  if (job.failure != nullptr) std::rethrow_exception(job.failure);
}

}  // namespace chipdock::plugin::cpu
