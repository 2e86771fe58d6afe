// SPDX-License-Identifier: Apache-2.0
// build: avx512 also has -mavx512vnni
// Products of bytes by the VNNI instruction, which adds four of them to a lane without saturation.
// Only the avx512 copy has it, and only the level avx512_vnni calls it.
#include "simd/dot.hpp"

#if defined(__AVX512VNNI__)
#include <cstring>

#include "simd/dot_block.hpp"
#endif

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

#if defined(__AVX512VNNI__)
namespace {

struct AUnsigned {
  static constexpr int kTemporaries = 0;
  static Vi add(Vi sum, Vi a, Vi b) {
    return reinterpret_cast<Vi>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                    reinterpret_cast<__m512i>(a),
                                                    reinterpret_cast<__m512i>(b)));
  }
};
struct ASigned {
  static constexpr int kTemporaries = 0;
  static Vi add(Vi sum, Vi a, Vi b) { return AUnsigned::add(sum, b, a); }
};

/// The rows given; the parts of the others stay zero.
template <int kCount>
void pack_bytes(const DotRows& x) {
  const uint8_t flip = x.code.flip ? 0x80 : 0;
  for (int64_t i = 0; i < x.n; ++i) {
    uint32_t word = 0;
#pragma GCC unroll 4
    for (int part = 0; part < kCount; ++part) {
      const auto byte = static_cast<uint8_t>(x.rows[part][i * x.step] ^ flip);
      word |= static_cast<uint32_t>(byte) << (8 * part);
    }
    x.words[i * x.to_step] = static_cast<int32_t>(word);
  }
}

/// Four planes side by side, as images and rows of B come.
void pack_planes(const DotRows& x) {
  const uint32_t flip = x.code.flip ? 0x80808080U : 0;
  const uint8_t* const r0 = x.rows[0];
  const uint8_t* const r1 = x.rows[1];
  const uint8_t* const r2 = x.rows[2];
  const uint8_t* const r3 = x.rows[3];
  int32_t* __restrict to = x.words;
  for (int64_t i = 0; i < x.n; ++i) {
    const uint32_t word = static_cast<uint32_t>(r0[i]) | static_cast<uint32_t>(r1[i]) << 8 |
                          static_cast<uint32_t>(r2[i]) << 16 | static_cast<uint32_t>(r3[i]) << 24;
    to[i] = static_cast<int32_t>(word ^ flip);
  }
}

void pack(const DotRows& x) {
  if (x.count == 4) {
    const bool planes = x.step == 1 && x.to_step == 1;
    const bool run = x.step == 4 && x.rows[3] == x.rows[0] + 3 && x.rows[1] == x.rows[0] + 1;
    if (planes) {
      pack_planes(x);
    } else if (run) {  // Four bytes in a row are a word already.
      const uint32_t flip = x.code.flip ? 0x80808080U : 0;
      for (int64_t i = 0; i < x.n; ++i) {
        uint32_t word = 0;
        std::memcpy(&word, x.rows[0] + 4 * i, sizeof(word));
        x.words[i * x.to_step] = static_cast<int32_t>(word ^ flip);
      }
    } else {
      pack_bytes<4>(x);
    }
  } else if (x.count == 3) {
    pack_bytes<3>(x);
  } else if (x.count == 2) {
    pack_bytes<2>(x);
  } else {
    pack_bytes<1>(x);
  }
}

}  // namespace

const DotIsa* dot_isa_bytes() {
  static constexpr DotIsa kIsa = {kDotRows<ASigned>,     2 * kLanes,          kLanes, 4,
                                  dot_blocks<AUnsigned>, dot_blocks<ASigned>, pack};
  return &kIsa;
}
#else
const DotIsa* dot_isa_bytes() { return nullptr; }
#endif

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
