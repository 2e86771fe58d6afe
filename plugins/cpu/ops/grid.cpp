// SPDX-License-Identifier: Apache-2.0
// GridSample of any rank: reads an image at places given by another tensor. Computed in float, or
// in double where the dtype asks for it; the nearest pixel is moved as it is.
#include <cmath>
#include <string>

#include "ops/conversion/planes.hpp"
#include "ops/conversion/values.hpp"
#include "ops/movement/element.hpp"
#include "ops/taps.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum class Padding { kZeros, kBorder, kReflection };
enum class Sampling { kNearest, kLinear, kCubic };

template <class T>
T reflect(T x, T low, T high) {
  const T range = high - low;
  if (range <= 0) return low;
  const bool below = x < low;
  if (!below && x <= high) return x;
  const T distance = below ? low - x : x - high;
  const T turns = std::trunc(distance / range);
  const T rest = distance - turns * range;
  const bool even = std::fmod(turns, T{2}) == 0;
  return even == below ? low + rest : high - rest;
}

/// One axis of the image: from a grid value to taps.
template <class T>
class Axis {
 public:
  Axis(int64_t extent, bool align, Padding padding, Sampling sampling)
      : extent_(extent),
        align_(align),
        padding_(padding),
        sampling_(sampling),
        low_(align ? T{0} : T{-0.5}),
        high_(static_cast<T>(extent) - (align ? T{1} : T{0.5})) {}

  Taps<T> taps(T grid) const {
    const T extent = static_cast<T>(extent_);
    T x = align_ ? (grid + 1) / 2 * (extent - 1) : ((grid + 1) * extent - 1) / 2;
    if (sampling_ == Sampling::kNearest) x = std::nearbyint(x);
    if (padding_ == Padding::kBorder) x = std::min(std::max(x, T{0}), extent - 1);
    if (padding_ == Padding::kReflection) x = reflect(x, low_, high_);
    // Far outside, all pixels are zero; this also catches NaN.
    if (!(x > -4 && x < extent + 4)) x = -4;
    Taps<T> out;
    const T floor = std::floor(x);
    const T part = x - floor;
    const auto first = static_cast<int64_t>(floor);
    if (sampling_ == Sampling::kNearest) {
      add(out, first, 1);
    } else if (sampling_ == Sampling::kLinear) {
      add(out, first, 1 - part);
      add(out, first + 1, part);
    } else {
      const T a = T{-0.75};
      const T before = part + 1, after = 1 - part, last = 2 - part;
      add(out, first - 1, ((a * before - 5 * a) * before + 8 * a) * before - 4 * a);
      add(out, first, ((a + 2) * part - (a + 3)) * part * part + 1);
      add(out, first + 1, ((a + 2) * after - (a + 3)) * after * after + 1);
      add(out, first + 2, ((a * last - 5 * a) * last + 8 * a) * last - 4 * a);
    }
    return out;
  }

 private:
  void add(Taps<T>& taps, int64_t pixel, T weight) const {
    if (pixel < 0 || pixel >= extent_) {
      if (padding_ == Padding::kZeros) {
        pixel = -1;
      } else if (padding_ == Padding::kBorder) {
        pixel = std::clamp<int64_t>(pixel, 0, extent_ - 1);
      } else {
        pixel = static_cast<int64_t>(reflect(static_cast<T>(pixel), low_, high_));
        pixel = std::clamp<int64_t>(pixel, 0, extent_ - 1);
      }
    }
    taps.pixel[taps.count] = pixel;
    taps.weight[taps.count++] = weight;
  }

  int64_t extent_;
  bool align_;
  Padding padding_;
  Sampling sampling_;
  T low_, high_;
};

/// Sum over the product of the taps of all axes.
template <class T>
T sample(const T* image, const std::vector<Taps<T>>& taps, const int64_t* extents, size_t axis) {
  T sum = 0;
  int64_t stride = 1;
  for (size_t i = axis + 1; i < taps.size(); ++i) stride *= extents[i];
  for (int k = 0; k < taps[axis].count; ++k) {
    if (taps[axis].pixel[k] < 0) continue;
    const T* at = image + taps[axis].pixel[k] * stride;
    sum += taps[axis].weight[k] *
           (axis + 1 == taps.size() ? *at : sample(at, taps, extents, axis + 1));
  }
  return sum;
}

class GridSample final : public Kernel {
 public:
  explicit GridSample(const kit::NodeView& node) : align_(node.integer("align_corners", 0) != 0) {
    const std::string mode = node.text("mode", "linear");
    const std::string padding = node.text("padding_mode", "zeros");
    sampling_ = mode == "nearest"                        ? Sampling::kNearest
                : mode == "linear" || mode == "bilinear" ? Sampling::kLinear
                                                         : Sampling::kCubic;
    padding_ = padding == "zeros"    ? Padding::kZeros
               : padding == "border" ? Padding::kBorder
                                     : Padding::kReflection;
    kit::require(sampling_ != Sampling::kCubic || mode == "cubic" || mode == "bicubic",
                 "GridSample: mode '", mode, "', allowed are linear, nearest and cubic");
    kit::require(padding_ != Padding::kReflection || padding == "reflection",
                 "GridSample: padding_mode '", padding,
                 "', allowed are zeros, border and reflection");
  }

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (sampling_ != Sampling::kNearest) return compute<T>(context);
      by_width(width_of(context.input(0), "GridSample"),
               [&](auto width) { move<T, decltype(width)::value>(context); });
    });
  }

 private:
  /// Calls body(image, place, taps) for every place of every image.
  template <class T, class Body>
  void for_places(const Context& context, int64_t places, const Body& body) const {
    const Tensor& x = context.input(0);
    const auto rank = static_cast<size_t>(x.rank - 2);
    const std::vector<T> grid = load<T>(context.input(1));
    std::vector<Axis<T>> axes;
    axes.reserve(rank);
    for (size_t i = 0; i < rank; ++i)
      axes.emplace_back(x.shape[2 + i], align_, padding_, sampling_);
    over(context, x.shape[0] * places, 256, [&](int64_t begin, int64_t end) {
      std::vector<Taps<T>> taps(rank);
      for (int64_t at = begin; at < end; ++at) {
        // The grid names the last axis first.
        const T* point = grid.data() + at * static_cast<int64_t>(rank);
        for (size_t i = 0; i < rank; ++i) taps[i] = axes[i].taps(point[rank - 1 - i]);
        body(at / places, at % places, taps);
      }
    });
  }

  template <class T>
  void compute(const Context& context) const {
    const Tensor& x = context.input(0);
    const std::vector<T> image = load<T>(x);
    std::vector<T> out(static_cast<size_t>(context.output(0).size()));
    const int64_t channels = x.shape[1], pixels = x.size(2, x.rank);
    const int64_t places = context.output(0).size(2, context.output(0).rank);
    if (pixels == 0) return store(out, context.output(0));
    for_places<T>(context, places, [&](int64_t n, int64_t place, const auto& taps) {
      for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
        out[c * places + place] = sample(image.data() + c * pixels, taps, x.shape + 2, 0);
      }
    });
    store(out, context.output(0));
  }

  /// The nearest pixel as it is, so that 64-bit integers keep all their bits.
  template <class T, int kWidth>
  void move(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const int64_t channels = x.shape[1], pixels = x.size(2, x.rank);
    const int64_t places = y.size(2, y.rank);
    if (y.size() == 0) return;
    std::memset(y.data, 0, y.bytes());
    if (pixels == 0) return;
    for_places<T>(context, places, [&](int64_t n, int64_t place, const auto& taps) {
      int64_t pixel = 0;
      for (size_t i = 0; i < taps.size(); ++i) {
        if (taps[i].pixel[0] < 0) return;
        pixel = pixel * x.shape[2 + i] + taps[i].pixel[0];
      }
      for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
        move_one<kWidth>(y.mut<char>() + (c * places + place) * kWidth,
                         x.as<char>() + (c * pixels + pixel) * kWidth);
      }
    });
  }

  bool align_;
  Sampling sampling_;
  Padding padding_;
};

}  // namespace

KernelSpan grid_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  const auto numbers = dtypes_of(NumberTypes{} + Types<bool>{});
  KernelSpan kernels;
  kernels.push_back({"GridSample", 16, 0, make<GridSample>});
  kernels.back().dtypes = {{0, numbers}, {1, floats}, {-1, numbers}};
  kernels.push_back({"GridSample", 16, 0, make<Planes<GridSample, float>>});
  kernels.back().dtypes = {{0, {kComplex64}}, {1, floats}, {-1, {kComplex64}}};
  kernels.back().name = "GridSample_c64";
  kernels.push_back({"GridSample", 16, 0, make<Planes<GridSample, double>>});
  kernels.back().dtypes = {{0, {kComplex128}}, {1, floats}, {-1, {kComplex128}}};
  kernels.back().name = "GridSample_c128";
  return kernels;
}

}  // namespace chipdock::plugin::cpu
