// SPDX-License-Identifier: Apache-2.0
// Operands of half types for the multiplication of gemm.hpp. Where the level multiplies bfloat16,
// operands become words of two neighbours along k (simd/gemm_half.hpp) and a product of k takes
// pair_words(k) steps; elsewhere packed halves are widened as they are needed, a panel at a time or,
// for a few rows of A, on their way into registers.
#ifndef CHIPDOCK_PLUGIN_CPU_GEMM_HALF_HPP_
#define CHIPDOCK_PLUGIN_CPU_GEMM_HALF_HPP_

#include <string>

#include "gemm.hpp"

namespace chipdock::plugin::cpu {

/// The tile over words for operands of `dtype`, or NULL: widen them.
const GemmIsa<float>* pair_isa(chipdock_dtype dtype);
inline int64_t pair_words(int64_t k) { return (k + 1) / 2; }

/// Packs A (element i, j at source[i * row + j * column]) into m * pair_words(k) words, or only some
/// blocks of rows, as gemm_pack_a.
void pair_pack_a(const uint16_t* source, int64_t row, int64_t column, int64_t m, int64_t k,
                 float* target, int64_t first = 0, int64_t end = INT64_MAX);
/// Words [begin, end) and `cols` columns of B, which has k rows, as one panel. `source` is its
/// first column's element 0.
void pair_pack_panel(const uint16_t* source, int64_t row, int64_t column, int64_t k, int64_t begin,
                     int64_t end, int cols, float* target);

/// How a constant right operand of half type is kept.
enum class HalfForm { kWords, kHalves, kFloats };
/// `widened`: no words.
HalfForm half_form(chipdock_dtype dtype, bool widened);
/// Packs B whole, panel after panel. The bytes of the form, and its name.
uint64_t half_packed_bytes(HalfForm form, int64_t k, int64_t n);
std::string half_layout(HalfForm form, chipdock_dtype dtype);
void half_pack_b(HalfForm form, chipdock_dtype dtype, const uint16_t* source, int64_t row,
                 int64_t column, int64_t k, int64_t n, void* target);

/// B as words: a plain strided matrix of bfloat16, or packed whole.
struct PairB {
  const uint16_t* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
  const float* packed = nullptr;
  int64_t depth = 0;  ///< Rows of the plain matrix.

  GemmPanel<float> panel(int64_t m, int64_t words, int64_t begin, int64_t end, int64_t first,
                         int cols, float* scratch) const;
};

/// B as packed halves of either type.
struct HalfB {
  chipdock_dtype dtype = {};
  const uint16_t* packed = nullptr;
  bool direct = false;  ///< For the tile of isa(), else for that of floats.

  /// Chooses for products of `m` rows.
  HalfB(chipdock_dtype dtype, const void* packed, int64_t m);
  const GemmIsa<float>* isa() const;
  GemmPanel<float> panel(int64_t m, int64_t k, int64_t begin, int64_t end, int64_t first, int cols,
                         float* scratch) const;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_GEMM_HALF_HPP_
