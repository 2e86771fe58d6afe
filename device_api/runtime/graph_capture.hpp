// SPDX-License-Identifier: Apache-2.0
// A capture in progress over one or several streams: what was queued, who forked and joined, and
// what doomed it. [GRA-1] to [GRA-5] The recorded order is a valid order of all branches, so a
// replay runs it as a line.
#ifndef CHIPDOCK_RUNTIME_GRAPH_CAPTURE_HPP_
#define CHIPDOCK_RUNTIME_GRAPH_CAPTURE_HPP_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "graph.hpp"
#include "operation.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

struct CapturedNode {
  std::shared_ptr<Operation> operation;
  uint64_t correlation_id = 0;
};

/// What a graph owns: its nodes, and memory that stays allocated while it lives. [GRA-6]
struct GraphBody {
  std::vector<CapturedNode> nodes;
  std::vector<std::shared_ptr<void>> memory;
};

class Capture {
 public:
  /// How much of each stream's work, by stream id, is known to come before.
  using Clock = std::map<uint64_t, uint64_t>;

  Capture(const std::shared_ptr<Stream>& origin, bool native);

  /// The plugin captures its streams too.
  bool native() const { return native_; }
  /// The plugin records what is queued, so its graph is the one to launch.
  bool recorded() const { return recorded_.load(std::memory_order_acquire); }
  /// From here on only the host records: something was queued that the plugin cannot.
  void record_by_host() { recorded_.store(false, std::memory_order_release); }
  bool begun_by(const Stream& stream) const { return origin_ == stream.id(); }
  void add(const Stream& stream, std::shared_ptr<Operation> operation, uint64_t correlation_id);
  /// A point behind the stream's work, for an event.
  Clock point(const Stream& stream);
  /// `stream` waits for `point`; a stream that was not in the capture is from here on.
  void wait(const std::shared_ptr<Stream>& stream, const Clock& point);
  /// Keeps memory allocated until the graph is destroyed.
  void retain(std::shared_ptr<void> memory);
  /// Throws the error, and end_capture will too: the first one stays. [GRA-3]
  [[noreturn]] void doom(const Error& error);
  /// Ends the capture. Throws what doomed it, or FAILED_PRECONDITION naming the stream not joined.
  std::shared_ptr<GraphBody> finish(const Stream& stream);
  bool finished() const;
  std::vector<std::shared_ptr<Stream>> streams() const;

 private:
  const uint64_t origin_;
  const bool native_;
  std::atomic<bool> recorded_;
  mutable std::mutex mutex_;
  std::shared_ptr<GraphBody> body_ = std::make_shared<GraphBody>();
  std::map<uint64_t, std::weak_ptr<Stream>> streams_;
  std::map<uint64_t, Clock> clocks_;
  Cause doomed_;
  bool finished_ = false;
};

/// Replays `body` by issuing its nodes one after the other.
std::shared_ptr<Graph> make_host_graph(std::shared_ptr<Device> device,
                                       std::shared_ptr<GraphBody> body);
/// Takes `graph`; falls back to a host replay if the device cannot instantiate it.
std::shared_ptr<Graph> make_native_graph(std::shared_ptr<Device> device,
                                         std::shared_ptr<GraphBody> body, chipdock_graph* graph);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_GRAPH_CAPTURE_HPP_
