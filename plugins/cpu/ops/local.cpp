// SPDX-License-Identifier: Apache-2.0
// Small operators of their own kind: LRN, Shrink, Det and TensorScatter.
#include <cmath>
#include <cstring>

#include "ops/conversion/values.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/unpacked.hpp"

namespace chipdock::plugin::cpu {
namespace {

class Lrn final : public Kernel {
 public:
  explicit Lrn(const kit::NodeView& node)
      : alpha_(node.number("alpha", 1e-4)),
        beta_(node.number("beta", 0.75)),
        bias_(node.number("bias", 1)),
        size_(node.integer("size", 1)) {
    kit::require(size_ > 0, "LRN: size is ", size_, ", it must be above 0");
  }

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  template <class T>
  void compute(const Context& context) const {
    const Tensor& x = context.input(0);
    kit::require(x.rank >= 2, "LRN: X has rank ", x.rank, ", allowed is 2 or more");
    const std::vector<T> from = load<T>(x);
    std::vector<T> to(from.size());
    const int64_t channels = x.shape[1], pixels = x.size(2, x.rank);
    const int64_t before = (size_ - 1) / 2, behind = size_ / 2;
    const T scale = static_cast<T>(alpha_ / static_cast<double>(size_));
    const T bias = static_cast<T>(bias_), power = static_cast<T>(-beta_);
    over(context, x.shape[0] * channels, row_grain(pixels * size_),
         [&](int64_t begin, int64_t end) {
           std::vector<T> sums(static_cast<size_t>(pixels));
           for (int64_t plane = begin; plane < end; ++plane) {
             const int64_t c = plane % channels;
             std::fill(sums.begin(), sums.end(), T{0});
             for (int64_t k = std::max<int64_t>(0, c - before);
                  k <= std::min(channels - 1, c + behind); ++k) {
               const T* other = from.data() + (plane - c + k) * pixels;
               for (int64_t i = 0; i < pixels; ++i) sums[i] += other[i] * other[i];
             }
             const T* own = from.data() + plane * pixels;
             T* out = to.data() + plane * pixels;
             for (int64_t i = 0; i < pixels; ++i)
               out[i] = own[i] * std::pow(bias + scale * sums[i], power);
           }
         });
    store(to, context.output(0));
  }

  double alpha_, beta_, bias_;
  int64_t size_;
};

class Shrink final : public Kernel {
 public:
  explicit Shrink(const kit::NodeView& node)
      : bias_(node.number("bias", 0)), lambd_(node.number("lambd", 0.5)) {}

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values = load<T>(context.input(0));
      const T bias = static_cast<T>(bias_), lambd = static_cast<T>(lambd_);
      for (T& v : values) v = v < -lambd ? v + bias : v > lambd ? v - bias : T{0};
      store(values, context.output(0));
    });
  }

 private:
  double bias_, lambd_;
};

/// Gaussian elimination with the largest pivot.
class Det final : public Kernel {
 public:
  explicit Det(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const int64_t n = x.shape[x.rank - 1];
    const std::vector<double> all = load<double>(x);
    std::vector<double> out(static_cast<size_t>(context.output(0).size()));
    over(context, static_cast<int64_t>(out.size()), row_grain(n * n),
         [&](int64_t begin, int64_t end) {
           for (int64_t at = begin; at < end; ++at) {
             std::vector<double> m(all.begin() + at * n * n, all.begin() + (at + 1) * n * n);
             out[at] = determinant(m, n);
           }
         });
    store(out, context.output(0));
  }

 private:
  static double determinant(std::vector<double>& m, int64_t n) {
    double product = 1;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i) {
        if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
      }
      if (m[pivot * n + k] == 0) return 0;
      if (pivot != k) {
        product = -product;
        std::swap_ranges(m.begin() + k * n, m.begin() + (k + 1) * n, m.begin() + pivot * n);
      }
      product *= m[k * n + k];
      for (int64_t i = k + 1; i < n; ++i) {
        const double factor = m[i * n + k] / m[k * n + k];
        for (int64_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
      }
    }
    return product;
  }
};

class TensorScatter final : public Kernel {
 public:
  explicit TensorScatter(const kit::NodeView& node)
      : axis_(node.integer("axis", -2)), circular_(node.text("mode", "linear") == "circular") {}

  void run(const Context& context) const override {
    constexpr const char* kOp = "TensorScatter";
    const Tensor& cache = context.input(0);
    const Tensor& update = context.input(1);
    const Tensor& out = context.output(0);
    const int64_t axis = kit::normalize_axis(axis_, cache.rank, kOp);
    const int64_t width = width_of(cache, kOp) * cache.size(axis + 1, cache.rank);
    const int64_t extent = cache.shape[axis], length = update.shape[axis];
    if (cache.bytes() == 0) return;
    if (out.data != cache.data) std::memcpy(out.data, cache.data, cache.bytes());
    const int64_t lines = cache.size(0, axis), per_entry = lines / cache.shape[0];
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t first =
          context.has_input(2) ? context.input(2).as<int64_t>()[line / per_entry] : 0;
      for (int64_t k = 0; k < length; ++k) {
        int64_t place = first + k;
        if (circular_ && extent > 0) place = (place % extent + extent) % extent;
        kit::require(place >= 0 && place < extent, kOp, ": write index ", first, " and ", length,
                     " entries reach beyond the ", extent, " of the cache");
        std::memcpy(out.mut<char>() + (line * extent + place) * width,
                    update.as<char>() + (line * length + k) * width, static_cast<size_t>(width));
      }
    }
  }

 private:
  int64_t axis_;
  bool circular_;
};

}  // namespace

KernelSpan local_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  const auto numbers = dtypes_of(NumberTypes{});
  KernelDef scatter{"TensorScatter", 24, 0, make<TensorScatter>};
  scatter.supports = moves_bytes;
  return {{"LRN", 1, 0, make<Lrn>, {{0, floats}, {-1, floats}}},
          {"Shrink", 9, 0, make<Shrink>, {{0, numbers}, {-1, numbers}}},
          {"Det", 11, 0, make<Det>, {{0, floats}, {-1, floats}}},
          scatter,
          unpacked<TensorScatter>(scatter, "TensorScatter_packed")};
}

}  // namespace chipdock::plugin::cpu
