// SPDX-License-Identifier: Apache-2.0
// Folds of float rows and columns, one compiled copy per ISA level. ops/reduce.cpp knows operators,
// axes and the other dtypes.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_REDUCE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_REDUCE_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// What is folded: sums of x, |x|, x^2, e^(x - shift); products; extremes, which keep a NaN.
enum class Fold : int32_t { kSum, kSumAbs, kSumSquare, kSumExp, kProd, kMax, kMin };

/// Folds n elements. Short runs are summed in float lanes and joined in double.
CHIPDOCK_CPU_DECLARE(double fold_row(Fold fold, const float* x, int64_t n, float shift))
/// acc[j] = fold over `rows` rows of x[row * stride + j], all in float: few rows, or the error
/// grows. `shift` holds one value for each column and is read by kSumExp only.
CHIPDOCK_CPU_DECLARE(void fold_columns(Fold fold, const float* x, int64_t rows, int64_t stride,
                                       int64_t columns, const float* shift, float* acc))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_REDUCE_HPP_
