// SPDX-License-Identifier: Apache-2.0
// Where each output position of a resized axis comes from: coordinates, taps and their weights. One
// axis at a time, since all of Resize's modes are separable.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_RESAMPLE_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_RESAMPLE_HPP_

#include <algorithm>
#include <cmath>
#include <string>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

enum class ResizeMode { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize
};
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil, kUpsample };

/// The attributes of Resize (or Upsample) that say how to sample.
struct Sampling {
  ResizeMode mode = ResizeMode::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_a = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

/// One axis of one call.
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  bool exact_size = false;  ///< Sizes were given, so in * scale is `out`.
  double roi_begin = 0;
  double roi_end = 1;

  bool identity(const Sampling& s) const {
    return in == out && scale == 1 &&
           (s.coordinates != Coordinates::kCropAndResize || (roi_begin == 0 && roi_end == 1));
  }
};

/// Input coordinate of output `x`. F is float where the rounding of a half way case must be the
/// operator's own (nearest), double elsewhere.
template <class F>
F source_coordinate(const Sampling& s, const ResizeAxis& axis, int64_t x) {
  const F scale = static_cast<F>(axis.scale);
  const F in = static_cast<F>(axis.in);
  const F at = static_cast<F>(x);
  const F out = axis.exact_size ? static_cast<F>(axis.out) : scale * in;
  const F begin = static_cast<F>(axis.roi_begin);
  const F end = static_cast<F>(axis.roi_end);
  switch (s.coordinates) {
    case Coordinates::kAlignCorners:
      return out == 1 ? F(0) : at * (in - 1) / (out - 1);
    case Coordinates::kAsymmetric:
      return at / scale;
    case Coordinates::kPytorchHalfPixel:
      return out == 1 ? F(-0.5) : (at + F(0.5)) / scale - F(0.5);
    case Coordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<F>(axis.out) / out) + (at + F(0.5)) / scale - F(0.5);
    case Coordinates::kCropAndResize:
      return begin * (in - 1) +
             (out == 1 ? (end - begin) * (in - 1) / 2 : at * (end - begin) * (in - 1) / (out - 1));
    default:
      return (at + F(0.5)) / scale - F(0.5);
  }
}

inline int64_t nearest_source(const Sampling& s, const ResizeAxis& axis, int64_t x) {
  const float at = source_coordinate<float>(s, axis, x);
  const float low = std::floor(at);
  float found = low;
  switch (s.rounding) {
    case Rounding::kPreferFloor:
      found = at - low <= 0.5f ? low : low + 1;
      break;
    case Rounding::kPreferCeil:
      found = at - low < 0.5f ? low : low + 1;
      break;
    case Rounding::kCeil:
      found = std::ceil(at);
      break;
    case Rounding::kUpsample:
      found = axis.scale < 1 ? std::ceil(at) : low;
      break;
    default:
      break;
  }
  return std::clamp<int64_t>(static_cast<int64_t>(found), 0, axis.in - 1);
}

/// First tap relative to the floor of a coordinate, and how many taps.
struct Footprint {
  Footprint(const Sampling& s, const ResizeAxis& axis) {
    const double reach = s.mode == ResizeMode::kCubic ? 2 : 1;
    const double scale = s.antialias ? std::min(axis.scale, 1.0) : 1.0;
    first = static_cast<int64_t>(std::floor(-reach / scale)) + 1;
    taps = 2 - 2 * first;
  }
  int64_t first;
  int64_t taps;
};

inline double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Fills `taps` source indices (clamped to the axis) and weights (of sum 1) for output `x`.
template <class T>
void sample_weights(const Sampling& s, const ResizeAxis& axis, const Footprint& footprint,
                    int64_t x, int32_t* indices, T* weights) {
  const double at = source_coordinate<double>(s, axis, x);
  // A coordinate on an element counts as just behind it: the reference's choice, which matters
  // where outside taps are excluded.
  const double low = std::ceil(at) - 1;
  const double scale = s.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const auto weight_of = [&](int64_t tap) {
    const double index = low + static_cast<double>(footprint.first + tap);
    if (s.exclude_outside && (index < 0 || index > static_cast<double>(axis.in - 1))) return 0.0;
    const double distance = (index - at) * scale;
    return s.mode == ResizeMode::kCubic ? cubic_weight(distance, s.cubic_a)
                                        : std::max(0.0, 1 - std::abs(distance));
  };
  double sum = 0;
  for (int64_t tap = 0; tap < footprint.taps; ++tap) sum += weight_of(tap);
  if (!s.antialias && !s.exclude_outside) sum = 1;
  for (int64_t tap = 0; tap < footprint.taps; ++tap) {
    const double index = low + static_cast<double>(footprint.first + tap);
    indices[tap] = static_cast<int32_t>(std::clamp(index, 0.0, static_cast<double>(axis.in - 1)));
    weights[tap] = static_cast<T>(weight_of(tap) / sum);
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_RESAMPLE_HPP_
