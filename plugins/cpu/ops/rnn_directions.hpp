// SPDX-License-Identifier: Apache-2.0
// Which threads run the two directions of a recurrent operator. They need nothing of each other, and
// the steps of one are short: two threads that meet twice a step wait more than they compute.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_RNN_DIRECTIONS_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_RNN_DIRECTIONS_HPP_

#include "slots.hpp"

namespace chipdock::plugin::cpu {

/// Directions that may run at once, each in buffers of its own.
inline int64_t direction_lanes(const Context& context, int64_t directions) {
  return slot_capacity(context) > 1 ? directions : 1;
}

/// Calls body(context, direction, lane) for each direction. `step_products` are the multiplications
/// of one step of one direction.
template <class Body>
void run_directions(const Context& context, int64_t directions, int64_t step_products,
                    const Body& body) {
  // A step with more for each thread is worth sharing, once there are more threads than directions.
  constexpr int64_t kShared = int64_t{1} << 20;
  const int64_t threads = slot_count(context);
  const bool apart = directions > 1 && threads > 1 &&
                     (threads < 2 * directions || step_products < kShared * threads);
  if (!apart) {
    for (int64_t d = 0; d < directions; ++d) body(context, d, 0);
    return;
  }
  Context alone = context;
  alone.max_threads = 1;
  context.parallel_for(directions, 1, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) body(alone, d, d);
  });
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_RNN_DIRECTIONS_HPP_
