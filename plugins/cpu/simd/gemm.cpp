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
  // NOLINTBEGIN(modernize-use-using): attributes on a dependent type need a typedef
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  // NOLINTEND(modernize-use-using)
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
};

template <class T, int kBlockRows, int kVectors>
void block(const Block<T>& x) {
  using V = typename Vector<T>::Type;
  constexpr int kWidth = Vector<T>::kWidth;
  constexpr int kCols = kVectors * kWidth;
  V sum[kBlockRows][kVectors];
  T edge[kCols];  // Stands in for a row of C that ends inside the panel.
  const bool full = x.cols == kCols;
  const auto whole = [&](const T* row) {
    if (full) return row;
    std::memset(edge, 0, sizeof(edge));
    std::memcpy(edge, row, static_cast<size_t>(x.cols) * sizeof(T));
    return static_cast<const T*>(edge);
  };
  for (int r = 0; r < kBlockRows; ++r) {
    const T bias = x.bias != nullptr ? x.bias[r] : T(0);
    const T* from = x.start != nullptr ? whole(x.start + r * x.c_row) : nullptr;
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = bias - V{};
      // Not 0 + x, which is no -0 where x is.
      if (from != nullptr) sum[r][v] = load(from + v * kWidth);
      if (from != nullptr && x.bias != nullptr) sum[r][v] += bias;
    }
  }
  if (x.column_bias != nullptr) {
    const T* from = whole(x.column_bias);
    for (int v = 0; v < kVectors; ++v) {
      const V bias = load(from + v * kWidth);
      for (int r = 0; r < kBlockRows; ++r) sum[r][v] += bias;
    }
  }
  const T* a = x.a;
  const T* b = x.b;
  for (int64_t k = 0; k < x.k; ++k) {
    V right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kBlockRows; ++r) {
      const V left = a[r] - V{};  // A broadcast: x - 0 is x for every x, x + 0 is not.
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += left * right[v];
    }
    a += kBlockRows;
    b += x.b_row;
  }
  for (int r = 0; r < kBlockRows; ++r) {
    T* to = full ? x.c + r * x.c_row : edge;
    for (int v = 0; v < kVectors; ++v) store(to + v * kWidth, sum[r][v]);
    if (!full) std::memcpy(x.c + r * x.c_row, edge, static_cast<size_t>(x.cols) * sizeof(T));
  }
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
                           x.column_bias};
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
