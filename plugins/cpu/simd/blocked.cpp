// SPDX-License-Identifier: Apache-2.0
// Copies, borders and transposition of groups of channels; see blocked.hpp.
#include "simd/blocked.hpp"

#include "simd/transpose.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

/// One phase of a row: `count` pixels of kPixel floats, of which [begin, end) lie in the image.
template <int kPixel>
void pad_phase(const float* from, int64_t step, int64_t begin, int64_t end, int64_t count,
               float* to) {
  for (int64_t i = 0; i < begin * kPixel; ++i) to[i] = 0;
  to += begin * kPixel;
  if constexpr (kPixel == 1) {
    if (step == 1) {
      std::memcpy(to, from, static_cast<size_t>(end - begin) * sizeof(float));
    } else if (step == 2) {
      for (int64_t i = 0; i < end - begin; ++i) to[i] = from[2 * i];
    } else {
      for (int64_t i = 0; i < end - begin; ++i) to[i] = from[i * step];
    }
  } else {
    for (int64_t i = 0; i < end - begin; ++i) {
      store(to + i * kPixel, load(from + i * step * kPixel));
    }
  }
  to += (end - begin) * kPixel;
  for (int64_t i = 0; i < (count - end) * kPixel; ++i) to[i] = 0;
}

/// The smallest i with i * stride >= n.
int64_t up(int64_t n, int64_t stride) { return n > 0 ? (n + stride - 1) / stride : 0; }

int64_t bounded(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

template <int kPixel>
void pad_rows(const BlockedPad& p) {
  float* to = p.target;
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t y = p.first + row * p.row_gap;
    const bool inside = y >= 0 && y < p.height;
    const float* line = p.image + (inside ? y : 0) * p.width * kPixel;
    for (int64_t phase = 0; phase < p.phases; ++phase) {
      const int64_t shift = p.left - phase;  // Columns of the border that this phase starts with.
      const int64_t begin = inside ? bounded(up(shift, p.stride), 0, p.phase_width) : 0;
      const int64_t end = inside ? bounded(up(p.width + shift, p.stride), begin, p.phase_width) : 0;
      const int64_t first = begin < end ? begin * p.stride - shift : 0;
      pad_phase<kPixel>(line + first * kPixel, p.stride, begin, end, p.phase_width, to);
      to += p.phase_width * kPixel;
    }
  }
}

}  // namespace

void blocked_pad(const BlockedPad& pad) { pad.plain ? pad_rows<1>(pad) : pad_rows<kLanes>(pad); }

void block_channels(const float* planes, int64_t plane, int64_t channels, int64_t pixels,
                    float* groups) {
  // A strip of pixels stays in the cache while its channels are written.
  constexpr int64_t kStrip = 64;
  for (int64_t begin = 0; begin < pixels; begin += kStrip) {
    const int64_t count = begin + kStrip < pixels ? kStrip : pixels - begin;
    float* to = groups + begin * kLanes;
    if (channels < kLanes) {
      for (int64_t i = 0; i < count; ++i) store(to + i * kLanes, Vf{});
    }
    transpose_f32(planes + begin, plane, channels, count, to, kLanes);
  }
}

void unblock_channels(const float* groups, int64_t channels, int64_t pixels, float* planes,
                      int64_t plane) {
  constexpr int64_t kStrip = 64;
  for (int64_t begin = 0; begin < pixels; begin += kStrip) {
    const int64_t count = begin + kStrip < pixels ? kStrip : pixels - begin;
    transpose_f32(groups + begin * kLanes, kLanes, count, channels, planes + begin, plane);
  }
}

void gather_pixels(const float* row, const int32_t* map, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) store(out + i * kLanes, load(row + int64_t{map[i]} * kLanes));
}

namespace {

template <int64_t kCount>
void copy_some(const float* from, float* to, int64_t lanes, int64_t pixels) {
  const auto bytes = static_cast<size_t>(kCount > 0 ? kCount : lanes) * sizeof(float);
  for (int64_t i = 0; i < pixels; ++i) std::memcpy(to + i * kLanes, from + i * kLanes, bytes);
}

}  // namespace

void copy_lanes(const float* from, int64_t from_lane, float* to, int64_t to_lane, int64_t lanes,
                int64_t pixels) {
  from += from_lane;
  to += to_lane;
  if (lanes == kLanes) return copy_some<kLanes>(from, to, lanes, pixels);
  if (lanes == kLanes / 2) return copy_some<kLanes / 2>(from, to, lanes, pixels);
  copy_some<0>(from, to, lanes, pixels);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
