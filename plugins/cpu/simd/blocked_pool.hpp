// SPDX-License-Identifier: Apache-2.0
// Windows and sums over pixels of one block of channels, one compiled copy per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_POOL_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_POOL_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// The part of one axis that the window of an output position takes.
struct PoolWindow {
  int64_t first = 0;  ///< Input position,
  int64_t taps = 0;   ///< and how many, `dilation` apart.
  int64_t count = 0;  ///< What an average counts.
};

/// One plane, in row order.
struct BlockedPool {
  const float* in = nullptr;
  int64_t in_width = 0;
  const PoolWindow* down = nullptr;
  const PoolWindow* across = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t dilation[2] = {1, 1};
  bool average = false;  ///< Else the largest, where NaN wins.
  float* out = nullptr;
};

CHIPDOCK_CPU_DECLARE(void blocked_pool(const BlockedPool& pool))

/// Per channel the sum or the largest of `pixels` groups, in one fixed order.
CHIPDOCK_CPU_DECLARE(void blocked_sum(const float* in, int64_t pixels, float* out))
CHIPDOCK_CPU_DECLARE(void blocked_max(const float* in, int64_t pixels, float* out))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_POOL_HPP_
