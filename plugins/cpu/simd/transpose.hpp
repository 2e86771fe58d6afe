// SPDX-License-Identifier: Apache-2.0
// Rows to columns, for the packing of matrices; compiled per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_TRANSPOSE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_TRANSPOSE_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// to[j * to_row + i] = from[i * row + j] for i < rows, j < cols.
CHIPDOCK_CPU_DECLARE(void transpose_f32(const float* from, int64_t row, int64_t rows, int64_t cols,
                                        float* to, int64_t to_row))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_TRANSPOSE_HPP_
