// SPDX-License-Identifier: Apache-2.0
// A captured piece of work, ready to be launched many times: native where the plugin has the graph
// table, else recorded and replayed by the host. How it is captured: stream.hpp and
// graph_capture.hpp.
#ifndef CHIPDOCK_RUNTIME_GRAPH_HPP_
#define CHIPDOCK_RUNTIME_GRAPH_HPP_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.hpp"

namespace chipdock::runtime {

/// One captured operation; `correlation_id` is its name in GraphChange.
struct GraphNode {
  std::string name;
  uint64_t correlation_id = 0;
};

/// One change of an update, as chipdock_graph_change. Shapes and dtypes cannot change.
struct GraphChange {
  int32_t kind = CHIPDOCK_GRAPH_CHANGE_MEMORY;
  uint64_t target = 0;  ///< correlation_id of the node.
  int32_t argument =
      0;        ///< Input k as k, output k as -1-k; copy: source 0, target -1; fill: target -1.
  Place place;  ///< MEMORY.
  uint32_t scalar_size =
      0;               ///< SCALAR: bytes of `value`, as captured. A host input of 8 bytes or less.
  uint64_t value = 0;  ///< SCALAR: the bits; SEED: the new offset.
};

class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues one run. NULL: ended on return. Launches of one graph must not overlap. [GRA-8]
  virtual void launch(Stream* stream) = 0;
  void launch(Stream& stream) { launch(&stream); }
  /// Changes later launches, all or nothing. Throws INVALID_ARGUMENT, or UNSUPPORTED: capture anew.
  virtual void update(const std::vector<GraphChange>& changes) = 0;
  virtual std::vector<GraphNode> nodes() const = 0;
  virtual size_t node_count() const = 0;
  virtual bool native() const = 0;  ///< The device's own, not a replay by the host.
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_GRAPH_HPP_
