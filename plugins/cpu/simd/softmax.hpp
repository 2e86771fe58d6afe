// SPDX-License-Identifier: Apache-2.0
// Softmax of float rows and columns, one compiled copy per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_SOFTMAX_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_SOFTMAX_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Columns that softmax_columns takes at most in one call.
inline constexpr int64_t kSoftmaxColumns = 256;

/// One row of n elements; x and y are equal or apart. `logarithm` asks for log-softmax.
CHIPDOCK_CPU_DECLARE(void softmax_row(const float* x, float* y, int64_t n, bool logarithm))
/// Each of `columns` <= kSoftmaxColumns columns of n elements, `stride` elements apart.
CHIPDOCK_CPU_DECLARE(void softmax_columns(const float* x, float* y, int64_t n, int64_t columns,
                                          int64_t stride, bool logarithm))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_SOFTMAX_HPP_
