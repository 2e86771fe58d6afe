// SPDX-License-Identifier: Apache-2.0
// Elementary functions on float vectors, right over the whole range: NaN, infinities, -0,
// denormals. Polynomials are our own minimax fits (Remez exchange, relative weight); errors against
// fp64, largest over a scan of all floats, are exp 1, log 1, expm1 2, tanh 2, erf 2, sigmoid 3,
// softplus 2 ULP with or without FMA.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_MATH_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_MATH_HPP_

#include <limits>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

/// c[0] + c[1] x + … by Horner's rule.
template <int N>
Vf polynomial(Vf x, const float (&c)[N]) {
  Vf y = splat(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = y * x + c[i];
  return y;
}

/// 2^n for -126 <= n <= 127.
inline Vf power_of_two(Vi n) { return floats(shifted_left(difference(n, Vi{} - 127), 23)); }

/// Splits x = n ln2 + r with |r| <= ln2 / 2; returns r + r^2 P(r), that is e^r - 1.
inline Vf reduced_expm1(Vf x, Vi& n) {
  constexpr float kMagic =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits.
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kTerms[] = {0.49999994f, 0.1666652f, 0.0416684f, 0.008368851f, 0.001381432f};
  const Vf shifted = x * 1.44269504f + kMagic;
  const Vf whole = shifted - kMagic;
  n = difference(bits(shifted), bits(splat(kMagic)));
  const Vf r = (x - whole * kLn2High) - whole * kLn2Low;
  return r + r * r * polynomial(r, kTerms);
}

inline Vf exp(Vf x) {
  // The bounds keep n in range; a NaN fails both comparisons and stays.
  x = x > 89.0f ? splat(89.0f) : x;
  x = x < -104.0f ? splat(-104.0f) : x;
  Vi n;
  const Vf y = reduced_expm1(x, n) + 1.0f;
  const Vi half = n >> 1;  // 2^n itself may be no float; two steps round a denormal result once.
  return y * power_of_two(half) * power_of_two(difference(n, half));
}

inline Vf expm1(Vf x) {
  const Vf given = x;
  x = x > 89.0f ? splat(89.0f) : x;
  x = x < -25.0f ? splat(-25.0f) : x;
  Vi n;
  const Vf y = reduced_expm1(x, n);
  const Vf scale = power_of_two(difference(n, Vi{} + 1));
  const Vf result = ((scale - 0.5f) + y * scale) * 2.0f;
  return given == 0.0f ? given : result;
}

inline Vf log(Vf x) {
  constexpr float kTerms[] = {0.3333333f,  -0.2500082f,  0.20001227f, -0.16623357f,
                              0.14201757f, -0.13160181f, 0.12761578f, -0.07634503f};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Vi denormal = x < std::numeric_limits<float>::min();
  const Vf scaled = denormal ? x * 8388608.0f : x;
  const Vi exponent =
      difference(bits(scaled), Vi{} + 0x3f3504f3) >> 23;  // Mantissa in [sqrt(1/2), sqrt(2)).
  const Vf f = floats(difference(bits(scaled), shifted_left(exponent, 23))) - 1.0f;
  const Vf e = __builtin_convertvector(exponent + (denormal & -23), Vf);
  const Vf square = f * f;
  Vf y = f * square * polynomial(f, kTerms);
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * square;
  y = (f + y) + e * 0.693359375f;
  y = x == 0.0f ? splat(-kInfinity) : y;
  y = x == kInfinity ? x : y;
  return (x >= 0.0f) ? y : splat(std::numeric_limits<float>::quiet_NaN());
}

/// log(1 + x) for x >= 0 and finite. The last term gives back what 1 + x lost.
inline Vf log1p_positive(Vf x) {
  const Vf u = x + 1.0f;
  return log(u) + (x - (u - 1.0f)) / u;
}

inline Vf sigmoid(Vf x) {
  const Vf e = exp(-abs(x));
  const Vf r = 1.0f / (1.0f + e);
  return x < 0.0f ? e * r : r;
}

inline Vf tanh(Vf x) {
  constexpr float kTerms[] = {-0.3333328f, 0.13331442f, -0.053739715f, 0.020639088f, -0.005704987f};
  const Vf square = x * x;
  const Vf small = x + x * square * polynomial(square, kTerms);
  Vf magnitude = abs(x);
  magnitude = magnitude > 10.0f ? splat(10.0f) : magnitude;
  const Vf large = 1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f);
  return magnitude < 0.625f ? small : with_sign(large, x);
}

inline Vf erf(Vf x) {
  constexpr float kSmall[] = {0.12837917f,   -0.37612626f,    0.112835854f,  -0.026853813f,
                              0.0051883277f, -0.00080101937f, 7.8538615e-05f};
  // log(erfc(x)) on [0.98, 4]; beyond, erf rounds to 1.
  constexpr float kLarge[] = {0.00018846829f, -1.1295803f,   -0.6332164f,    -0.1084221f,
                              0.025210341f,   -0.004205285f, 0.00044147274f, -2.169762e-05f};
  const Vf small = x + x * polynomial(x * x, kSmall);
  Vf magnitude = abs(x);
  magnitude = magnitude > 4.0f ? splat(4.0f) : magnitude;
  const Vf large = 1.0f - exp(polynomial(magnitude, kLarge));
  return magnitude < 1.0f ? small : with_sign(large, x);
}

/// log(1 + e^x) without overflow.
inline Vf softplus(Vf x) {
  const Vf tail = log1p_positive(exp(-abs(x)));
  return fast_max(x, Vf{}) + (x != x ? x : tail);
}

/// x tanh(softplus(x)), from (1 + e^x)^2 = 1 + t: tanh(log(1 + e^x)) = t / (t + 2).
inline Vf mish(Vf x) {
  const Vf e = exp(x > 20.0f ? splat(20.0f) : x);
  const Vf t = e * (e + 2.0f);
  return x > 20.0f ? x : x < -110.0f ? with_sign(Vf{}, x) : x * (t / (t + 2.0f));
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_MATH_HPP_
