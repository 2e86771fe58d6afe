// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Matrix multiplication inside registers: a block of rows times a panel of two vectors. Each sum is
// one chain of fused multiply-adds over k, so a result does not depend on how work was split.
#include "simd/gemm.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int kVectorBytes = kLanes * static_cast<int>(sizeof(float));
// Sums, 2 vectors of B, 1 broadcast: 31 of the 32 registers that come with 16 lanes, 15 of 16.
constexpr int kRows = kLanes == 16 ? 14 : 6;

template <class T>
struct Vector {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
};

template <class T>
typename Vector<T>::Type load(const T* from) {
  return *reinterpret_cast<const typename Vector<T>::Loose*>(from);
}
template <class T>
void store(T* to, typename Vector<T>::Type value) {
  *reinterpret_cast<typename Vector<T>::Loose*>(to) = value;
}

/// Everything a block needs beside its size.
template <class T>
struct Block {
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
template <class T, int kBlockRows, int kVectors>
void whole_block(const Block<T>& x) {
  using V = typename Vector<T>::Type;
  constexpr int kWidth = Vector<T>::kWidth;
  V sum[kBlockRows][kVectors];
  if (x.start == nullptr) {
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      const T bias = x.bias != nullptr ? x.bias[r] : T(0);
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) sum[r][v] = bias - V{};
    }
  } else {
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = load(x.start + r * x.c_row + v * kWidth);
        if (x.bias != nullptr) sum[r][v] += x.bias[r];  // 0 + x would be no -0 where x is.
      }
    }
  }
  if (x.column_bias != nullptr) {
    CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) {
      const V bias = load(x.column_bias + v * kWidth);
      CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) sum[r][v] += bias;
    }
  }
  const T* a = x.a;
  const T* b = x.b;
  for (int64_t k = 0; k < x.k; ++k) {
    V right[kVectors];
    CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kWidth);
    CHIPDOCK_UNROLLED for (int r = 0; r < kBlockRows; ++r) {
      const V left = a[r] - V{};  // A broadcast: x - 0 is x for every x, x + 0 is not.
      CHIPDOCK_UNROLLED for (int v = 0; v < kVectors; ++v) sum[r][v] += left * right[v];
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
      store(x.c + r * x.c_row + v * kWidth, sum[r][v]);
    }
  }
}

#undef CHIPDOCK_UNROLLED

/// Any block: one that ends inside the panel is computed apart and copied.
template <class T, int kBlockRows, int kVectors>
void block(const Block<T>& x) {
  constexpr int kCols = kVectors * Vector<T>::kWidth;
  if (x.cols == kCols) return whole_block<T, kBlockRows, kVectors>(x);
  T sums[kBlockRows][kCols] = {};
  T column_bias[kCols] = {};
  const size_t bytes = static_cast<size_t>(x.cols) * sizeof(T);
  Block<T> apart = x;
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
  whole_block<T, kBlockRows, kVectors>(apart);
  for (int r = 0; r < kBlockRows; ++r) std::memcpy(x.c + r * x.c_row, sums[r], bytes);
}

template <class T>
using BlockFunction = void (*)(const Block<T>&);

template <class T, int kVectors, size_t... kSizes>
BlockFunction<T> pick(int64_t rows, std::index_sequence<kSizes...>) {
  static constexpr BlockFunction<T> kTable[] = {
      block<T, static_cast<int>(kSizes) + 1, kVectors>...};
  return kTable[rows - 1];
}

template <class T>
void tile(const GemmTile<T>& x) {
  constexpr int kWidth = Vector<T>::kWidth;
  constexpr auto kSizes = std::make_index_sequence<kRows>();
  const int64_t count = (x.rows + kRows - 1) / kRows;
  if (count == 0) return;
  const int64_t base = x.rows / count;
  const int64_t extra = x.rows % count;
  const bool narrow = x.cols <= kWidth;
  for (int64_t i = x.row; i < x.row_end; ++i) {
    const int64_t begin = i * base + (i < extra ? i : extra);
    const int64_t rows = base + (i < extra ? 1 : 0);
    const Block<T> args = {x.a + begin * x.a_k + x.k_begin * rows,
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
    (narrow ? pick<T, 1>(rows, kSizes) : pick<T, 2>(rows, kSizes))(args);
  }
}

}  // namespace

const GemmIsa<float>& gemm_isa_f32() {
  static constexpr GemmIsa<float> kIsa = {kRows, 2 * Vector<float>::kWidth, Vector<float>::kWidth,
                                          tile<float>};
  return kIsa;
}

const GemmIsa<double>& gemm_isa_f64() {
  static constexpr GemmIsa<double> kIsa = {kRows, 2 * Vector<double>::kWidth,
                                           Vector<double>::kWidth, tile<double>};
  return kIsa;
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
