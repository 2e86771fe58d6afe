// SPDX-License-Identifier: Apache-2.0
// Pow, whose exponent may have another dtype than the base. Equal float dtypes go the way of all
// arithmetic, as does one exponent that the base's dtype holds; the other mixed ones are computed in
// double, two integers in integers that wrap.
#include <cmath>
#include <cstring>

#include "ops/elementwise/arithmetic.hpp"
#include "ops/elementwise/broadcast.hpp"

namespace chipdock::plugin::cpu {
namespace {

using ExponentTypes = decltype(IntegerTypes{} + FloatTypes{});
using BaseTypes = decltype(FloatTypes{} + Types<int32_t, int64_t>{});

constexpr double kExact = 9007199254740992.0;  ///< 2^53: integers up to it are doubles.

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    float wide = 0;
    half_codec(dtype_of<T>()).widen(&x.bits, &wide, 1);
    return static_cast<double>(wide);
  } else {
    return static_cast<double>(x);
  }
}

template <class T>
T from_double(double x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    const float wide = static_cast<float>(x);
    T half{};
    half_codec(dtype_of<T>()).narrow(&wide, &half.bits, 1);
    return half;
  } else if constexpr (std::is_integral_v<T>) {
    // What the dtype cannot hold becomes its least value, as the processor's own conversion does.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return x < limit && x >= -limit ? static_cast<T>(x) : std::numeric_limits<T>::min();
  } else {
    return static_cast<T>(x);
  }
}

/// By squaring. A negative exponent gives 0 but for bases 1 and -1.
template <class T, class E>
T integer_power(T base, E exponent) {
  if (exponent < E{0})
    return base == 1 ? T{1} : base == -1 ? (exponent % 2 != 0 ? T{-1} : T{1}) : T{0};
  auto square = static_cast<Wrapping<T>>(base);
  Wrapping<T> result = 1;
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T, class E>
void mixed(const Context& context) {
  const Tensor& out = context.output(0);
  const Broadcast<2> plan(out, {&context.input(0), &context.input(1)}, "Pow");
  const T* base = context.input(0).as<T>();
  const E* exponent = context.input(1).as<E>();
  T* to = out.mut<T>();
  const int64_t step_base = plan.still(0) ? 0 : 1;
  const int64_t step_exponent = plan.still(1) ? 0 : 1;
  over(context, plan.size(), kGrain / 8, [&](int64_t begin, int64_t end) {
    plan.walk(begin, end, end, [&](const int64_t* offset, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const T x = base[offset[0] + i * step_base];
        const E y = exponent[offset[1] + i * step_exponent];
        if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
          to[at + i] = integer_power(x, y);
        } else {
          to[at + i] = from_double<T>(std::pow(to_double(x), to_double(y)));
        }
      }
    });
  });
}

/// Writes the one element of `exponent` as the float dtype `base`; false if that changes its value.
bool exponent_as(chipdock_dtype base, const Tensor& exponent, void* target) {
  bool same = false;
  dispatch(FloatTypes{}, base, [&](auto base_tag) {
    dispatch(ExponentTypes{}, exponent.dtype, [&](auto tag) {
      using T = typename decltype(base_tag)::type;
      const double given = to_double(*exponent.as<typename decltype(tag)::type>());
      const T held = from_double<T>(given);
      same = to_double(held) == given && std::fabs(given) <= kExact;
      std::memcpy(target, &held, sizeof(held));
    });
  });
  return same;
}

class Pow final : public Kernel {
 public:
  explicit Pow(const kit::NodeView& node) {
    const chipdock_dtype base = node.input_dtype(0);
    const chipdock_dtype exponent = node.input_dtype(1);
    if (is(base, exponent) && base.code != CHIPDOCK_DTYPE_INT) {
      same_.emplace_back(Binary::kPow, base, "Pow");
      return;
    }
    dispatch(BaseTypes{}, base, [&](auto base_tag) {
      dispatch(ExponentTypes{}, exponent, [&](auto exponent_tag) {
        mixed_ = mixed<typename decltype(base_tag)::type, typename decltype(exponent_tag)::type>;
      });
    });
    if (mixed_ == nullptr) no_dtype("Pow", base);
    if (base.code != CHIPDOCK_DTYPE_INT) same_.emplace_back(Binary::kPow, base, "Pow");
  }

  void run(const Context& context) const override {
    if (context.output(0).size() == 0) return;
    Tensor exponent = context.input(1);
    uint64_t held = 0;
    if (mixed_ != nullptr) {
      const chipdock_dtype base = context.input(0).dtype;
      if (exponent.size() != 1 || !exponent_as(base, exponent, &held)) return mixed_(context);
      exponent.dtype = base;
      exponent.data = &held;
    }
    apply_broadcast(context, same_[0], context.input(0), exponent, context.output(0), "Pow");
  }

 private:
  std::vector<BinaryFunction> same_;  ///< One, if the base is a float.
  void (*mixed_)(const Context& context) = nullptr;
};

}  // namespace

KernelSpan pow_kernels() {
  KernelDef def{"Pow", 7};
  def.create = make<Pow>;
  def.dtypes = {{0, dtypes_of(BaseTypes{})}, {1, dtypes_of(ExponentTypes{})}};
  def.aliases = {{0, 0}};
  KernelSpan kernels;
  kernels.push_back(std::move(def));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
