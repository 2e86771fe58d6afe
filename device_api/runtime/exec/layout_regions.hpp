// SPDX-License-Identifier: Apache-2.0
// Where in a graph it pays to keep values in one private layout of a plugin: from what each node
// offers to the regions of nodes that work in it. Which kernels there are and what becomes of the
// graph is plan_layouts.cpp's concern.
#ifndef CHIPDOCK_RUNTIME_EXEC_LAYOUT_REGIONS_HPP_
#define CHIPDOCK_RUNTIME_EXEC_LAYOUT_REGIONS_HPP_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/graph_ir.hpp"

namespace chipdock::runtime {

/// One way in which a kernel computes a node: the arguments that are in the layout, by index.
struct LayoutForm {
  std::vector<bool> inputs, outputs;
  double score = 0;
  bool wants = false;  ///< The score is above the best one without any layout.
};

/// The forms of every node, the best first. A node without any takes no part.
using LayoutOffers = std::vector<std::vector<LayoutForm>>;

/// Nodes that are connected by values in the layout.
struct LayoutRegion {
  struct Member {
    size_t node = 0;
    LayoutForm form;
  };
  std::vector<Member> members;    ///< In execution order.
  std::vector<int32_t> entering;  ///< Values that a Reorder brings into the layout.
  std::vector<int32_t> leaving;   ///< Values that are read outside too: a Reorder brings them back.

  /// Two nodes that gain by the layout, or a gain for each Reorder: else copies cost more than the
  /// layout brings.
  bool pays() const;
};

/// All regions, whether they pay or not. `live` says which nodes are computed and read elements.
std::vector<LayoutRegion> find_layout_regions(const IrGraph& graph, const std::vector<bool>& live,
                                              const LayoutOffers& offers);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_LAYOUT_REGIONS_HPP_
