// SPDX-License-Identifier: Apache-2.0
// Takes samples of several runners in turns, A B B A, and prints them for harness.py: a line
// `case TAB runner TAB calls TAB seconds …` each.
#ifndef CHIPDOCK_TESTS_BENCH_NATIVE_TURNS_HPP_
#define CHIPDOCK_TESTS_BENCH_NATIVE_TURNS_HPP_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace chipdock::bench {

/// `run(n)` makes n calls, so that the loop is compiled together with the call.
struct Runner {
  std::string name;
  std::function<void(uint64_t)> run;
  std::vector<double> seconds;
};

inline double time_of(const Runner& runner, uint64_t calls) {
  const auto start = std::chrono::steady_clock::now();
  runner.run(calls);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(calls);
}

inline void take_turns(const std::string& what, std::vector<Runner> runners, int rounds,
                       uint64_t calls) {
  for (Runner& runner : runners) runner.run(calls);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < runners.size(); ++i) {
      Runner& runner = runners[round % 2 == 0 ? i : runners.size() - 1 - i];
      runner.seconds.push_back(time_of(runner, calls));
    }
  }
  for (const Runner& runner : runners) {
    std::printf("%s\t%s\t%llu", what.c_str(), runner.name.c_str(),
                static_cast<unsigned long long>(calls));
    for (const double seconds : runner.seconds) std::printf("\t%.12g", seconds);
    std::printf("\n");
  }
}

/// The compiler may assume nothing about `value` from here on.
template <class T>
inline void blur(T& value) {
  asm volatile("" : "+r"(value) : : "memory");
}

}  // namespace chipdock::bench

#endif  // CHIPDOCK_TESTS_BENCH_NATIVE_TURNS_HPP_
