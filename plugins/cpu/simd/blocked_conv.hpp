// SPDX-License-Identifier: Apache-2.0
// Convolution over blocks of channels inside registers, one compiled copy per ISA level. A block
// has as many channels as a vector has lanes; see ../blocked.hpp. Cutting and packing are the
// caller's.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_CONV_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_CONV_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// A band of output rows of one or two blocks of channels. Distances are in elements.
struct BlockedBand {
  const float* x = nullptr;
  const float* filters = nullptr;
  float* y = nullptr;
  int64_t y_row = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  const float* start = nullptr;  ///< Where sums start, laid out as y or y itself; NULL: zeros.
  const float* bias = nullptr;   ///< Per channel, added to the start; NULL: none.
  const float* clamp = nullptr;  ///< NULL, or the bounds that sums are held to; NaN stays.
  /// NULL, or for each lane of y all bits or none: a lane without a channel would have NaN where
  /// zero weights met an infinity.
  const int32_t* mask = nullptr;
};

/// What a dense band has besides: at each position of the window `inner` channels, each with a vector
/// of weights for every output block. Windows lie inside of the input, one pixel apart.
struct DenseBand : BlockedBand {
  int64_t x_row = 0;               ///< From the input of one output row to that of the next.
  const int64_t* steps = nullptr;  ///< Where each position of the window starts, from x.
  int64_t count = 0;               ///< Positions.
  int64_t full = 0;                ///< Positions before this one have `inner` channels,
  int64_t inner = 0;
  int64_t tail = 0;          ///< the others this many.
  bool plain = false;        ///< Pixels of x are one element apart, else one block.
  bool half = false;         ///< Of the last output block at most half the channels are used.
  int blocks = 1;            ///< Output blocks, 1 or 2; bias and mask follow one another:
  int64_t y_block = 0;       ///< from one block to the next in y and start,
  int64_t filter_block = 0;  ///< and in filters.
  int64_t ahead = 0;         ///< From filters to those of the next call, which are fetched early.
};

/// What a depthwise band has besides: the image, whose border windows may leave. There is a vector of
/// weights for each position.
struct DepthwiseImage : BlockedBand {
  int64_t in[2] = {1, 1};  ///< Height and width; x is the image's first pixel.
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t pad[2] = {0, 0};
  int64_t first = 0;  ///< Output row that the band starts with.
};

CHIPDOCK_CPU_DECLARE(void blocked_dense(const DenseBand& band))
CHIPDOCK_CPU_DECLARE(void blocked_depthwise(const DepthwiseImage& image))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_CONV_HPP_
