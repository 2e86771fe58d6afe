// SPDX-License-Identifier: Apache-2.0
// Convolution of one plane with one filter, the work of depthwise convolution; compiled per ISA
// level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_DEPTHWISE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_DEPTHWISE_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Rows whose columns of even numbers stand in their first half and those of odd ones in the
/// second: outputs two columns apart then read neighbours.
constexpr bool depthwise_splits(int64_t stride_x) { return stride_x == 2; }

/// `plane` is already padded: output (y, x) reads column x * stride_x + j * dilation_x of row
/// y * stride_y + i * dilation_y. Reads run up to kDepthwiseSlack elements past the last row.
struct DepthwisePlane {
  const float* plane;
  int64_t row;  ///< Elements of a padded row; even if rows are split.
  const float* filter;
  float bias;
  const float* clamp;  ///< NULL, or the bounds that sums are held to; NaN stays.
  float* out;          ///< Rows of `width`.
  int64_t height;      ///< Output rows to make.
  int64_t width;       ///< Output columns.
  int64_t kernel_y, kernel_x;
  int64_t stride_y, stride_x;
  int64_t dilation_y, dilation_x;
};

inline constexpr int64_t kDepthwiseSlack = 160;

/// Input rows [first, first + rows) of a plane, to be laid out with zeros around them.
struct DepthwisePad {
  const float* plane;
  int64_t height, width;  ///< Of the plane.
  int64_t first, rows;    ///< May reach outside the plane.
  int64_t pad;            ///< Columns before the plane.
  int64_t row;            ///< Elements of a padded row.
  bool split;             ///< As depthwise_splits() says.
  bool zeroed;            ///< `target` already has its zeros, from a plane before.
  float* target;
};

CHIPDOCK_CPU_DECLARE(void depthwise_plane(const DepthwisePlane& x))
CHIPDOCK_CPU_DECLARE(void depthwise_pad(const DepthwisePad& x))
/// Size of the vectors that this level computes with.
CHIPDOCK_CPU_DECLARE(int depthwise_vector_bytes())

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_DEPTHWISE_HPP_
