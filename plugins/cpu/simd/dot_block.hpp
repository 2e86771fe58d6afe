// SPDX-License-Identifier: Apache-2.0
// The register block of products of words, whatever they hold: `Dot` multiplies. Included by
// simd/dot*.cpp only, each with a Dot of its own, so that no two copies can be merged by the linker.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_DOT_BLOCK_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_DOT_BLOCK_HPP_

#include <cstddef>
#include <utility>

#include "simd/dot.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

typedef int32_t ViUnaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vi load_words(const int32_t* p) { return *reinterpret_cast<const ViUnaligned*>(p); }
inline void store_words(int32_t* p, Vi v) { *reinterpret_cast<ViUnaligned*>(p) = v; }

// Sums, 2 vectors of B, 1 broadcast, and where Dot has a product to add, that too.
template <class Dot>
inline constexpr int kDotRows = kLanes == 16 ? 14 - Dot::kTemporaries : 6 - Dot::kTemporaries;

template <class Dot, int kBlockRows, int kVectors>
void dot_block(const DotBlock& x) {
  Vi sum[kBlockRows][kVectors] = {};
  const int32_t* a = x.a;
  const int32_t* b = x.b;
  for (int64_t k = 0; k < x.words; ++k) {
    Vi right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = load_words(b + int64_t{v} * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kBlockRows; ++r) {
      const Vi left = a[r] - Vi{};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Dot::add(sum[r][v], left, right[v]);
    }
    a += kBlockRows;
    b += x.b_row;
  }
  for (int r = 0; r < kBlockRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      store_words(x.sums + int64_t{r * 2 + v} * kLanes, sum[r][v]);
    }
  }
}

template <class Dot, int kVectors, size_t... kSizes>
void run_dot_block(const DotBlock& x, std::index_sequence<kSizes...> /*sizes*/) {
  static constexpr void (*kTable[])(const DotBlock&) = {
      dot_block<Dot, static_cast<int>(kSizes) + 1, kVectors>...};
  kTable[x.rows - 1](x);
}

template <class Dot>
void dot_blocks(const DotBlock& x) {
  constexpr auto kSizes = std::make_index_sequence<kDotRows<Dot>>();
  if (x.narrow) {
    run_dot_block<Dot, 1>(x, kSizes);
  } else {
    run_dot_block<Dot, 2>(x, kSizes);
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_DOT_BLOCK_HPP_
