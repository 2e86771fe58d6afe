// SPDX-License-Identifier: Apache-2.0
// The register block of matrix multiplication, whatever an element of A and B holds: `Step` has the
// type of the sums as Element, and broadcast(), right() and add(). Each sum is one chain over k, so a result does
// not depend on how work was split. Included by simd/gemm*.cpp only, each with Steps of its own, so
// that no two copies can be merged by the linker.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_BLOCK_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_BLOCK_HPP_

#include <cstddef>
#include <cstring>
#include <utility>

#include "simd/gemm.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {

inline constexpr int kVectorBytes = kLanes * static_cast<int>(sizeof(float));
// Sums, 2 vectors of B, 1 broadcast: 31 of the 32 registers that come with 16 lanes, 15 of 16.
inline constexpr int kGemmRows = kLanes == 16 ? 14 : 6;

template <class T>
struct GemmVector {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
};

template <class Step>
typename GemmVector<typename Step::Element>::Type gemm_load(const typename Step::Element* from) {
  return *reinterpret_cast<const typename GemmVector<typename Step::Element>::Loose*>(from);
}
template <class Step>
void gemm_store(typename Step::Element* to,
                typename GemmVector<typename Step::Element>::Type value) {
  *reinterpret_cast<typename GemmVector<typename Step::Element>::Loose*>(to) = value;
}

/// Everything a block needs beside its size.
template <class T>
struct GemmBlock {
  const T* a;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t k;
  int cols;
  const T* start;
  const T* bias;
  const T* column_bias;
  const T* clamp;
};

// All loops over sums are unrolled, so that no sum ever leaves its register.
#define CHIPDOCK_UNROLLED _Pragma("GCC unroll 16")

/// A block whose rows of C hold all columns of the panel.
template <class Step, int kBlockRows, int kVectors>
void whole_gemm_block(const GemmBlock<typename Step::Element>& x) {
  using T = typename Step::Element;
  using V = typename GemmVector<T>::Type;
  constexpr int kWidth = GemmVector<T>::kWidth;
  V sum[kBlockRows][kVectors];
  if (x.start == nullptr) {
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      const T bias = x.bias != nullptr ? x.bias[r] : T(0);
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) sum[r][v] = bias - V{};
    }
  } else {
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = gemm_load<Step>(x.start + r * x.c_row + v * kWidth);
        if (x.bias != nullptr) sum[r][v] += x.bias[r];  // 0 + x would be no -0 where x is.
      }
    }
  }
  if (x.column_bias != nullptr) {
    CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
      const V bias = gemm_load<Step>(x.column_bias + v * kWidth);
      CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) sum[r][v] += bias;
    }
  }
  const T* a = x.a;
  const T* b = x.b;
  for (int64_t k = 0; k < x.k; ++k) {
    V right[kVectors];
    CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) right[v] = Step::right(b, v);
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      const V left = Step::broadcast(a + r);
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Step::add(sum[r][v], left, right[v]);
      }
    }
    a += kBlockRows;
    b += x.b_row;
  }
  if (x.clamp != nullptr) {
    const V low = x.clamp[0] - V{};
    const V high = x.clamp[1] - V{};
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
        const V raised = low > sum[r][v] ? low : sum[r][v];
        sum[r][v] = high < raised ? high : raised;
      }
    }
  }
  CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
    CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
      gemm_store<Step>(x.c + r * x.c_row + v * kWidth, sum[r][v]);
    }
  }
}

#undef CHIPDOCK_UNROLLED

/// Any block: one that ends inside the panel is computed apart and copied.
template <class Step, int kBlockRows, int kVectors>
void gemm_block(const GemmBlock<typename Step::Element>& x) {
  using T = typename Step::Element;
  constexpr int kCols = kVectors * GemmVector<T>::kWidth;
  if (x.cols == kCols) return whole_gemm_block<Step, kBlockRows, kVectors>(x);
  T sums[kBlockRows][kCols] = {};
  T column_bias[kCols] = {};
  const size_t bytes = static_cast<size_t>(x.cols) * sizeof(T);
  GemmBlock<T> apart = x;
  apart.c = sums[0];
  apart.c_row = kCols;
  if (x.start != nullptr) {
    for (int r = 0; r < kBlockRows; ++r) std::memcpy(sums[r], x.start + r * x.c_row, bytes);
    apart.start = sums[0];
  }
  if (x.column_bias != nullptr) {
    std::memcpy(column_bias, x.column_bias, bytes);
    apart.column_bias = column_bias;
  }
  whole_gemm_block<Step, kBlockRows, kVectors>(apart);
  for (int r = 0; r < kBlockRows; ++r) std::memcpy(x.c + r * x.c_row, sums[r], bytes);
}

template <class Step, int kVectors, size_t... kSizes>
void run_gemm_block(int64_t rows, const GemmBlock<typename Step::Element>& x,
                    std::index_sequence<kSizes...> /*sizes*/) {
  static constexpr void (*kTable[])(const GemmBlock<typename Step::Element>&) = {
      gemm_block<Step, static_cast<int>(kSizes) + 1, kVectors>...};
  kTable[rows - 1](x);
}

template <class Step>
void gemm_tile(const GemmTile<typename Step::Element>& x) {
  using T = typename Step::Element;
  constexpr int kWidth = GemmVector<T>::kWidth;
  constexpr auto kSizes = std::make_index_sequence<kGemmRows>();
  const int64_t count = (x.rows + kGemmRows - 1) / kGemmRows;
  if (count == 0) return;
  const int64_t base = x.rows / count;
  const int64_t extra = x.rows % count;
  const bool narrow = x.cols <= kWidth;
  for (int64_t i = x.row; i < x.row_end; ++i) {
    const int64_t begin = i * base + (i < extra ? i : extra);
    const int64_t rows = base + (i < extra ? 1 : 0);
    const GemmBlock<T> args = {x.a + begin * x.a_k + x.k_begin * rows,
                               x.b,
                               x.b_row,
                               x.c + begin * x.c_row,
                               x.c_row,
                               x.k_end - x.k_begin,
                               x.cols,
                               x.start != nullptr ? x.start + begin * x.c_row : nullptr,
                               x.bias != nullptr ? x.bias + begin : nullptr,
                               x.column_bias,
                               x.clamp};
    if (narrow) {
      run_gemm_block<Step, 1>(rows, args, kSizes);
    } else {
      run_gemm_block<Step, 2>(rows, args, kSizes);
    }
  }
}

template <class Step>
constexpr GemmIsa<typename Step::Element> gemm_isa_of() {
  constexpr int kWidth = GemmVector<typename Step::Element>::kWidth;
  return {kGemmRows, 2 * kWidth, kWidth, gemm_tile<Step>};
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_BLOCK_HPP_
