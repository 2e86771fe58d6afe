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

// Half a vector, for a last block of which no more is used: where multipliers are half as wide as a
// vector it takes half the time.
typedef float Vh __attribute__((vector_size(kLanes * 2)));
typedef float VhUnaligned __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));
typedef int32_t Ih __attribute__((vector_size(kLanes * 2)));

inline Vf& read(const float* from, Vf& to) { return to = load(from); }
inline Vh& read(const float* from, Vh& to) {
  return to = *reinterpret_cast<const VhUnaligned*>(from);
}
inline void write(float* to, Vf value) { store(to, value); }
inline void write(float* to, Vh value) {
  *reinterpret_cast<VhUnaligned*>(to) = value;
  *reinterpret_cast<VhUnaligned*>(to + kLanes / 2) = Vh{};
}

template <class V, int kTile>
void begin(const BlockedBand& band, int64_t at, int64_t bias_at, V (&sum)[kTile]) {
  V bias = {};
  if (band.bias != nullptr) read(band.bias + bias_at, bias);
  if (band.start == nullptr) {
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] = bias;
    return;
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) read(band.start + at + r * kLanes, sum[r]);
  if (band.bias == nullptr) return;  // 0 + x would be no -0 where x is.
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += bias;
}

template <class I, class V, int kTile>
void end(const BlockedBand& band, int64_t at, int64_t mask_at, V (&sum)[kTile]) {
  if (band.clamp != nullptr) {
    const V low = band.clamp[0] - V{};
    const V high = band.clamp[1] - V{};
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) {
      const V raised = low > sum[r] ? low : sum[r];
      sum[r] = high < raised ? high : raised;
    }
  }
  if (band.mask != nullptr) {
    I mask;
    std::memcpy(&mask, band.mask + mask_at, sizeof(mask));
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) {
      sum[r] = reinterpret_cast<V>(reinterpret_cast<I>(sum[r]) & mask);
    }
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) write(band.y + at + r * kLanes, sum[r]);
}

/// kBlocks whole blocks, and half of one behind them.
template <int kPixel, int kBlocks, bool kHalf, int kTile>
void dense_tile(const DenseBand& band, const float* x, int64_t at) {
  constexpr int kHalves = kHalf ? 1 : 0;
  Vf sum[kBlocks + 1][kTile];  // The last one is not used, and zero would be no length.
  Vh half[kHalves + 1][kTile];
  CHIPDOCK_UNROLLED for (int b = 0; b < kBlocks; ++b) {
    begin(band, at + b * band.y_block, b * kLanes, sum[b]);
  }
  if constexpr (kHalf) begin(band, at + kBlocks * band.y_block, kBlocks * kLanes, half[0]);
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
    end<Vi>(band, at + b * band.y_block, b * kLanes, sum[b]);
  }
  if constexpr (kHalf) end<Ih>(band, at + kBlocks * band.y_block, kBlocks * kLanes, half[0]);
}

template <int kTile>
void depthwise_tile(const BlockedBand& band, const float* x, int64_t at) {
  Vf sum[kTile];
  begin(band, at, 0, sum);
  for (int64_t s = 0; s < band.count; ++s) {
    const float* from = x + band.steps[s];
    const Vf weights = load(band.filters + s * kLanes);
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += load(from + r * kLanes) * weights;
  }
  end<Vi>(band, at, 0, sum);
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

template <int kPixel, int kBlocks, bool kHalf, size_t... kSizes>
void dense(const DenseBand& band, std::index_sequence<kSizes...>) {
  static constexpr void (*kTiles[])(const DenseBand&, const float*, int64_t) = {
      dense_tile<kPixel, kBlocks, kHalf, static_cast<int>(kSizes) + 1>...};
  each_tile<kPixel>(band, kTiles);
}

template <size_t... kSizes>
void depthwise(const BlockedBand& band, std::index_sequence<kSizes...>) {
  static constexpr void (*kTiles[])(const BlockedBand&, const float*,
                                    int64_t) = {depthwise_tile<static_cast<int>(kSizes) + 1>...};
  each_tile<kLanes>(band, kTiles);
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

void blocked_depthwise(const BlockedBand& band) {
  depthwise(band, std::make_index_sequence<kLanes == 16 ? 14 : 12>());
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
