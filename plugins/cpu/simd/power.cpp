// SPDX-License-Identifier: Apache-2.0
// x to the power y for float arrays, with C's rules for signs, zeros, infinities and NaN. The
// magnitude is 2^(y log2 |x|) in double, so the result is off by little more than its rounding; half
// a float vector fills one of doubles. Exponents that models use are done by multiplying.
// build: fp-contract=fast
#include <cmath>
#include <limits>
#include <utility>

#include "simd/binary.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

typedef double Vd __attribute__((vector_size(kLanes * 4)));
typedef int64_t Vl __attribute__((vector_size(kLanes * 4)));
typedef uint64_t Vul __attribute__((vector_size(kLanes * 4)));
typedef float VfHalf __attribute__((vector_size(kLanes * 2)));

/// c[0] + c[1] x + …, in pairs of pairs: a chain as long as Horner's would be what the whole waits for.
template <int N>
Vd polynomial(Vd x, const double (&c)[N]) {
  Vd sums[(N + 1) / 2];
  for (int i = 0; i < (N + 1) / 2; ++i) {
    sums[i] = 2 * i + 1 < N ? x * c[2 * i + 1] + c[2 * i] : Vd{} + c[2 * i];
  }
  for (int n = (N + 1) / 2; n > 1; n = (n + 1) / 2) {
    x = x * x;
    for (int i = 0; i < (n + 1) / 2; ++i) {
      sums[i] = 2 * i + 1 < n ? sums[2 * i + 1] * x + sums[2 * i] : sums[2 * i];
    }
  }
  return sums[0];
}

/// log2 of doubles that are floats above 0 and finite, to 2^-40 of itself: log2((1 + s) / (1 - s)).
Vd log2_of_float(Vd x) {
  constexpr double kTerms[] = {2.88539008177792681, 0.96179669392597560, 0.57707801635558536,
                               0.41219858311113240, 0.32059889797532520, 0.26230818925253880,
                               0.22195308321368668};
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  constexpr uint64_t kBias = uint64_t{1024} << 52;
  const Vul bits = reinterpret_cast<Vul>(x);
  const Vul places = bits - kRootHalf + kBias;  // Mantissa in [sqrt(1/2), sqrt(2)).
  // An exponent of 52 leaves the integer in the low bits.
  const Vd exponent =
      reinterpret_cast<Vd>((places >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1024.0);
  const Vd m = reinterpret_cast<Vd>(bits - (places & 0xfff0000000000000) + kBias);
  const Vd s = (m - 1.0) / (m + 1.0);
  return exponent + s * polynomial(s * s, kTerms);
}

/// 2^x for |x| <= 1000, to 2^-32 of itself.
Vd exp2(Vd x) {
  constexpr double kTerms[] = {1.0,
                               0.69314718055994531,
                               0.24022650695910072,
                               0.055504108664821580,
                               0.0096181291076284772,
                               0.0013333558146428443,
                               0.00015403530393381610,
                               1.5252733804059840e-05,
                               1.3215486790144309e-06};
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: the integer is in the low bits.
  const Vd shifted = x + kMagic;
  const Vd fraction = x - (shifted - kMagic);
  const Vul scale = reinterpret_cast<Vul>(shifted) << 52;  // Added to the exponent of [0.7, 1.42].
  return reinterpret_cast<Vd>(reinterpret_cast<Vul>(polynomial(fraction, kTerms)) + scale);
}

/// |x|^y in double for half a vector, if x is above 0 and finite and y finite.
Vd usual_power(Vd x, Vd y) {
  Vd product = y * log2_of_float(x);
  product = product > 300.0 ? Vd{} + 300.0 : product;  // Beyond the range of float.
  product = product < -300.0 ? Vd{} - 300.0 : product;
  return exp2(product);
}

/// The same for any x that is not negative, and any y.
Vd any_power(Vd x, Vd y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Vd log = log2_of_float(x);
  log = x == 0.0 ? Vd{} - kInfinity : log;
  log = x == kInfinity ? x : log;
  log = x == x ? log : x;
  Vd product = y * log;
  product = product > 300.0 ? Vd{} + 300.0 : product;
  product = product < -300.0 ? Vd{} - 300.0 : product;
  const Vd result = product == product ? exp2(product) : product;
  return y == 0.0 ? Vd{} + 1.0 : result;
}

using HalfLanes = std::make_integer_sequence<int, kLanes / 2>;

// Halves are taken in registers: through memory, ASan's frames do not keep the alignment that g++ 12
// relies on.
template <int... I>
Vd lower(Vf x, std::integer_sequence<int, I...>) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, I...), Vd);
}
template <int... I>
Vd upper(Vf x, std::integer_sequence<int, I...>) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, (kLanes / 2 + I)...), Vd);
}
template <int... I>
Vf joined(Vd low, Vd high, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(__builtin_convertvector(low, VfHalf),
                                 __builtin_convertvector(high, VfHalf), I...);
}

template <Vd (*F)(Vd, Vd)>
Vf by_halves(Vf x, Vf y) {
  const HalfLanes half;
  return joined(F(lower(x, half), lower(y, half)), F(upper(x, half), upper(y, half)),
                std::make_integer_sequence<int, kLanes>{});
}

Vf power(Vf x, Vf y) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (all((x > 0.0f) & (x < kInfinity) & (abs(y) < kInfinity))) return by_halves<usual_power>(x, y);
  const Vf size = abs(x);
  Vf result = by_halves<any_power>(size, y);
  const Vf half = y * 0.5f;
  const Vi whole = rint(y) == y;  // Infinities count, as even ones.
  const Vi odd = whole & (rint(half) != half);
  result = floats(bits(result) | (bits(x) & INT32_MIN & odd));
  const Vi no_real = (x < 0.0f) & (size != kInfinity) & ~whole & (y == y);
  result = no_real ? splat(std::numeric_limits<float>::quiet_NaN()) : result;
  // 1 to any power, and -1 to an infinite one.
  const Vi one = (x == 1.0f) | ((size == 1.0f) & (abs(y) == kInfinity));
  return one ? splat(1.0f) : result;
}

/// Two doubles to a vector do not pay: the C library looks up tables instead.
constexpr bool kVectorsPay = kLanes > 4;

void general(const float* a, const float* b, float* c, int64_t n, Operands operands) {
  if (!kVectorsPay) {
    const int64_t step_a = operands == Operands::kScalarLeft ? 0 : 1;
    const int64_t step_b = operands == Operands::kScalarRight ? 0 : 1;
    for (int64_t i = 0; i < n; ++i) c[i] = std::pow(a[i * step_a], b[i * step_b]);
  } else if (operands == Operands::kBoth) {
    map(a, b, c, n, power);
  } else if (operands == Operands::kScalarRight) {
    map(a, c, n, [y = splat(*b)](Vf x) { return power(x, y); });
  } else {
    map(b, c, n, [x = splat(*a)](Vf y) { return power(x, y); });
  }
}

}  // namespace

void power_f32(const float* a, const float* b, float* c, int64_t n, Operands operands) {
  if (operands == Operands::kScalarRight) {
    const float exponent = *b;
    if (exponent == 2.0f) return map(a, c, n, [](Vf x) { return x * x; });
    if (exponent == 3.0f) return map(a, c, n, [](Vf x) { return x * x * x; });
    if (exponent == 1.0f) return map(a, c, n, [](Vf x) { return x; });
    if (exponent == -1.0f) return map(a, c, n, [](Vf x) { return 1.0f / x; });
    if (exponent == 0.5f) {
      return map(a, c, n, [](Vf x) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        return x == -kInfinity ? splat(kInfinity) : sqrt(x + 0.0f);  // pow(-0, 0.5) is +0.
      });
    }
  }
  general(a, b, c, n, operands);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
