// SPDX-License-Identifier: Apache-2.0
// Recording of streams. A graph is its tasks in the order they were queued, which every fork and
// join allows; a replay runs them one after another, and the thread pool inside each kernel fills
// the cores.
#ifndef CHIPDOCK_PLUGIN_CPU_GRAPH_HPP_
#define CHIPDOCK_PLUGIN_CPU_GRAPH_HPP_

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "stream.hpp"

namespace chipdock::plugin::cpu {

using TaskList = std::vector<TaskPtr>;

/// A capture in progress, held by every stream that takes part.
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  explicit Capture(chipdock_stream& origin);

  void add(chipdock_stream& stream, TaskPtr task);
  void record(chipdock_stream& stream, const PointPtr& point);
  /// `stream` waits on a point of this capture; a stream that is not captured yet joins. [GRA-2]
  void wait(chipdock_stream& stream, const PointPtr& point);
  /// Throws FAILED_PRECONDITION and makes end() fail with the same text. [GRA-3]
  [[noreturn]] void doom(const std::string& what);
  /// `stream` is being destroyed.
  void lose(chipdock_stream& stream);
  bool doomed() const;
  /// Frees all streams; gives tasks and number of streams, or throws why there is no graph.
  std::pair<TaskList, uint64_t> end(chipdock_stream& stream);

 private:
  /// How much of each stream's work is known to come before something.
  using Seen = std::map<const chipdock_stream*, uint64_t>;

  void check_locked() const;
  void doom_locked(const std::string& what);
  void step_locked(chipdock_stream& stream);

  mutable std::mutex mutex_;
  chipdock_stream* const origin_;
  TaskList tasks_;
  std::map<chipdock_stream*, Seen> streams_;
  std::map<PointPtr, Seen> points_;
  CausePtr doom_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_GRAPH_HPP_
