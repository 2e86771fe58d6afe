// SPDX-License-Identifier: Apache-2.0
// What a sample reads along one axis of an image, as GridSample and RoiAlign find it.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_TAPS_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_TAPS_HPP_

#include <cstdint>

namespace chipdock::plugin::cpu {

/// Pixels of one axis and their weights; a pixel of -1 is zero.
template <class T>
struct Taps {
  int count = 0;
  int64_t pixel[4];
  T weight[4];
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_TAPS_HPP_
