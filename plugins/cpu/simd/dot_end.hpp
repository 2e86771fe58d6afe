// SPDX-License-Identifier: Apache-2.0
// What becomes of a block of sums of products of bytes: zero points and bias are settled, then the
// sums are stored or brought to bytes again. Compiled per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_DOT_END_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_DOT_END_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Adds row[r] * column[c] to a sum.
struct DotPair {
  const int32_t* row;
  const int32_t* column;
};

/// A block of sums. Arrays over columns have the full width of the panel; what lies behind `cols`
/// is read and dropped.
struct DotEnd {
  const int32_t* sums = nullptr;  ///< Rows of panel width.
  int rows = 0;
  int cols = 0;
  bool narrow = false;                   ///< Only the first vector of each row is there.
  const int32_t* row_term = nullptr;     ///< Added to each row, or NULL.
  const int32_t* column_term = nullptr;  ///< Added to each column, or NULL.
  DotPair pairs[2] = {};
  int pair_count = 0;
};

/// y = saturated(rint(sum * row_scale * column_scale) + zero), ties to even.
struct DotBytes {
  uint8_t* y = nullptr;
  int64_t y_row = 0;
  bool is_signed = false;
  const float* row_scale = nullptr;
  const float* column_scale = nullptr;  ///< NULL: 1.
  const int32_t* zero = nullptr;        ///< Per row.
};

CHIPDOCK_CPU_DECLARE(void dot_store(const DotEnd& end, int32_t* y, int64_t y_row))
/// y += sum * scale * column_scale.
CHIPDOCK_CPU_DECLARE(void dot_accumulate(const DotEnd& end, float scale, const float* column_scale,
                                         float* y, int64_t y_row))
CHIPDOCK_CPU_DECLARE(void dot_requantize(const DotEnd& end, const DotBytes& to))
/// The same for sums that floats hold exactly, which are one row; `term` is added to each.
CHIPDOCK_CPU_DECLARE(void plane_store(const float* sums, int64_t n, int32_t term, int32_t* y))
CHIPDOCK_CPU_DECLARE(void plane_requantize(const float* sums, int64_t n, int32_t term,
                                           const DotBytes& to))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_DOT_END_HPP_
