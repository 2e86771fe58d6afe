// SPDX-License-Identifier: Apache-2.0
// The register tile of matrix multiplication, compiled once per ISA level by gemm.cpp. Blocking for
// caches, threads and packing of whole operands are in ../gemm.hpp.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// C[rows, cols] = initial value + A * B for one panel of B.
template <class T>
struct GemmTile {
  const T* a = nullptr;  ///< Packed: blocks of rows, each k-major; see gemm_row_blocks.
  int64_t a_k = 0;       ///< Length of a packed row, that is the distance of row blocks.
  const T* b = nullptr;  ///< k rows of full panel width, padded with zeros.
  int64_t b_row = 0;     ///< Elements between rows of B.
  T* c = nullptr;
  int64_t c_row = 0;    ///< Elements between rows of C.
  int64_t row = 0;      ///< First row block.
  int64_t row_end = 0;  ///< One past the last row block.
  int64_t rows = 0;     ///< Rows of all of A, which fix the blocks.
  int64_t k_begin = 0;  ///< Slice of k that B holds.
  int64_t k_end = 0;
  int cols = 0;                    ///< 1 to the panel width.
  const T* start = nullptr;        ///< Initial values, laid out as C or C itself; NULL: zeros.
  const T* bias = nullptr;         ///< Per row, added to the initial value; NULL: none.
  const T* column_bias = nullptr;  ///< Per column, likewise.
  const T* clamp = nullptr;        ///< NULL, or the bounds that sums are held to; NaN stays.
};

/// What one ISA level offers for one element type.
template <class T>
struct GemmIsa {
  int rows;   ///< Most rows of a block.
  int cols;   ///< Width of a panel.
  int width;  ///< Elements of one vector.
  void (*tile)(const GemmTile<T>& tile);
};

CHIPDOCK_CPU_DECLARE(const GemmIsa<float>& gemm_isa_f32())
CHIPDOCK_CPU_DECLARE(const GemmIsa<double>& gemm_isa_f64())

/// Rows are cut into equal blocks (sizes differ by one), so that no block is too thin to keep the
/// multipliers busy: 16 rows are 8 + 8 and not 14 + 2.
struct GemmRowBlocks {
  int64_t count;
  int64_t base;   ///< Rows of a block,
  int64_t extra;  ///< and this many first blocks have one more.
  int64_t begin(int64_t block) const { return block * base + (block < extra ? block : extra); }
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_GEMM_HPP_
