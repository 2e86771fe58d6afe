// SPDX-License-Identifier: Apache-2.0
// Tiles for operands of half types, of the same sizes as that of floats. A word is 32 bits that hold
// two bfloat16, neighbours along k: a lane of a sum takes both products at once. Words and halves
// travel as float, which they are not: nothing but a tile and the loops here may look at them.
// Whole operands are in ../gemm_half.hpp.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HALF_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HALF_HPP_

#include "simd/gemm.hpp"

namespace chipdock::plugin::cpu {

/// The tile over words. NULL in levels without the instruction.
CHIPDOCK_CPU_DECLARE(const GemmIsa<float>* gemm_isa_pairs())
/// Tiles that widen rows of B, which are then half as many floats apart. NULL where that is slow.
CHIPDOCK_CPU_DECLARE(const GemmIsa<float>* gemm_isa_bf16_right())
CHIPDOCK_CPU_DECLARE(const GemmIsa<float>* gemm_isa_f16_right())
/// words[i] = low[i] and high[i]; `high` NULL: zeros.
CHIPDOCK_CPU_DECLARE(void pair_rows(const uint16_t* low, const uint16_t* high, int64_t n,
                                    float* words))
/// The same of floats that are bfloat16 already.
CHIPDOCK_CPU_DECLARE(void pair_floats(const float* low, const float* high, int64_t n, float* words))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HALF_HPP_
