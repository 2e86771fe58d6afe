// SPDX-License-Identifier: Apache-2.0
// build: avx512 also has -mavx512bf16
// Products of bfloat16 by the instruction that adds two of them to a float. It takes denormals as
// zero. Only the avx512 copy has it, and only the level avx512_bf16 calls it.
#include "simd/gemm_half.hpp"

#if defined(__AVX512BF16__)
#include "simd/gemm_block.hpp"
#else
#include <cstring>
#endif

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

uint32_t bits_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

}  // namespace

#if defined(__AVX512BF16__)
namespace {

struct AddPairs {
  using Element = float;
  using V = GemmVector<float>::Type;
  static V broadcast(const float* words) {
    int32_t word = 0;  // As an integer: a float would lose the bits of some NaN.
    std::memcpy(&word, words, sizeof(word));
    return reinterpret_cast<V>(word - Vi{});
  }
  static V right(const float* b, int v) { return gemm_load<AddPairs>(b + int64_t{v} * kLanes); }
  static V add(V sum, V left, V right) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(left),
                            reinterpret_cast<__m512bh>(right));
  }
};

}  // namespace

const GemmIsa<float>* gemm_isa_pairs() {
  static constexpr GemmIsa<float> kIsa = gemm_isa_of<AddPairs>();
  return &kIsa;
}
#else
const GemmIsa<float>* gemm_isa_pairs() { return nullptr; }
#endif

void pair_rows(const uint16_t* low, const uint16_t* high, int64_t n, float* words) {
  // Stored as integers for the same reason.
  auto* to = reinterpret_cast<unsigned char*>(words);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t upper = high != nullptr ? static_cast<uint32_t>(high[i]) << 16 : 0;
    const uint32_t word = upper | low[i];
    std::memcpy(to + i * 4, &word, sizeof(word));
  }
}

void pair_floats(const float* low, const float* high, int64_t n, float* words) {
  auto* to = reinterpret_cast<unsigned char*>(words);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t upper = high != nullptr ? bits_of(high[i]) & 0xffff0000u : 0;
    const uint32_t word = upper | bits_of(low[i]) >> 16;
    std::memcpy(to + i * 4, &word, sizeof(word));
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
