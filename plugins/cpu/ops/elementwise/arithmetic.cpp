// SPDX-License-Identifier: Apache-2.0
// Functions of two arrays for float64, integers and bool, and the way there for the half types.
// Integers wrap; division and modulo by zero give 0.
#include "ops/elementwise/arithmetic.hpp"

#include <algorithm>
#include <cmath>

namespace chipdock::plugin::cpu {
namespace {

template <Binary Op, class T>
T divide(T x, T y) {
  if (y == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>) {
    // The one quotient that overflows: -x wraps to x.
    if (y == T{-1})
      return Op == Binary::kDiv ? static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(x))
                                : T{0};
  }
  if constexpr (Op == Binary::kDiv) return static_cast<T>(x / y);
  const T rest = static_cast<T>(x % y);
  if constexpr (Op == Binary::kMod)
    return rest != T{0} && (rest < T{0}) != (y < T{0}) ? static_cast<T>(rest + y) : rest;
  return rest;
}

template <Binary Op>
double real(double x, double y) {
  if constexpr (Op == Binary::kAdd) return x + y;
  if constexpr (Op == Binary::kSub) return x - y;
  if constexpr (Op == Binary::kMul) return x * y;
  if constexpr (Op == Binary::kDiv) return x / y;
  if constexpr (Op == Binary::kMax) return x >= y || x != x ? x : y;
  if constexpr (Op == Binary::kMin) return x <= y || x != x ? x : y;
  if constexpr (Op == Binary::kPow) return std::pow(x, y);
  if constexpr (Op == Binary::kFmod) return std::fmod(x, y);
  if constexpr (Op == Binary::kMod) {
    const double rest = std::fmod(x, y);
    if (rest == 0) return std::copysign(0.0, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
  }
  if constexpr (Op == Binary::kPRelu) return x < 0 ? x * y : x;
}

template <class T>
T shift(T x, T count, bool left) {
  constexpr uint64_t kBits = sizeof(T) * 8;
  const uint64_t by = static_cast<uint64_t>(count);  // A negative count is as far as one too large.
  if (by >= kBits) return static_cast<T>(!left && x < T{0} ? -1 : 0);
  if (left) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << by);
  return static_cast<T>(x >> by);
}

template <Binary Op, class T>
T whole(T x, T y) {
  using W = Wrapping<T>;
  const W u = static_cast<W>(x);
  const W v = static_cast<W>(y);
  if constexpr (Op == Binary::kAdd) return static_cast<T>(u + v);
  if constexpr (Op == Binary::kSub) return static_cast<T>(u - v);
  if constexpr (Op == Binary::kMul) return static_cast<T>(u * v);
  if constexpr (Op == Binary::kDiv || Op == Binary::kMod || Op == Binary::kFmod) {
    return divide<Op>(x, y);
  }
  if constexpr (Op == Binary::kMax) return std::max(x, y);
  if constexpr (Op == Binary::kMin) return std::min(x, y);
  if constexpr (Op == Binary::kPRelu) return x < T{0} ? static_cast<T>(u * v) : x;
  if constexpr (Op == Binary::kBitwiseAnd) return static_cast<T>(x & y);
  if constexpr (Op == Binary::kBitwiseOr) return static_cast<T>(x | y);
  if constexpr (Op == Binary::kBitwiseXor) return static_cast<T>(x ^ y);
  if constexpr (Op == Binary::kShiftLeft) return shift(x, y, true);
  if constexpr (Op == Binary::kShiftRight) return shift(x, y, false);
}

template <Binary Op, class T>
void loop(const void* a, const void* b, void* c, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (Op == Binary::kAnd)
      static_cast<bool*>(c)[i] = x[i] & y[i];
    else if constexpr (Op == Binary::kOr)
      static_cast<bool*>(c)[i] = x[i] | y[i];
    else if constexpr (Op == Binary::kXor)
      static_cast<bool*>(c)[i] = x[i] != y[i];
    else if constexpr (std::is_same_v<T, double>)
      static_cast<T*>(c)[i] = real<Op>(x[i], y[i]);
    else
      static_cast<T*>(c)[i] = whole<Op>(x[i], y[i]);
  }
}

using Loop = void (*)(const void*, const void*, void*, int64_t);

/// The loop for `op` among Ops, or NULL.
template <class T, Binary... Ops>
Loop pick(Binary op) {
  Loop found = nullptr;
  ((op == Ops ? (found = loop<Ops, T>, 0) : 0), ...);
  return found;
}

template <class T>
constexpr Compared compared() {
  if (std::is_same_v<T, double>) return Compared::kF64;
  if (std::is_same_v<T, bool>) return Compared::kU8;
  constexpr Compared kFirst = std::is_signed_v<T> ? Compared::kI8 : Compared::kU8;
  constexpr int32_t kStep = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return static_cast<Compared>(static_cast<int32_t>(kFirst) + kStep);
}

/// The comparison of `type`, or NULL.
Compare find_comparison(Binary op, chipdock_dtype type) {
  if (half_codec(type) || is(type, kit::kFloat32)) {
    return CHIPDOCK_CPU_DISPATCH(comparison)(op, Compared::kF32);
  }
  Compare found = nullptr;
  dispatch(IntegerTypes{} + Types<double, bool>{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    found = CHIPDOCK_CPU_DISPATCH(comparison)(op, compared<T>());
  });
  return found;
}

template <class T>
Loop integer(Binary op) {
  return pick<T, Binary::kAdd, Binary::kSub, Binary::kMul, Binary::kDiv, Binary::kMax, Binary::kMin,
              Binary::kMod, Binary::kFmod, Binary::kPRelu, Binary::kBitwiseAnd, Binary::kBitwiseOr,
              Binary::kBitwiseXor, Binary::kShiftLeft, Binary::kShiftRight>(op);
}

template <class U>
void fill_as(char* block, const char* element, int64_t n) {
  U value;
  std::memcpy(&value, element, sizeof(U));
  for (int64_t i = 0; i < n; ++i) std::memcpy(block + i * sizeof(U), &value, sizeof(U));
}

/// Repeats one element over a block. Each row that is broadcast pays this, so the size is
/// a constant in the loop.
void fill(char* block, const char* element, int64_t size, int64_t n) {
  switch (size) {
    case 1:
      return fill_as<uint8_t>(block, element, n);
    case 2:
      return fill_as<uint16_t>(block, element, n);
    case 4:
      return fill_as<uint32_t>(block, element, n);
    default:
      return fill_as<uint64_t>(block, element, n);
  }
}

}  // namespace

BinaryFunction::Loop BinaryFunction::find(Binary op, chipdock_dtype type) {
  if (is(type, kit::kBool)) {
    return pick<bool, Binary::kAnd, Binary::kOr, Binary::kXor>(op);
  }
  if (is(type, kit::kFloat64)) {
    return pick<double, Binary::kAdd, Binary::kSub, Binary::kMul, Binary::kDiv, Binary::kMax,
                Binary::kMin, Binary::kPow, Binary::kMod, Binary::kFmod, Binary::kPRelu>(op);
  }
  Loop found = nullptr;
  dispatch(IntegerTypes{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    found = integer<T>(op);
  });
  return found;
}

BinaryFunction::BinaryFunction(Binary op, chipdock_dtype type, std::string_view name)
    : half_(half_codec(type)), size_(type.bits / 8), compares_(is_comparison(op)) {
  if (compares_) {
    compare_ = find_comparison(op, type);
  } else if (half_ || is(type, kit::kFloat32)) {
    single_ = CHIPDOCK_CPU_DISPATCH(binary_f32)(op);
  } else {
    loop_ = find(op, type);
  }
  if (single_ == nullptr && compare_ == nullptr && loop_ == nullptr) no_dtype(name, type);
}

void BinaryFunction::apply(const void* a, const void* b, void* c, int64_t n,
                           Operands operands) const {
  if (loop_ != nullptr) {
    apply_loop(static_cast<const char*>(a), static_cast<const char*>(b), static_cast<char*>(c), n,
               operands);
  } else if (half_) {
    apply_half(static_cast<const uint16_t*>(a), static_cast<const uint16_t*>(b), c, n, operands);
  } else if (single_ != nullptr) {
    single_(static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c), n,
            operands);
  } else {
    compare_(a, b, static_cast<bool*>(c), n, operands);
  }
}

void BinaryFunction::apply_half(const uint16_t* a, const uint16_t* b, void* c, int64_t n,
                                Operands operands) const {
  alignas(64) float left[kBlock];
  alignas(64) float right[kBlock];
  if (operands == Operands::kScalarLeft) half_.widen(a, left, 1);
  if (operands == Operands::kScalarRight) half_.widen(b, right, 1);
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    if (operands != Operands::kScalarLeft) half_.widen(a + i, left, m);
    if (operands != Operands::kScalarRight) half_.widen(b + i, right, m);
    if (compare_ != nullptr) {
      compare_(left, right, static_cast<bool*>(c) + i, m, operands);
      continue;
    }
    float* result = operands == Operands::kScalarLeft ? right : left;
    single_(left, right, result, m, operands);
    half_.narrow(result, static_cast<uint16_t*>(c) + i, m);
  }
}

void BinaryFunction::apply_loop(const char* a, const char* b, char* c, int64_t n,
                                Operands operands) const {
  if (operands == Operands::kBoth) return loop_(a, b, c, n);
  alignas(64) char block[kBlock * 8];
  fill(block, operands == Operands::kScalarLeft ? a : b, size_, std::min(kBlock, n));
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    if (operands == Operands::kScalarLeft) {
      loop_(block, b + i * size_, c + i * output_size(), m);
    } else {
      loop_(a + i * size_, block, c + i * output_size(), m);
    }
  }
}

}  // namespace chipdock::plugin::cpu
