// SPDX-License-Identifier: Apache-2.0
// MaxUnpool puts maxima back where they were; Col2Im adds columns up to the image that they are
// patches of.
#include <cstring>

#include "ops/conversion/planes.hpp"
#include "ops/conversion/values.hpp"
#include "ops/movement/element.hpp"

namespace chipdock::plugin::cpu {
namespace {

class MaxUnpool final : public Kernel {
 public:
  explicit MaxUnpool(const kit::NodeView& node)
      : kernel_(node.integers("kernel_shape")),
        pads_(node.integers("pads")),
        strides_(node.integers("strides")) {
    if (pads_.empty()) pads_.assign(2 * kernel_.size(), 0);
    if (strides_.empty()) strides_.assign(kernel_.size(), 1);
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const int width = width_of(x, "MaxUnpool");
    const auto* indices = context.input(1).as<int64_t>();
    if (y.size() > 0) std::memset(y.data, 0, y.bytes());
    // Indices count in the image that the pool saw, which output_shape may enlarge.
    std::vector<int64_t> pooled = {x.shape[0], x.shape[1]};
    int64_t size = x.shape[0] * x.shape[1];
    for (size_t i = 0; i < kernel_.size(); ++i) {
      pooled.push_back((x.shape[2 + i] - 1) * strides_[i] - pads_[i] - pads_[i + kernel_.size()] +
                       kernel_[i]);
      size *= pooled.back();
    }
    for (int64_t at = 0; at < x.size(); ++at) {
      int64_t index = indices[at];
      kit::require(index >= 0 && index < size, "MaxUnpool: index ", index, ", allowed are 0 to ",
                   size - 1);
      int64_t target = 0, stride = 1;
      bool inside = true;
      for (int32_t axis = x.rank - 1; axis >= 0; --axis) {
        const int64_t place = index % pooled[static_cast<size_t>(axis)];
        index /= pooled[static_cast<size_t>(axis)];
        inside = inside && place < y.shape[axis];
        target += place * stride;
        stride *= y.shape[axis];
      }
      if (!inside) continue;
      std::memcpy(y.mut<char>() + target * width, x.as<char>() + at * width,
                  static_cast<size_t>(width));
    }
  }

 private:
  std::vector<int64_t> kernel_, pads_, strides_;
};

class Col2Im final : public Kernel {
 public:
  explicit Col2Im(const kit::NodeView& node)
      : dilations_(node.integers("dilations")),
        pads_(node.integers("pads")),
        strides_(node.integers("strides")) {}

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  template <class T>
  void compute(const Context& context) const {
    const Tensor& columns = context.input(0);
    const Tensor& y = context.output(0);
    const int64_t rank = y.rank - 2;
    const auto* block = context.input(2).as<int64_t>();
    std::vector<int64_t> extents(static_cast<size_t>(rank));
    int64_t taps = 1, places = 1;
    const auto or_default = [](const std::vector<int64_t>& values, int64_t i, int64_t usual) {
      return values.empty() ? usual : values[static_cast<size_t>(i)];
    };
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t padded =
          y.shape[2 + i] + or_default(pads_, i, 0) + or_default(pads_, i + rank, 0);
      const int64_t span = or_default(dilations_, i, 1) * (block[i] - 1) + 1;
      extents[i] = (padded - span) / or_default(strides_, i, 1) + 1;
      taps *= block[i];
      places *= extents[i];
    }
    const std::vector<T> from = load<T>(columns);
    std::vector<T> to(static_cast<size_t>(y.size()));
    const int64_t pixels = y.size(2, y.rank);
    over(context, y.shape[0] * y.shape[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          for (int64_t place = 0; place < places; ++place) {
            int64_t t = tap, p = place, at = 0, stride = 1;
            bool inside = true;
            for (int64_t i = rank - 1; i >= 0; --i) {
              const int64_t x = p % extents[i] * or_default(strides_, i, 1) -
                                or_default(pads_, i, 0) +
                                t % block[i] * or_default(dilations_, i, 1);
              inside = inside && x >= 0 && x < y.shape[2 + i];
              at += x * stride;
              stride *= y.shape[2 + i];
              t /= block[i];
              p /= extents[i];
            }
            if (inside) to[plane * pixels + at] += from[(plane * taps + tap) * places + place];
          }
        }
      }
    });
    store(to, y);
  }

  std::vector<int64_t> dilations_, pads_, strides_;
};

}  // namespace

KernelSpan unpool_kernels() {
  KernelDef unpool{"MaxUnpool", 9, 0, make<MaxUnpool>, {{1, {kit::kInt64}}}};
  unpool.supports = moves_bytes;
  const auto numbers = dtypes_of(NumberTypes{} + Types<bool>{});
  KernelSpan kernels = {unpool, {"Col2Im", 18, 0, make<Col2Im>, {{0, numbers}, {-1, numbers}}}};
  for (const chipdock_dtype type : {kComplex64, kComplex128}) {
    KernelDef def{"Col2Im", 18};
    def.create = type.bits == 64 ? make<Planes<Col2Im, float>> : make<Planes<Col2Im, double>>;
    def.dtypes = {{0, {type}}, {1, {kit::kInt64}}, {-1, {type}}};
    def.name = type.bits == 64 ? "Col2Im_c64" : "Col2Im_c128";
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
