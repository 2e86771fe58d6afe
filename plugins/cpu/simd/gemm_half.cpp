// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Products of floats with a right operand of halves, which are widened on their way into registers:
// the bits of simd/gemm.cpp, for half of what it reads. For a few rows of A, where reading is all.
#include "simd/gemm_half.hpp"

#if defined(__SSE4_1__)
#include "simd/gemm_block.hpp"
#endif

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

#if defined(__SSE4_1__)
namespace {

using Halves = const unsigned char*;

Vf widen_bf16_lanes(Halves from) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return floats(shifted_left(Vi(_mm512_maskz_cvtepu16_epi32(kAll, halves)), 16));
#elif defined(__AVX2__)
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return floats(shifted_left(Vi(_mm256_cvtepu16_epi32(halves)), 16));
#else
  const __m128i halves = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return floats(shifted_left(Vi(_mm_cvtepu16_epi32(halves)), 16));
#endif
}

#if defined(__F16C__)
Vf widen_f16_lanes(Halves from) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_maskz_cvtph_ps(kAll, halves);
#else
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
}
#endif

template <Vf (*kWiden)(Halves)>
struct WidenRight {
  using Element = float;
  using V = GemmVector<float>::Type;
  static V broadcast(const float* x) { return *x - V{}; }
  static V right(const float* b, int v) {
    return kWiden(reinterpret_cast<Halves>(b) + int64_t{v} * kLanes * 2);
  }
  static V add(V sum, V left, V right) { return sum + left * right; }
};

}  // namespace

const GemmIsa<float>* gemm_isa_bf16_right() {
  static constexpr GemmIsa<float> kIsa = gemm_isa_of<WidenRight<widen_bf16_lanes>>();
  return &kIsa;
}
#else
const GemmIsa<float>* gemm_isa_bf16_right() { return nullptr; }
#endif

#if defined(__F16C__)
const GemmIsa<float>* gemm_isa_f16_right() {
  static constexpr GemmIsa<float> kIsa = gemm_isa_of<WidenRight<widen_f16_lanes>>();
  return &kIsa;
}
#else
const GemmIsa<float>* gemm_isa_f16_right() { return nullptr; }
#endif

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
