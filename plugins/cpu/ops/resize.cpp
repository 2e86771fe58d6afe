// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Nearest gathers elements of any type; linear and cubic run one axis after
// the other in float, or in double for 64-bit and integer types. Where taps lie is in resample.hpp.
#include <cstring>

#include "ops/conversion/planes.hpp"
#include "ops/resize_attributes.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

template <class T>
class Nearest final : public ResizeBase {
 public:
  explicit Nearest(const kit::NodeView& node) : ResizeBase(node) {
    const auto value = static_cast<float>(extrapolation_);
    if (is_half(node.input_dtype(0))) {
      narrow(node.input_dtype(0), &value, 1, &outside_);
    } else {
      outside_ = static_cast<T>(extrapolation_);
    }
  }
  /// What lies outside of a complex tensor is real.
  void imaginary() { outside_ = 0; }
  uint64_t workspace(const Context& context) const override {
    int64_t total = 0;
    for (int32_t i = 0; i < context.output(0).rank; ++i) total += context.output(0).dim(i);
    return padded_bytes(total, sizeof(int32_t));
  }
  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    ResizeAxis axes[CHIPDOCK_MAX_RANK];
    resolve(context, axes);
    int32_t* maps[CHIPDOCK_MAX_RANK];
    auto* next = static_cast<int32_t*>(context.workspace);
    for (int32_t i = 0; i < y.rank; ++i) {
      maps[i] = next;
      next += y.dim(i);
      for (int64_t j = 0; j < y.dim(i); ++j) maps[i][j] = source(axes[i], j);
    }
    const int32_t last = y.rank - 1;
    const int64_t width = y.rank > 0 ? y.dim(last) : 1;
    const int64_t in_width = y.rank > 0 ? x.dim(last) : 1;
    const bool copies = y.rank == 0 || axes[last].identity(sampling_);
    const int64_t rows = y.size() / width;
    context.parallel_for(
        rows, std::max<int64_t>(1, 32768 / width), [&](int64_t begin, int64_t end) {
          int64_t before = -2;
          for (int64_t row = begin; row < end; ++row) {
            const int64_t from = source_row(x, y, maps, last, row);
            T* to = y.mut<T>() + row * width;
            if (from == before) {
              std::memcpy(to, to - width, static_cast<size_t>(width) * sizeof(T));
            } else if (from < 0) {
              std::fill_n(to, width, outside_);
            } else if (copies) {
              std::memcpy(to, x.as<T>() + from * in_width, static_cast<size_t>(width) * sizeof(T));
            } else {
              const T* line = x.as<T>() + from * in_width;
              for (int64_t j = 0; j < width; ++j) {
                to[j] = maps[last][j] < 0 ? outside_ : line[maps[last][j]];
              }
            }
            before = from;
          }
        });
  }

 private:
  /// -1 where the cropped region reaches outside.
  int32_t source(const ResizeAxis& axis, int64_t x) const {
    if (axis.identity(sampling_)) return static_cast<int32_t>(x);
    if (sampling_.coordinates == Coordinates::kCropAndResize) {
      const float at = source_coordinate<float>(sampling_, axis, x);
      if (at < 0 || at > static_cast<float>(axis.in - 1)) return -1;
    }
    return static_cast<int32_t>(nearest_source(sampling_, axis, x));
  }
  static int64_t source_row(const Tensor& x, const Tensor& y, int32_t* const* maps, int32_t last,
                            int64_t row) {
    int64_t from = 0;
    int64_t step = 1;
    for (int32_t i = last - 1; i >= 0; --i) {
      const int32_t at = maps[i][row % y.dim(i)];
      if (at < 0) return -1;
      from += at * step;
      step *= x.dim(i);
      row /= y.dim(i);
    }
    return from;
  }

  T outside_ = 0;  ///< Stands where the cropped region reaches outside.
};

/// out[o, j, :] = sum over taps of weight * in[o, index, :], for one axis.
template <class T>
void resample_axis(const Context& context, const T* in, T* out, int64_t outer, int64_t n_in,
                   int64_t n_out, int64_t inner, int64_t taps, const int32_t* indices,
                   const T* weights) {
  const int64_t grain = std::max<int64_t>(1, 16384 / (inner * taps));
  context.parallel_for(outer * n_out, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t j = row % n_out;
      const T* from = in + row / n_out * n_in * inner;
      const int32_t* index = indices + j * taps;
      const T* weight = weights + j * taps;
      T* to = out + row * inner;
      if (inner == 1) {
        T sum = 0;
        for (int64_t t = 0; t < taps; ++t) sum += weight[t] * from[index[t]];
        *to = sum;
        continue;
      }
      for (int64_t t = 0; t < taps; ++t) {
        const T* line = from + index[t] * inner;
        const T factor = weight[t];
        if (t == 0) {
          for (int64_t i = 0; i < inner; ++i) to[i] = factor * line[i];
        } else {
          for (int64_t i = 0; i < inner; ++i) to[i] += factor * line[i];
        }
      }
    }
  });
}

/// Sets `out` to `value` where output position `j` of one axis came from outside.
template <class T>
void fill_slab(T* out, int64_t outer, int64_t n_out, int64_t inner, int64_t j, T value) {
  for (int64_t o = 0; o < outer; ++o) std::fill_n(out + (o * n_out + j) * inner, inner, value);
}

/// E is the element type as stored, T what sums are made in. Half types are E = T = float.
template <class E, class T>
class Weighted final : public ResizeBase {
 public:
  using ResizeBase::ResizeBase;
  void imaginary() { extrapolation_ = 0; }
  uint64_t workspace(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    uint64_t bytes = 0;
    int64_t largest = std::max(x.size(), y.size());
    int64_t size = x.size();
    for (int32_t i = 0; i < y.rank; ++i) {
      const int64_t most = most_taps(x.dim(i), y.dim(i));
      bytes +=
          padded_bytes(y.dim(i) * most, sizeof(T)) + padded_bytes(y.dim(i) * most, sizeof(int32_t));
      size = x.dim(i) == 0 ? 0 : size / x.dim(i) * y.dim(i);
      largest = std::max(largest, size);
    }
    return bytes + 2 * padded_bytes(largest, sizeof(T));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    ResizeAxis axes[CHIPDOCK_MAX_RANK];
    resolve(context, axes);
    int64_t largest = std::max(x.size(), y.size());
    int64_t size = x.size();
    for (int32_t i = 0; i < y.rank; ++i) {
      size = size / x.dim(i) * y.dim(i);
      largest = std::max(largest, size);
    }
    Carver carver(context.workspace);
    T* buffers[2] = {carver.take<T>(largest), carver.take<T>(largest)};
    const bool stored = std::is_same_v<E, T> && !is_half(x.dtype);  // No conversion on the way.
    const T* from = stored ? x.as<T>() : load(x, buffers[0]);
    int32_t left = 0;
    for (int32_t i = 0; i < y.rank; ++i) left += !axes[i].identity(sampling_);
    int spare = 1;
    size = x.size();
    for (int32_t i = 0; i < y.rank; ++i) {
      if (axes[i].identity(sampling_)) continue;
      const Footprint footprint(sampling_, axes[i]);
      T* weights = carver.take<T>(axes[i].out * most_taps(axes[i].in, axes[i].out));
      auto* indices = carver.take<int32_t>(axes[i].out * most_taps(axes[i].in, axes[i].out));
      for (int64_t j = 0; j < axes[i].out; ++j) {
        sample_weights(sampling_, axes[i], footprint, j, indices + j * footprint.taps,
                       weights + j * footprint.taps);
      }
      T* to = --left == 0 && stored ? y.mut<T>() : buffers[spare];
      const int64_t outer = y.size(0, i);
      const int64_t inner = x.size(i + 1, x.rank);
      resample_axis(context, from, to, outer, axes[i].in, axes[i].out, inner, footprint.taps,
                    indices, weights);
      from = to;
      spare = 1 - spare;
    }
    if (from == x.data) {
      std::memcpy(y.data, x.data, y.bytes());
    } else if (!stored) {
      save(from, y);
    }
    extrapolate(axes, y);
  }

 private:
  /// No fewer than any footprint of these extents has: a given scale may be a little off out / in.
  int64_t most_taps(int64_t in, int64_t out) const {
    const int64_t reach = sampling_.mode == ResizeMode::kCubic ? 2 : 1;
    if (!sampling_.antialias || out == 0) return 2 * reach;
    const double shrink = static_cast<double>(in) / (static_cast<double>(out) - 0.5);
    return 2 * (static_cast<int64_t>(static_cast<double>(reach) * std::max(shrink, 1.0)) + 2);
  }
  static const T* load(const Tensor& x, T* target) {
    if constexpr (std::is_same_v<E, float>) {
      widen(x.dtype, x.data, x.size(), target);
    } else {
      for (int64_t i = 0; i < x.size(); ++i) target[i] = static_cast<T>(x.as<E>()[i]);
    }
    return target;
  }
  static void save(const T* from, const Tensor& y) {
    if constexpr (std::is_same_v<E, float>) {
      narrow(y.dtype, from, y.size(), y.data);
    } else if constexpr (!std::is_same_v<E, T>) {
      for (int64_t i = 0; i < y.size(); ++i) y.mut<E>()[i] = saturated(from[i]);
    }
  }
  /// Rounded to an integer, halves to even; the ends of the type take what lies beyond.
  static E saturated(T value) {
    value = std::nearbyint(value);
    constexpr E kLow = std::numeric_limits<E>::lowest();
    constexpr E kHigh = std::numeric_limits<E>::max();
    if (!(value > static_cast<T>(kLow))) return kLow;
    return value >= static_cast<T>(kHigh) ? kHigh : static_cast<E>(value);
  }
  void extrapolate(const ResizeAxis* axes, const Tensor& y) const {
    if (sampling_.coordinates != Coordinates::kCropAndResize) return;
    for (int32_t i = 0; i < y.rank; ++i) {
      for (int64_t j = 0; j < axes[i].out; ++j) {
        const double at = source_coordinate<double>(sampling_, axes[i], j);
        if (at >= 0 && at <= static_cast<double>(axes[i].in - 1)) continue;
        const int64_t outer = y.size(0, i);
        const int64_t inner = y.size(i + 1, y.rank);
        if (is_half(y.dtype)) {
          const auto wide = static_cast<float>(extrapolation_);
          uint16_t bits = 0;
          narrow(y.dtype, &wide, 1, &bits);
          fill_slab(y.mut<uint16_t>(), outer, axes[i].out, inner, j, bits);
        } else {
          fill_slab(y.mut<E>(), outer, axes[i].out, inner, j, static_cast<E>(extrapolation_));
        }
      }
    }
  }
};

bool is_nearest(const kit::NodeView& node) { return node.text("mode", "nearest") == "nearest"; }

template <bool kNearest>
int32_t supports(const kit::NodeView& node) {
  return is_nearest(node) == kNearest ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

struct Version {
  const char* op;
  int32_t since, until;
  uint64_t host_inputs;
};

void define(KernelSpan& span, const char* name,
            std::unique_ptr<Kernel> (*create)(const kit::NodeView&),
            int32_t (*supported)(const kit::NodeView&), const std::vector<chipdock_dtype>& dtypes) {
  constexpr Version kVersions[] = {{"Upsample", 7, 7, 0},
                                   {"Upsample", 9, 0, 1u << 1},
                                   {"Resize", 10, 10, 1u << 1},
                                   {"Resize", 11, 0, (1u << 1) | (1u << 2) | (1u << 3)}};
  for (const Version& version : kVersions) {
    KernelDef def;
    def.op = version.op;
    def.since = version.since;
    def.until = version.until;
    def.host_inputs = version.host_inputs;
    def.name = name;
    def.create = create;
    def.supports = supported;
    // Scales, sizes and roi have types of their own, so the rule of X must not serve them.
    def.dtypes = {{0, dtypes},
                  {1, {kit::kFloat32, kit::kFloat64, kit::kFloat16, kit::kBfloat16}},
                  {3, {kit::kInt64}},
                  {-1, dtypes}};
    span.push_back(std::move(def));
  }
}

}  // namespace

KernelSpan resize_kernels() {
  KernelSpan span;
  constexpr auto kNear = supports<true>;
  constexpr auto kWeighted = supports<false>;
  // Elements are moved, so their width is all that matters; floats apart, whose fill value is not
  // cast.
  define(span, "resize_nearest_f32", make<Nearest<float>>, kNear, {kit::kFloat32});
  define(span, "resize_nearest_f64", make<Nearest<double>>, kNear, {kit::kFloat64});
  define(span, "resize_nearest_8", make<Nearest<uint8_t>>, kNear,
         {kit::kUint8, kit::kInt8, kit::kBool});
  define(span, "resize_nearest_16", make<Nearest<uint16_t>>, kNear,
         {kit::kFloat16, kit::kBfloat16, kit::kInt16, kit::kUint16});
  define(span, "resize_nearest_32", make<Nearest<uint32_t>>, kNear, {kit::kInt32, kit::kUint32});
  define(span, "resize_nearest_64", make<Nearest<uint64_t>>, kNear, {kit::kInt64, kit::kUint64});
  define(span, "resize_f32", make<Weighted<float, float>>, kWeighted,
         {kit::kFloat32, kit::kFloat16, kit::kBfloat16});
  define(span, "resize_f64", make<Weighted<double, double>>, kWeighted, {kit::kFloat64});
  define(span, "resize_u8", make<Weighted<uint8_t, double>>, kWeighted, {kit::kUint8});
  define(span, "resize_i8", make<Weighted<int8_t, double>>, kWeighted, {kit::kInt8});
  define(span, "resize_i16", make<Weighted<int16_t, double>>, kWeighted, {kit::kInt16});
  define(span, "resize_u16", make<Weighted<uint16_t, double>>, kWeighted, {kit::kUint16});
  define(span, "resize_u32", make<Weighted<uint32_t, double>>, kWeighted, {kit::kUint32});
  define(span, "resize_u64", make<Weighted<uint64_t, double>>, kWeighted, {kit::kUint64});
  define(span, "resize_bool", make<Weighted<bool, double>>, kWeighted, {kit::kBool});
  define(span, "resize_i32", make<Weighted<int32_t, double>>, kWeighted, {kit::kInt32});
  define(span, "resize_i64", make<Weighted<int64_t, double>>, kWeighted, {kit::kInt64});
  define(span, "resize_nearest_c64", make<Planes<Nearest<float>, float>>, kNear, {kComplex64});
  define(span, "resize_nearest_c128", make<Planes<Nearest<double>, double>>, kNear, {kComplex128});
  define(span, "resize_c64", make<Planes<Weighted<float, float>, float>>, kWeighted, {kComplex64});
  define(span, "resize_c128", make<Planes<Weighted<double, double>, double>>, kWeighted,
         {kComplex128});
  return span;
}

}  // namespace chipdock::plugin::cpu
