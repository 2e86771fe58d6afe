// SPDX-License-Identifier: Apache-2.0
// Half types to float and back. The F16C instructions do float16 where the level has them; the
// integer form below serves the rest and all tails, and agrees with them in every bit but a NaN's
// payload.
#include "simd/convert.hpp"

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, sizeof(u));
  return u;
}
float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, sizeof(x));
  return x;
}

float widen_one(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  // A product with 2^112 moves the exponent's bias and makes denormals normal.
  const float scaled = float_of(rest << 13) * float_of(0x77800000u);
  const uint32_t magnitude =
      rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : bits_of(scaled);
  return float_of(sign | magnitude);
}

uint16_t narrow_one(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t sign = u >> 16 & 0x8000u;
  const uint32_t rest = u & 0x7fffffffu;
  // Below 2^-14 the sum with 0.5 puts the rounded mantissa into the low bits.
  const uint32_t denormal = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  uint32_t half = rest < 0x38800000u ? denormal : normal;
  half = rest >= 0x47800000u ? 0x7c00u : half;
  half = rest > 0x7f800000u ? 0x7e00u : half;
  return static_cast<uint16_t>(sign | half);
}

}  // namespace

void widen_f16(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    store(y + i,
          _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    store(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < n; ++i) y[i] = widen_one(x[i]);
}

void narrow_f16(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i),
                        _mm512_maskz_cvtps_ph(kAll, load(x + i), 0));
  }
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_cvtps_ph(load(x + i), 0));
  }
#endif
  for (; i < n; ++i) y[i] = narrow_one(x[i]);
}

void widen_bf16(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = float_of(static_cast<uint32_t>(x[i]) << 16);
}

void narrow_bf16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t u = bits_of(x[i]);
    const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    y[i] = static_cast<uint16_t>(nan ? (u >> 16 & 0x8000u) | 0x7fc0u : rounded);
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
