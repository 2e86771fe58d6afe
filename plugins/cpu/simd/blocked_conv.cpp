// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Sums of a tile of pixels stay in registers over all positions and channels; see blocked_conv.hpp.
// Each sum is one chain of fused multiply-adds, so a result does not depend on how work was cut.
#include "simd/blocked_conv.hpp"

#include <cstddef>
#include <utility>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

// Sums of two blocks, their weights and a broadcast: 31 of 32 registers, 15 of 16.
constexpr int kPixels = kLanes == 16 ? 14 : 6;

#define CHIPDOCK_UNROLLED _Pragma("GCC unroll 16")

template <int kTile>
void begin(const BlockedBand& band, int64_t at, int64_t bias_at, Vf (&sum)[kTile]) {
  const Vf bias = band.bias != nullptr ? load(band.bias + bias_at) : Vf{};
  if (band.start == nullptr) {
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] = bias;
    return;
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] = load(band.start + at + r * kLanes);
  if (band.bias == nullptr) return;  // 0 + x would be no -0 where x is.
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += bias;
}

template <int kTile>
void end(const BlockedBand& band, int64_t at, int64_t mask_at, Vf (&sum)[kTile]) {
  if (band.clamp != nullptr) {
    const Vf low = splat(band.clamp[0]);
    const Vf high = splat(band.clamp[1]);
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) {
      const Vf raised = low > sum[r] ? low : sum[r];
      sum[r] = high < raised ? high : raised;
    }
  }
  if (band.mask != nullptr) {
    Vi mask;
    std::memcpy(&mask, band.mask + mask_at, sizeof(mask));
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] = floats(bits(sum[r]) & mask);
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) store(band.y + at + r * kLanes, sum[r]);
}

template <int kPixel, int kBlocks, int kTile>
void dense_tile(const DenseBand& band, const float* x, int64_t at) {
  Vf sum[kBlocks][kTile];
  CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
    begin<kTile>(band, at + b * band.y_block, b * kLanes, sum[b]);
  }
  const float* filters = band.filters;
  for (int64_t s = 0; s < band.count; ++s) {
    const float* from = x + band.steps[s];
    const int64_t inner = s < band.full ? band.inner : band.tail;
    for (int64_t i = 0; i < inner; ++i) {
      Vf weights[kBlocks];
      CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
        weights[b] = load(filters + b * band.filter_block);
        __builtin_prefetch(filters + b * band.filter_block + band.ahead, 0, 2);
      }
      filters += kLanes;
      CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) {
        const Vf value = splat(from[r * kPixel]);
        CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) sum[b][r] += value * weights[b];
      }
      ++from;
    }
  }
  CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
    end<kTile>(band, at + b * band.y_block, b * kLanes, sum[b]);
  }
}

template <int kTile>
void depthwise_tile(const BlockedBand& band, const float* x, int64_t at) {
  Vf sum[kTile];
  begin<kTile>(band, at, 0, sum);
  for (int64_t s = 0; s < band.count; ++s) {
    const float* from = x + band.steps[s];
    const Vf weights = load(band.filters + s * kLanes);
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += load(from + r * kLanes) * weights;
  }
  end<kTile>(band, at, 0, sum);
}

#undef CHIPDOCK_UNROLLED

/// Rows are cut into equal tiles (sizes differ by one), so that none is too small to keep the
/// multipliers busy. `tiles[n - 1]` serves n pixels.
template <int kPixel, class Band, size_t kCount>
void each_tile(const Band& band,
               void (*const (&tiles)[kCount])(const Band&, const float*, int64_t)) {
  if (band.cols == 0) return;
  constexpr int64_t kMost = kCount;
  const int64_t count = (band.cols + kMost - 1) / kMost;
  const int64_t base = band.cols / count;
  const int64_t extra = band.cols % count;
  for (int64_t row = 0; row < band.rows; ++row) {
    const float* x = band.x + row * band.x_row;
    int64_t at = row * band.y_row;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pixels = base + (i < extra ? 1 : 0);
      tiles[pixels - 1](band, x, at);
      x += pixels * kPixel;
      at += pixels * kLanes;
    }
  }
}

template <int kPixel, int kBlocks, size_t... kSizes>
void dense(const DenseBand& band, std::index_sequence<kSizes...>) {
  static constexpr void (*kTiles[])(const DenseBand&, const float*, int64_t) = {
      dense_tile<kPixel, kBlocks, static_cast<int>(kSizes) + 1>...};
  each_tile<kPixel>(band, kTiles);
}

template <size_t... kSizes>
void depthwise(const BlockedBand& band, std::index_sequence<kSizes...>) {
  static constexpr void (*kTiles[])(const BlockedBand&, const float*,
                                    int64_t) = {depthwise_tile<static_cast<int>(kSizes) + 1>...};
  each_tile<kLanes>(band, kTiles);
}

}  // namespace

void blocked_dense(const DenseBand& band) {
  constexpr auto kSizes = std::make_index_sequence<kPixels>();
  if (band.plain) {
    band.blocks == 2 ? dense<1, 2>(band, kSizes) : dense<1, 1>(band, kSizes);
  } else {
    band.blocks == 2 ? dense<kLanes, 2>(band, kSizes) : dense<kLanes, 1>(band, kSizes);
  }
}

void blocked_depthwise(const BlockedBand& band) {
  depthwise(band, std::make_index_sequence<kLanes == 16 ? 14 : 12>());
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
