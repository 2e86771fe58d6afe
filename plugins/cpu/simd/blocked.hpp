// SPDX-License-Identifier: Apache-2.0
// Movement of pixels of blocked tensors, one compiled copy per ISA level; see ../blocked.hpp.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Rows of an image with a border of zeros. Columns that are `stride` apart become neighbours, so
/// that a window's steps through a row are one pixel each: phase p of a target row has the columns
/// p, p + stride, …, counted from `left` columns before the image.
struct BlockedPad {
  const float* image = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  bool plain = false;   ///< Pixels are single floats, else blocks.
  int64_t first = 0;    ///< Image row of the first target row; may lie outside.
  int64_t row_gap = 1;  ///< Image rows from one target row to the next.
  int64_t rows = 0;     ///< Target rows.
  int64_t left = 0;     ///< Negative: columns of the image that are left out.
  int64_t stride = 1;
  int64_t phases = 1;
  int64_t phase_width = 0;
  float* target = nullptr;
};

CHIPDOCK_CPU_DECLARE(void blocked_pad(const BlockedPad& pad))

/// One block of `channels` planes, `plane` floats apart, becomes `pixels` groups of channels; what
/// is left of a group is zero.
CHIPDOCK_CPU_DECLARE(void block_channels(const float* planes, int64_t plane, int64_t channels,
                                         int64_t pixels, float* groups))
/// And back.
CHIPDOCK_CPU_DECLARE(void unblock_channels(const float* groups, int64_t channels, int64_t pixels,
                                           float* planes, int64_t plane))

/// Group map[i] of `row` becomes group i of `out`.
CHIPDOCK_CPU_DECLARE(void gather_pixels(const float* row, const int32_t* map, int64_t count,
                                        float* out))

/// Lanes [from_lane, from_lane + lanes) of each group become those from `to_lane` on of a group of
/// `to`, whose other lanes stay.
CHIPDOCK_CPU_DECLARE(void copy_lanes(const float* from, int64_t from_lane, float* to,
                                     int64_t to_lane, int64_t lanes, int64_t pixels))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_HPP_
