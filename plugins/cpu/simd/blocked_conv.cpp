// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Sums of a tile of pixels stay in registers over all positions and channels; see blocked_conv.hpp.
// Each sum is one chain of fused multiply-adds, so a result does not depend on how work was cut.
#include "simd/blocked_conv.hpp"

#include <cstddef>
#include <utility>

#include "simd/blocked_tile.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

// Sums of two blocks, their weights and a broadcast: 31 of 32 registers, 15 of 16.
constexpr int kPixels = kLanes == 16 ? 14 : 6;

/// kBlocks whole blocks, and half of one behind them.
template <int kPixel, int kBlocks, bool kHalf, int kTile>
void dense_tile(const DenseBand& band, const float* x, int64_t at) {
  constexpr int kHalves = kHalf ? 1 : 0;
  Vf sum[kBlocks + 1][kTile];  // The last one is not used, and zero would be no length.
  Vh half[kHalves + 1][kTile];
  CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
    begin(band, at + b * band.y_block, kLanes, b * kLanes, sum[b]);
  }
  if constexpr (kHalf) begin(band, at + kBlocks * band.y_block, kLanes, kBlocks * kLanes, half[0]);
  const float* filters = band.filters;
  for (int64_t s = 0; s < band.count; ++s) {
    const float* from = x + band.steps[s];
    const int64_t inner = s < band.full ? band.inner : band.tail;
    for (int64_t i = 0; i < inner; ++i) {
      Vf weights[kBlocks + 1];
      Vh half_weights;
      CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks + kHalves; ++b) {
        const float* at_block = filters + b * band.filter_block;
        b < kBlocks ? void(read(at_block, weights[b])) : void(read(at_block, half_weights));
        __builtin_prefetch(at_block + band.ahead, 0, 2);
      }
      filters += kLanes;
      CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) {
        const Vf value = splat(from[r * kPixel]);
        CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) sum[b][r] += value * weights[b];
        if constexpr (kHalf) half[0][r] += (from[r * kPixel] - Vh{}) * half_weights;
      }
      ++from;
    }
  }
  CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
    end<Vi>(band, at + b * band.y_block, kLanes, b * kLanes, sum[b]);
  }
  if constexpr (kHalf)
    end<Ih>(band, at + kBlocks * band.y_block, kLanes, kBlocks * kLanes, half[0]);
}

/// Rows are cut into equal tiles (sizes differ by one), so that none is too small to keep the
/// multipliers busy.
template <int kPixel, int kBlocks, bool kHalf, size_t... kSizes>
void dense(const DenseBand& band, std::index_sequence<kSizes...>) {
  static constexpr void (*kTiles[])(const DenseBand&, const float*, int64_t) = {
      dense_tile<kPixel, kBlocks, kHalf, static_cast<int>(kSizes) + 1>...};
  if (band.cols == 0) return;
  const int64_t count = (band.cols + kPixels - 1) / kPixels;
  const int64_t base = band.cols / count;
  const int64_t extra = band.cols % count;
  for (int64_t row = 0; row < band.rows; ++row) {
    const float* x = band.x + row * band.x_row;
    int64_t at = row * band.y_row;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pixels = base + (i < extra ? 1 : 0);
      kTiles[pixels - 1](band, x, at);
      x += pixels * kPixel;
      at += pixels * kLanes;
    }
  }
}

template <int kPixel>
void dense(const DenseBand& band) {
  constexpr auto kSizes = std::make_index_sequence<kPixels>();
  if constexpr (kLanes == 16) {
    if (band.half) {
      return band.blocks == 2 ? dense<kPixel, 1, true>(band, kSizes)
                              : dense<kPixel, 0, true>(band, kSizes);
    }
  }
  band.blocks == 2 ? dense<kPixel, 2, false>(band, kSizes) : dense<kPixel, 1, false>(band, kSizes);
}

}  // namespace

void blocked_dense(const DenseBand& band) { band.plain ? dense<1>(band) : dense<kLanes>(band); }

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
