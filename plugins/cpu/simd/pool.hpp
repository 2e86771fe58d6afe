// SPDX-License-Identifier: Apache-2.0
// The inner loops of pooling: one window position over a whole output row, and sums of planes.
// Compiled per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_POOL_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_POOL_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// out[i] = max(out[i], in[i * stride]); NaN wins.
CHIPDOCK_CPU_DECLARE(void pool_max_row(const float* in, int64_t stride, int64_t count, float* out))
/// out[i] += in[i * stride].
CHIPDOCK_CPU_DECLARE(void pool_add_row(const float* in, int64_t stride, int64_t count, float* out))
/// Sum in one fixed order with an error that grows with log(count) blocks.
CHIPDOCK_CPU_DECLARE(float pool_sum(const float* in, int64_t count))
/// Largest element, NaN if there is one; -infinity for none.
CHIPDOCK_CPU_DECLARE(float pool_max(const float* in, int64_t count))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_POOL_HPP_
