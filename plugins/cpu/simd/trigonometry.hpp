// SPDX-License-Identifier: Apache-2.0
// Sine and cosine of float arrays, computed in double so that the reduction by pi/2 costs no
// accuracy. Loops are plain: the compiler vectorises them. Included by simd/*.cpp only.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_TRIGONOMETRY_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_TRIGONOMETRY_HPP_

#include <cmath>
#include <cstdint>
#include <cstring>

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

/// sin(x + quarter * pi/2) for |x| <= kTrigonometryLimit.
inline float sine_of_quarter(float given, int64_t quarter) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: leaves the integer in the low bits.
  constexpr double kHigh = 1.57079632673412561417;  // 33 bits of pi/2: times n it is exact.
  constexpr double kLow = 6.07710050650619224932e-11;
  const double x = static_cast<double>(given);
  const double shifted = x * 0.63661977236758134308 + kMagic;
  const double n = shifted - kMagic;
  int64_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  const int64_t q = bits + quarter;
  const double r = (x - n * kHigh) - n * kLow;
  const double z = r * r;
  const double sine =
      r * (1 + z * (-0.16666667 + z * (0.008333329 + z * (-0.00019839304 + z * 2.7180465e-06))));
  const double cosine =
      1 - z * 0.5 + z * z * (0.041666646 + z * (-0.001388731 + z * 2.4432413e-05));
  // Chosen by bits: the compiler vectorises no branch on doubles.
  int64_t odd, even;
  std::memcpy(&odd, &cosine, sizeof(odd));
  std::memcpy(&even, &sine, sizeof(even));
  const int64_t mask = -(q & 1);
  const int64_t chosen =
      ((odd & mask) | (even & ~mask)) ^ static_cast<int64_t>(static_cast<uint64_t>(q & 2) << 62);
  double value;
  std::memcpy(&value, &chosen, sizeof(value));
  return static_cast<float>(value);
}

/// Beyond it n loses the exactness of its product.
inline constexpr float kTrigonometryLimit = 1.0e6f;

template <int Quarter, float (*Library)(float)>
void trigonometry(const float* x, float* y, int64_t n) {
  constexpr int64_t kRun = 64;
  for (int64_t start = 0; start < n; start += kRun) {
    const int64_t count = n - start < kRun ? n - start : kRun;
    const float* from = x + start;
    float* to = y + start;
    int beyond = 0;
    for (int64_t i = 0; i < count; ++i) beyond |= !(std::fabs(from[i]) <= kTrigonometryLimit);
    if (beyond != 0) {  // Also NaN and infinity.
      for (int64_t i = 0; i < count; ++i) to[i] = Library(from[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = sine_of_quarter(from[i], Quarter);
    }
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_TRIGONOMETRY_HPP_
