// SPDX-License-Identifier: Apache-2.0
// The CPU plugin's thread pool. It is internal to the plugin, so the test is linked with its
// objects.
#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "placement.hpp"
#include "thread_pool.hpp"

namespace {

using chipdock::plugin::cpu::Seat;
using chipdock::plugin::cpu::ThreadPool;

int thread_count() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

TEST(every_item_is_visited_once) {
  ThreadPool pool(4);
  for (const int64_t count : {1, 2, 3, 7, 64, 1000, 12345}) {
    for (const int64_t grain : {1, 3, 100, 100000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      pool.parallel_for(count, grain, 0, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      bool once = true;
      for (const auto& visit : visits) once = once && visit.load() == 1;
      CHECK(once);
    }
  }
}

TEST(slices_hold_at_least_grain_items) {
  ThreadPool pool(4);
  std::atomic<int> small{0};
  pool.parallel_for(1003, 100, 0, [&](int64_t begin, int64_t end) {
    if (end - begin < 100) ++small;
  });
  CHECK_EQ(small.load(), 0);
}

TEST(nothing_to_do_calls_nothing) {
  ThreadPool pool(2);
  bool called = false;
  pool.parallel_for(0, 1, 0, [&](int64_t, int64_t) { called = true; });
  pool.parallel_for(-3, 1, 0, [&](int64_t, int64_t) { called = true; });
  CHECK(!called);
}

TEST(threads_start_at_first_use_and_not_for_small_work) {
  const int before = thread_count();
  ThreadPool pool(3);
  pool.parallel_for(10, 10, 0, [](int64_t, int64_t) {});
  pool.parallel_for(1000, 1, 1, [](int64_t, int64_t) {});
  CHECK_EQ(thread_count(), before);
  pool.parallel_for(1000, 1, 0, [](int64_t, int64_t) {});
  CHECK_EQ(thread_count(), before + 2);
}

TEST(max_threads_is_kept) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int i = 0; i < 50; ++i) {
    std::set<std::thread::id> now;
    pool.parallel_for(64, 1, 2, [&](int64_t, int64_t) {
      const std::lock_guard<std::mutex> lock(mutex);
      now.insert(std::this_thread::get_id());
    });
    CHECK(now.size() <= 2);
  }
}

TEST(the_first_exception_reaches_the_caller_and_the_pool_lives_on) {
  ThreadPool pool(4);
  for (int i = 0; i < 20; ++i) {
    CHECK_THROWS(pool.parallel_for(100, 1, 0,
                                   [](int64_t begin, int64_t end) {
                                     if (begin <= 50 && 50 < end) throw std::runtime_error("50");
                                   }),
                 std::runtime_error);
  }
  std::atomic<int64_t> sum{0};
  pool.parallel_for(100, 1, 0, [&](int64_t begin, int64_t end) { sum += end - begin; });
  CHECK_EQ(sum.load(), 100);
}

TEST(a_nested_call_stays_on_its_thread) {
  ThreadPool pool(4);
  std::atomic<int> strayed{0};
  pool.parallel_for(16, 1, 0, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    pool.parallel_for(100, 1, 0, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != self) ++strayed;
    });
  });
  CHECK_EQ(strayed.load(), 0);
}

TEST(several_callers_share_the_workers) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        pool.parallel_for(97, 2, 0, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK_EQ(sum.load(), 4 * 100 * 97);
}

std::vector<size_t> cores_of(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(thread, sizeof(mask), &mask);
  std::vector<size_t> cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

void allow(const std::vector<size_t>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const size_t core : cores) CPU_SET(core, &mask);
  sched_setaffinity(0, sizeof(mask), &mask);
}

/// A thread that took its seat on the core that its maker is bound to, and lives until release().
class Seated {
 public:
  Seated() : thread_([this] { sit(); }) { id_ = seated_.get_future().get(); }
  ~Seated() {
    leave_.set_value();
    thread_.join();
  }
  Seat seat;
  pid_t id() const { return id_; }

 private:
  void sit() {
    seat.take();
    seated_.set_value(gettid());
    leave_.get_future().wait();
  }
  std::promise<pid_t> seated_;
  std::promise<void> leave_;
  pid_t id_ = 0;
  std::thread thread_;
};

TEST(a_thread_seen_on_its_callers_core_is_sent_away) {
  const std::vector<size_t> all = cores_of(0);
  allow({all[0]});
  Seated other;
  CHECK(!other.seat.leave_to_caller(Seat::caller_core()));  // There is no other core.
  CHECK(cores_of(other.id()) == std::vector<size_t>{all[0]});
  bool moved = false;
  for (int i = 0; i < 1000 && !moved && all.size() > 1; ++i) {
    allow({all[0]});
    allow({all[0], all[1]});  // The caller itself may be moved right here: then once more.
    moved = other.seat.leave_to_caller(Seat::caller_core());
    if (!moved) std::this_thread::sleep_for(Seat::kMoveEvery);
  }
  CHECK_EQ(moved, all.size() > 1);
  if (moved) CHECK(cores_of(other.id()) == std::vector<size_t>{all[1]});
  CHECK(!other.seat.leave_to_caller(Seat::caller_core()));  // Where it is now, nobody has seen.
  allow(all);
}

TEST(a_seat_that_nobody_took_is_left_alone) {
  Seat seat;
  CHECK(!seat.leave_to_caller(Seat::caller_core()));
}

TEST(callers_bound_to_one_core_still_get_their_work_done) {
  const std::vector<size_t> all = cores_of(0);
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 20; ++i) {
    allow({all[static_cast<size_t>(i) % all.size()]});
    pool.parallel_for(97, 2, 0, [&](int64_t begin, int64_t end) { sum += end - begin; });
  }
  allow(all);
  CHECK_EQ(sum.load(), 20 * 97);
}

}  // namespace
