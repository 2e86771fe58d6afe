// SPDX-License-Identifier: Apache-2.0
// A vector of 32-bit integers from as many bytes, and back. The compiler's own conversion of vectors
// goes element by element. Included by simd/*.cpp only.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BYTES_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BYTES_HPP_

#include <cstdint>
#include <cstring>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

/// kLanes bytes, which are signed or not, widened.
template <bool kSigned>
Vi load_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  __m128i bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return reinterpret_cast<Vi>(kSigned ? _mm512_maskz_cvtepi8_epi32(kAll, bytes)
                                      : _mm512_maskz_cvtepu8_epi32(kAll, bytes));
#elif defined(__SSE4_1__)
  int64_t some = 0;
  std::memcpy(&some, from, kLanes);
  const __m128i bytes = _mm_cvtsi64_si128(some);
#if defined(__AVX2__)
  return reinterpret_cast<Vi>(kSigned ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
#else
  return reinterpret_cast<Vi>(kSigned ? _mm_cvtepi8_epi32(bytes) : _mm_cvtepu8_epi32(bytes));
#endif
#else
  Vi out;
  for (int i = 0; i < kLanes; ++i) out[i] = kSigned ? static_cast<int8_t>(from[i]) : from[i];
  return out;
#endif
}

/// The low bytes of n <= kLanes elements.
inline void store_low_bytes(uint8_t* to, Vi v, int64_t n) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(kAll, reinterpret_cast<__m512i>(v));
#elif defined(__SSE4_1__)
  const __m128i pick = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
#if defined(__AVX2__)
  const auto wide = reinterpret_cast<__m256i>(v);
  const __m128i low = _mm_shuffle_epi8(_mm256_castsi256_si128(wide), pick);
  const __m128i high = _mm_shuffle_epi8(_mm256_extracti128_si256(wide, 1), pick);
  const __m128i bytes = _mm_unpacklo_epi32(low, high);
#else
  const __m128i bytes = _mm_shuffle_epi8(reinterpret_cast<__m128i>(v), pick);
#endif
#else
  uint8_t bytes[kLanes];
  for (int i = 0; i < kLanes; ++i) bytes[i] = static_cast<uint8_t>(v[i]);
#endif
  if (n >= kLanes) {  // A size that the compiler knows.
    std::memcpy(to, &bytes, kLanes);
  } else {
    std::memcpy(to, &bytes, static_cast<size_t>(n));
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BYTES_HPP_
