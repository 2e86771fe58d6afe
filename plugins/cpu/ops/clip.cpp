// SPDX-License-Identifier: Apache-2.0
// Clip: bounds as attributes (version 6) or as optional scalar inputs (11 and later). NaN stays,
// and where the bounds cross the upper one wins.
#include <limits>

#include "blocked.hpp"
#include "ops/numeric.hpp"
#include "simd/unary.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Element k of a scalar input, or `otherwise` if it is not given.
template <class T>
T bound(const Context& context, uint32_t k, T otherwise) {
  if (!context.has_input(k)) return otherwise;
  const Tensor& given = context.input(k);
  kit::require(given.size() == 1, "Clip: input ", k, " has ", given.size(),
               " elements, a bound is one element");
  return *given.as<T>();
}

template <class T>
void clip(const T* x, T* y, int64_t n, T low, T high) {
  for (int64_t i = 0; i < n; ++i) {
    T v = x[i];
    v = v < low ? low : v;
    y[i] = v > high ? high : v;
  }
}

class Clip final : public Kernel {
 public:
  explicit Clip(const kit::NodeView& node)
      : type_(node.input_dtype(0)),
        half_(half_codec(type_)),
        low_(node.number("min", -std::numeric_limits<double>::infinity())),
        high_(node.number("max", std::numeric_limits<double>::infinity())),
        single_(CHIPDOCK_CPU_DISPATCH(unary_f32)(Unary::kClip)) {}

  void run(const Context& context) const override {
    if (half_) return run_half(context);
    if (is(type_, kit::kFloat32)) return run_single(context);
    dispatch(IntegerTypes{} + Types<double>{}, type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T low = std::numeric_limits<T>::lowest();
      T high = std::numeric_limits<T>::max();
      if constexpr (std::is_floating_point_v<T>) {
        low = low_;
        high = high_;
      }
      low = bound(context, 1, low);
      high = bound(context, 2, high);
      const T* x = context.input(0).as<T>();
      T* y = context.output(0).mut<T>();
      over(context, context.output(0).size(), kGrain,
           [&](int64_t begin, int64_t end) { clip(x + begin, y + begin, end - begin, low, high); });
    });
  }

 private:
  void run_single(const Context& context) const {
    const float* x = context.input(0).as<float>();
    float* y = context.output(0).mut<float>();
    const UnaryParams<float> bounds{bound(context, 1, static_cast<float>(low_)),
                                    bound(context, 2, static_cast<float>(high_))};
    const Tensor& to = context.output(0);
    const auto stored = static_cast<int64_t>(to.bytes() / sizeof(float));
    over(context, stored, kGrain,
         [&](int64_t begin, int64_t end) { single_(x + begin, y + begin, end - begin, bounds); });
    const bool zero_stays = bounds.alpha <= 0 && bounds.beta >= 0;
    if (to.layout == kBlocked && !zero_stays) zero_lanes(to);
  }

  float half_bound(const Context& context, uint32_t k, double otherwise) const {
    if (!context.has_input(k)) return static_cast<float>(otherwise);
    const uint16_t given = bound<uint16_t>(context, k, 0);
    float value = 0;
    half_.widen(&given, &value, 1);
    return value;
  }

  void run_half(const Context& context) const {
    const uint16_t* x = context.input(0).as<uint16_t>();
    uint16_t* y = context.output(0).mut<uint16_t>();
    const UnaryParams<float> bounds{half_bound(context, 1, low_), half_bound(context, 2, high_)};
    over(context, context.output(0).size(), kGrain, [&](int64_t begin, int64_t end) {
      alignas(64) float block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        half_.widen(x + i, block, n);
        single_(block, block, n, bounds);
        half_.narrow(block, y + i, n);
      }
    });
  }

  chipdock_dtype type_;
  HalfCodec half_;
  double low_;
  double high_;
  UnaryF32 single_;
};

}  // namespace

KernelSpan clip_kernels() {
  KernelDef def{"Clip", 6};
  def.create = make<Clip>;
  def.dtypes = {{0, dtypes_of(NumberTypes{})}};
  def.aliases = {{0, 0}};
  def.supports = supports_either_layout;
  def.layouts = blocked_arguments({0, -1});
  KernelSpan kernels;
  kernels.push_back(std::move(def));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
