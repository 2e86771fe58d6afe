// SPDX-License-Identifier: Apache-2.0
// Products of bytes inside registers: a word is 32 bits that hold two or four values of one row of
// A or one column of B along k, and a lane of a sum takes all products of two words at once. Blocking,
// packing of whole operands and zero points are in ../gemm_int8.hpp.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_DOT_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_DOT_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// How a byte becomes a part of a word. A level that multiplies bytes needs one operand signed and
/// the other unsigned: `flip` turns the top bit, which adds 128 to a signed value and takes 128
/// from an unsigned one. Other levels widen to 16 bits and never flip.
struct DotCode {
  bool is_signed = false;  ///< Of the bytes that come in.
  bool flip = false;
  int32_t shift() const { return !flip ? 0 : is_signed ? 128 : -128; }
};

/// Up to four rows of bytes, of which element i of each becomes a part of word i. Missing rows are
/// parts of zero.
struct DotRows {
  const uint8_t* rows[4];
  int count;        ///< Rows given, 1 to the parts of a word.
  int64_t step;     ///< Bytes between elements of a row.
  int64_t n;        ///< Words.
  int32_t* words;   ///< Where they go,
  int64_t to_step;  ///< this many words apart.
  DotCode code;
};

/// One block of rows of A times one panel of B; `sums` gets every column of the panel.
struct DotBlock {
  const int32_t* a;  ///< `words` groups of `rows` words.
  const int32_t* b;
  int64_t b_row;  ///< Words between rows of B.
  int64_t words;
  int rows;     ///< 1 to DotIsa::rows.
  bool narrow;  ///< Only the first half of the columns is wanted.
  int32_t* sums;
};

/// What one ISA level offers.
struct DotIsa {
  int rows;   ///< Most rows of a block.
  int cols;   ///< Width of a panel.
  int width;  ///< Lanes of one vector.
  int parts;  ///< Values in a word: 4 bytes or 2 halves.
  /// Sums wrap; without flipped codes there is no difference between the two.
  void (*block_a_unsigned)(
      const DotBlock& block);                     ///< Words of A hold unsigned bytes, of B signed.
  void (*block_a_signed)(const DotBlock& block);  ///< The other way round.
  void (*pack)(const DotRows& rows);
};

CHIPDOCK_CPU_DECLARE(const DotIsa& dot_isa_halves())
/// NULL in levels without products of bytes.
CHIPDOCK_CPU_DECLARE(const DotIsa* dot_isa_bytes())
/// Sum of the bytes themselves.
CHIPDOCK_CPU_DECLARE(int32_t dot_sum(const uint8_t* from, int64_t step, int64_t n, bool is_signed))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_DOT_HPP_
