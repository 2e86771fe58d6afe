// SPDX-License-Identifier: Apache-2.0
// Products of bytes that were widened to 16 bits: every x86 level adds pairs of such products
// without saturation.
#include "simd/dot.hpp"

#include "simd/dot_block.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

struct Halves {
#if defined(__SSE2__)
  static constexpr int kTemporaries = kLanes == 16 ? 0 : 1;
#else
  static constexpr int kTemporaries = 0;
#endif
  static Vi add(Vi sum, Vi a, Vi b) {
#if defined(__AVX512BW__)
    return Vi(Vu(sum) +
              Vu(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b))));
#elif defined(__AVX2__)
    return Vi(Vu(sum) +
              Vu(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b))));
#elif defined(__SSE2__)
    return Vi(Vu(sum) +
              Vu(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b))));
#else
    const Vi low = Vi(Vu(a) << 16) >> 16, high = a >> 16;
    const Vi right_low = Vi(Vu(b) << 16) >> 16, right_high = b >> 16;
    return Vi(Vu(sum) + Vu(low * right_low) + Vu(high * right_high));
#endif
  }
};

template <class Byte>
int32_t half_word(const Byte* low, const Byte* high) {
  const uint32_t upper = high != nullptr ? static_cast<uint32_t>(static_cast<int32_t>(*high)) : 0;
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(*low)) | upper << 16);
}

template <class Byte>
void pack_halves(const DotRows& x) {
  const auto* low = reinterpret_cast<const Byte*>(x.rows[0]);
  const auto* high = reinterpret_cast<const Byte*>(x.count > 1 ? x.rows[1] : nullptr);
  if (high != nullptr && x.step == 1 && x.to_step == 1) {
    int32_t* __restrict to = x.words;
    for (int64_t i = 0; i < x.n; ++i) to[i] = half_word(low + i, high + i);
    return;
  }
  for (int64_t i = 0; i < x.n; ++i) {
    const int64_t at = i * x.step;
    x.words[i * x.to_step] = half_word(low + at, high != nullptr ? high + at : nullptr);
  }
}

void pack(const DotRows& x) { x.code.is_signed ? pack_halves<int8_t>(x) : pack_halves<uint8_t>(x); }

template <class Byte>
int32_t sum_of(const Byte* from, int64_t step, int64_t n) {
  uint32_t sum = 0;
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) sum += static_cast<uint32_t>(static_cast<int32_t>(from[i]));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      sum += static_cast<uint32_t>(static_cast<int32_t>(from[i * step]));
    }
  }
  return static_cast<int32_t>(sum);
}

}  // namespace

const DotIsa& dot_isa_halves() {
  static constexpr DotIsa kIsa = {kDotRows<Halves>,   2 * kLanes,         kLanes, 2,
                                  dot_blocks<Halves>, dot_blocks<Halves>, pack};
  return kIsa;
}

int32_t dot_sum(const uint8_t* from, int64_t step, int64_t n, bool is_signed) {
  return is_signed ? sum_of(reinterpret_cast<const int8_t*>(from), step, n) : sum_of(from, step, n);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
