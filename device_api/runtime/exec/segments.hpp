// SPDX-License-Identifier: Apache-2.0
// Which steps of a signature can be captured, and the graphs that a frame replays in their place.
// When to capture and when to replay is decided in frame_capture.cpp and plan_capture.cpp.
#ifndef CHIPDOCK_RUNTIME_EXEC_SEGMENTS_HPP_
#define CHIPDOCK_RUNTIME_EXEC_SEGMENTS_HPP_

#include <functional>
#include <memory>
#include <vector>

#include "exec/specialize.hpp"
#include "graph.hpp"

namespace chipdock::runtime {

/// Steps of a specialization that follow each other and run as one graph.
struct Segment {
  size_t first = 0;  ///< Index into Specialization::steps.
  size_t count = 0;
  std::shared_ptr<Graph> graph;
  std::vector<uint64_t> ids;  ///< Correlation id of each step's launch.
};

/// A place in the caller's memory that a segment names.
struct NamedMemory {
  int32_t slot = -1;
  chipdock_memory* memory = nullptr;
  uint64_t offset = 0;
  std::shared_ptr<Buffer> buffer;  ///< Stays allocated while the graph names it. [GRA-6]
};

/// What one frame has captured. Its arena stays where it is meanwhile.
struct Recording {
  std::shared_ptr<void> pin;  ///< Counts the arena among the plan's; see Plan::pin.
  std::shared_ptr<Buffer> arena;
  bool bound = false;  ///< Made in a run whose inputs and outputs were bound.
  std::vector<NamedMemory> named;
  std::vector<Segment> segments;   ///< In order. After the memory: they go first.
  std::vector<int32_t> beginning;  ///< By run step: the segment that begins there, or -1.
};

/// NULL if the step may be part of a graph that is replayed with other values in the same memory,
/// else why not: the rest of a sentence that begins with the node. `same_numbers`: random numbers
/// may repeat.
const char* why_not_capturable(const Specialization& spec, const RunStep& run, bool same_numbers);

/// The longest runs of capturable steps, two or more each, at most `longest`. A step that reads or
/// writes memory of the caller is in one only if `stays` says so of its slot.
std::vector<Segment> find_segments(const Specialization& spec, size_t longest,
                                   const std::function<bool(int32_t)>& stays);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_SEGMENTS_HPP_
