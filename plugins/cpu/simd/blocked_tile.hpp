// SPDX-License-Identifier: Apache-2.0
// How a tile of sums over blocks of channels starts and ends. Included by simd/*.cpp only, with
// everything in the level's namespace, as vector.hpp is.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_TILE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_TILE_HPP_

#include "simd/blocked_conv.hpp"
#include "simd/vector.hpp"

// All loops over sums are unrolled, so that no sum ever leaves its register.
#define CHIPDOCK_UNROLLED _Pragma("GCC unroll 16")

// A call would put them into memory.
#define CHIPDOCK_IN_PLACE __attribute__((always_inline)) inline

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

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

/// The sums of a tile whose pixels lie `step` apart in y, from element `at` on.
template <class V, int kTile>
CHIPDOCK_IN_PLACE void begin(const BlockedBand& band, int64_t at, int64_t step, int64_t bias_at,
                             V (&sum)[kTile]) {
  V bias = {};
  if (band.bias != nullptr) read(band.bias + bias_at, bias);
  if (band.start == nullptr) {
    CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] = bias;
    return;
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) read(band.start + at + r * step, sum[r]);
  if (band.bias == nullptr) return;  // 0 + x would be no -0 where x is.
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += bias;
}

template <class I, class V, int kTile>
CHIPDOCK_IN_PLACE void end(const BlockedBand& band, int64_t at, int64_t step, int64_t mask_at,
                           V (&sum)[kTile]) {
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
  CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) write(band.y + at + r * step, sum[r]);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BLOCKED_TILE_HPP_
