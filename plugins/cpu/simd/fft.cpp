// SPDX-License-Identifier: Apache-2.0
// Cooley and Tukey's transform by halves, with lines in the lanes of vectors.
// build: fp-contract=fast
#include "simd/fft.hpp"

#include <algorithm>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

template <int kLines>
void reverse_bits(double* x, int64_t n) {
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap_ranges(x + i * 2 * kLines, x + (i + 1) * 2 * kLines, x + j * 2 * kLines);
  }
}

/// As many lines as fit a vector, or one: GNU vectors and doubles share their operators.
template <int kLines>
struct Group {
  typedef double V __attribute__((vector_size(kLanes * 4)));
  static constexpr int kSize = kLanes / 2;
  static V load(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(double* p, V v) { std::memcpy(p, &v, sizeof(v)); }
};
template <>
struct Group<1> {
  static constexpr int kSize = 1;
  static double load(const double* p) { return *p; }
  static void store(double* p, double v) { *p = v; }
};

template <int kLines>
void butterfly(double* low, double* high, double real, double imaginary) {
  using G = Group<kLines>;
  for (int i = 0; i < kLines; i += G::kSize) {
    const auto x = G::load(high + i), y = G::load(high + kLines + i);
    const auto p = G::load(low + i), q = G::load(low + kLines + i);
    const auto a = x * real - y * imaginary, b = x * imaginary + y * real;
    G::store(low + i, p + a);
    G::store(low + kLines + i, q + b);
    G::store(high + i, p - a);
    G::store(high + kLines + i, q - b);
  }
}

template <int kLines>
void transform(double* x, int64_t n, const double* roots, bool inverse) {
  constexpr int64_t kSize = 2 * kLines;
  reverse_bits<kLines>(x, n);
  const double sign = inverse ? -1 : 1;
  for (int64_t half = 1; half < n; half *= 2) {
    const double* of_stage = roots + 2 * (half - 1);
    for (int64_t first = 0; first < n; first += 2 * half) {
      double* low = x + first * kSize;
      for (int64_t k = 0; k < half; ++k, low += kSize) {
        butterfly<kLines>(low, low + half * kSize, of_stage[2 * k], sign * of_stage[2 * k + 1]);
      }
    }
  }
}

template <int kLines>
void multiply(double* x, int64_t n, const double* factors) {
  using G = Group<kLines>;
  for (int64_t k = 0; k < n; ++k, x += 2 * kLines) {
    const double real = factors[2 * k], imaginary = factors[2 * k + 1];
    for (int i = 0; i < kLines; i += G::kSize) {
      const auto a = G::load(x + i), b = G::load(x + kLines + i);
      G::store(x + i, a * real - b * imaginary);
      G::store(x + kLines + i, a * imaginary + b * real);
    }
  }
}

}  // namespace

FftFunctions fft_functions(bool one_line) {
  if (one_line) return {transform<1>, multiply<1>};
  return {transform<kFftLines>, multiply<kFftLines>};
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
