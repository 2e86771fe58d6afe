// SPDX-License-Identifier: Apache-2.0
// Rows of normalisations in float, one compiled copy per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_NORM_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_NORM_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// What a row is divided by: sqrt(mean square + epsilon), with the mean taken off first or not.
struct RowMoments {
  float mean;
  float inverse;  ///< 1 / sqrt(variance + epsilon)
};

/// Mean and inverse deviation of a row in two passes; `centred` false takes the mean as 0.
CHIPDOCK_CPU_DECLARE(RowMoments row_moments(const float* x, int64_t n, float epsilon, bool centred))
/// y[i] = (x[i] - mean) * inverse * scale[i] + bias[i]; scale and bias may be NULL. `past_caches`
/// writes around the caches, for outputs that no one reads soon.
CHIPDOCK_CPU_DECLARE(void normalize_row(const float* x, float* y, int64_t n, RowMoments moments,
                                        const float* scale, const float* bias, bool past_caches))
/// y[i] = (x[i] - mean) * scale + bias with one value each.
CHIPDOCK_CPU_DECLARE(void affine(const float* x, float* y, int64_t n, float mean, float scale,
                                 float bias))
/// y[i] = (x[i] - mean[i]) * scale[i] + bias[i].
CHIPDOCK_CPU_DECLARE(void affine_row(const float* x, float* y, int64_t n, const float* mean,
                                     const float* scale, const float* bias))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_NORM_HPP_
