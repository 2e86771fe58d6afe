// SPDX-License-Identifier: Apache-2.0
// One float vector of the level that is being compiled, with the few operations that the language
// does not have. Everything stands in the level's namespace, so no two copies can be merged by the
// linker. Included by simd/*.cpp only.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_VECTOR_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_VECTOR_HPP_

#include <cstdint>
#include <cstring>

#if defined(__SSE4_1__)
#include <immintrin.h>
#else
#include <cmath>
#endif

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float Vf __attribute__((vector_size(kLanes * 4)));
typedef int32_t Vi __attribute__((vector_size(kLanes * 4)));
typedef uint32_t Vu __attribute__((vector_size(kLanes * 4)));
typedef float VfUnaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vf load(const float* p) { return *reinterpret_cast<const VfUnaligned*>(p); }
inline void store(float* p, Vf v) { *reinterpret_cast<VfUnaligned*>(p) = v; }
inline Vf splat(float x) { return x - Vf{}; }
/// The first `n` < kLanes elements; the rest are `fill`.
inline Vf load_part(const float* p, int64_t n, float fill = 0.0f) {
  float parts[kLanes];
  for (int i = 0; i < kLanes; ++i) parts[i] = i < n ? p[i] : fill;
  return load(parts);
}
inline void store_part(float* p, Vf v, int64_t n) {
  float parts[kLanes];
  store(parts, v);
  for (int64_t i = 0; i < n; ++i) p[i] = parts[i];
}

inline Vi bits(Vf v) { return reinterpret_cast<Vi>(v); }
inline Vf floats(Vi v) { return reinterpret_cast<Vf>(v); }
/// Integer arithmetic that wraps, as the bits of a NaN need it.
inline Vi difference(Vi a, Vi b) { return Vi(Vu(a) - Vu(b)); }
inline Vi shifted_left(Vi a, int n) { return Vi(Vu(a) << n); }
inline Vf abs(Vf v) { return floats(bits(v) & 0x7fffffff); }
/// Magnitude of `v` (which must not be negative) with the sign of `sign`.
inline Vf with_sign(Vf v, Vf sign) { return floats(bits(v) | (bits(sign) & INT32_MIN)); }
/// IEEE max and min where a NaN in either operand gives NaN.
inline Vf max(Vf a, Vf b) { return ((a >= b) | (a != a)) ? a : b; }
inline Vf min(Vf a, Vf b) { return ((a <= b) | (a != a)) ? a : b; }
/// Cheaper; gives `b` if either is NaN.
inline Vf fast_max(Vf a, Vf b) { return a > b ? a : b; }
inline Vf fast_min(Vf a, Vf b) { return a < b ? a : b; }

// Rounding modes of the x86 instruction: 8 = without the inexact flag.
#if defined(__AVX512F__)
// GCC 12 warns about the undefined source operand inside the unmasked forms.
inline constexpr __mmask16 kAll = 0xffff;
inline Vf sqrt(Vf v) { return _mm512_maskz_sqrt_ps(kAll, v); }
inline Vf rint(Vf v) { return _mm512_maskz_roundscale_ps(kAll, v, 8); }
inline Vf floor(Vf v) { return _mm512_maskz_roundscale_ps(kAll, v, 9); }
inline Vf ceil(Vf v) { return _mm512_maskz_roundscale_ps(kAll, v, 10); }
#elif defined(__AVX2__)
inline Vf sqrt(Vf v) { return _mm256_sqrt_ps(v); }
inline Vf rint(Vf v) { return _mm256_round_ps(v, 8); }
inline Vf floor(Vf v) { return _mm256_round_ps(v, 9); }
inline Vf ceil(Vf v) { return _mm256_round_ps(v, 10); }
#elif defined(__SSE4_1__)
inline Vf sqrt(Vf v) { return _mm_sqrt_ps(v); }
inline Vf rint(Vf v) { return _mm_round_ps(v, 8); }
inline Vf floor(Vf v) { return _mm_round_ps(v, 9); }
inline Vf ceil(Vf v) { return _mm_round_ps(v, 10); }
#else
template <class F>
Vf lanewise(Vf v, F f) {
  for (int i = 0; i < kLanes; ++i) v[i] = f(v[i]);
  return v;
}
inline Vf sqrt(Vf v) {
  return lanewise(v, [](float x) { return std::sqrt(x); });
}
inline Vf rint(Vf v) {
  return lanewise(v, [](float x) { return std::nearbyint(x); });
}
inline Vf floor(Vf v) {
  return lanewise(v, [](float x) { return std::floor(x); });
}
inline Vf ceil(Vf v) {
  return lanewise(v, [](float x) { return std::ceil(x); });
}
#endif

/// Writes past the caches where the level can and `p` is aligned; else as store.
inline void stream(float* p, Vf v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, v);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, v);
#elif defined(__SSE4_1__)
  _mm_stream_ps(p, v);
#else
  store(p, v);
#endif
}
/// Makes streamed writes visible in order; call once after the last one.
inline void stream_fence() {
#if defined(__SSE4_1__)
  _mm_sfence();
#endif
}

/// Of comparisons, whose lanes are 0 or -1.
inline bool any(Vi truths) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(__m512i(truths), __m512i(truths)) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256(__m256i(truths), __m256i(truths)) == 0;
#elif defined(__SSE4_1__)
  return _mm_testz_si128(__m128i(truths), __m128i(truths)) == 0;
#else
  bool some = false;
  for (int i = 0; i < kLanes; ++i) some = some || truths[i] != 0;
  return some;
#endif
}
inline bool all(Vi truths) { return !any(~truths); }

/// Lanes are added in halves, so the order is fixed and the error small.
inline float sum_lanes(Vf v) {
  float parts[kLanes];
  store(parts, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}
/// Folds lanes with a binary function of vectors.
template <class F>
float fold_lanes(Vf v, F f) {
  float parts[kLanes];
  store(parts, v);
  Vf all = splat(parts[0]);
  for (int i = 1; i < kLanes; ++i) all = f(all, splat(parts[i]));
  return all[0];
}

/// y[i] = f(x[i]). x and y are equal or apart. The last vector is computed first and stored last,
/// so that it may overlap the one before it even in place.
template <class F>
void map(const float* x, float* y, int64_t n, F f) {
  if (n < kLanes) {
    if (n > 0) store_part(y, f(load_part(x, n)), n);
    return;
  }
  const Vf last = f(load(x + n - kLanes));
  for (int64_t i = 0; i < n - kLanes; i += kLanes) store(y + i, f(load(x + i)));
  store(y + n - kLanes, last);
}

/// c[i] = f(a[i], b[i]) with the same rule.
template <class F>
void map(const float* a, const float* b, float* c, int64_t n, F f) {
  if (n < kLanes) {
    if (n > 0) store_part(c, f(load_part(a, n, 1.0f), load_part(b, n, 1.0f)), n);
    return;
  }
  const Vf last = f(load(a + n - kLanes), load(b + n - kLanes));
  for (int64_t i = 0; i < n - kLanes; i += kLanes) store(c + i, f(load(a + i), load(b + i)));
  store(c + n - kLanes, last);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_VECTOR_HPP_
