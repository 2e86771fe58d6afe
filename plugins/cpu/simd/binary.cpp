// SPDX-License-Identifier: Apache-2.0
// Float kernels of the element-wise functions of two arrays. Mod goes through the C
// library. Pow is in power.cpp, comparisons are in compare.cpp.
#include "simd/binary.hpp"

#include <cmath>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

template <class F>
void vectorised(const float* a, const float* b, float* c, int64_t n, Operands operands) {
  if (operands == Operands::kBoth) {
    map(a, b, c, n, [](Vf x, Vf y) { return F::apply(x, y); });
  } else if (operands == Operands::kScalarRight) {
    const Vf y = splat(*b);
    map(a, c, n, [y](Vf x) { return F::apply(x, y); });
  } else {
    const Vf x = splat(*a);
    map(b, c, n, [x](Vf y) { return F::apply(x, y); });
  }
}

#define CHIPDOCK_BINARY(Name, ...)                      \
  struct Name {                                         \
    static Vf apply(Vf x, Vf y) { return __VA_ARGS__; } \
  };
CHIPDOCK_BINARY(Add, x + y)
CHIPDOCK_BINARY(Sub, x - y)
CHIPDOCK_BINARY(Mul, x* y)
CHIPDOCK_BINARY(Div, x / y)
CHIPDOCK_BINARY(Max, max(x, y))
CHIPDOCK_BINARY(Min, min(x, y))
CHIPDOCK_BINARY(PRelu, x < 0.0f ? x * y : x)
#undef CHIPDOCK_BINARY

template <class F>
void lanewise(const float* a, const float* b, float* c, int64_t n, Operands operands, F f) {
  const int64_t step_a = operands == Operands::kScalarLeft ? 0 : 1;
  const int64_t step_b = operands == Operands::kScalarRight ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) c[i] = f(a[i * step_a], b[i * step_b]);
}

/// Sign of the divisor, as numpy and Python have it.
void modulo(const float* a, const float* b, float* c, int64_t n, Operands operands) {
  lanewise(a, b, c, n, operands, [](float x, float y) {
    const float rest = std::fmod(x, y);
    if (rest == 0.0f) return std::copysign(0.0f, y);
    return (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
  });
}

void remainder(const float* a, const float* b, float* c, int64_t n, Operands operands) {
  lanewise(a, b, c, n, operands, [](float x, float y) { return std::fmod(x, y); });
}

}  // namespace

BinaryF32 binary_f32(Binary op) {
  switch (op) {
    case Binary::kAdd:
      return vectorised<Add>;
    case Binary::kSub:
      return vectorised<Sub>;
    case Binary::kMul:
      return vectorised<Mul>;
    case Binary::kDiv:
      return vectorised<Div>;
    case Binary::kMax:
      return vectorised<Max>;
    case Binary::kMin:
      return vectorised<Min>;
    case Binary::kPRelu:
      return vectorised<PRelu>;
    case Binary::kPow:
      return power_f32;
    case Binary::kMod:
      return modulo;
    case Binary::kFmod:
      return remainder;
    default:
      return nullptr;
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
