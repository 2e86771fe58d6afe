// SPDX-License-Identifier: Apache-2.0
// The CPU plugin's own threads for work inside a kernel. No OpenMP: sanitizers see every hand-over,
// and a busy neighbour costs one slow slice and not a barrier of the whole team.
#ifndef CHIPDOCK_PLUGIN_CPU_THREAD_POOL_HPP_
#define CHIPDOCK_PLUGIN_CPU_THREAD_POOL_HPP_

#include <cstdint>
#include <memory>

namespace chipdock::plugin::cpu {

/// A non-owning reference to `void(int64_t begin, int64_t end)`; cheaper than std::function.
class RangeFunction {
 public:
  template <class Body>
  RangeFunction(const Body& body)  // NOLINT(google-explicit-constructor): call sites pass lambdas
      : body_(&body), call_([](const void* b, int64_t begin, int64_t end) {
          (*static_cast<const Body*>(b))(begin, end);
        }) {}
  void operator()(int64_t begin, int64_t end) const { call_(body_, begin, end); }

 private:
  const void* body_;
  void (*call_)(const void*, int64_t, int64_t);
};

/// Fixed set of workers, started at first use. parallel_for may be called from many threads at
/// once; the caller works too, so it makes progress even if all workers are taken. Callers count as
/// threads: those who are at work at the same time get fewer workers, or none.
class ThreadPool {
 public:
  /// `threads` counts the caller; 1 starts no worker.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Splits [0, count) into slices of at least `grain` items, runs them on up to `max_threads`
  /// threads (0 = all), and returns when all have ended. The first exception of a slice is thrown
  /// again here. Called from inside a slice it runs inline.
  void parallel_for(int64_t count, int64_t grain, int max_threads, RangeFunction body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_THREAD_POOL_HPP_
