// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication of bytes with 32-bit sums that wrap: packing, cache blocking and threads
// around the blocks of simd/dot*.cpp. Operators describe their operands by a DotWork and settle zero
// points, scales and bias in its end().
//
// Packed operands hold encoded values, value + shift with the DotCode's shift, so a zero point z
// counts as z + shift, and with it the sum over real values is
//   sum (a - za)(b - zb) = sum ab - zb * sum a - za * sum b + k * za * zb.
#ifndef CHIPDOCK_PLUGIN_CPU_GEMM_INT8_HPP_
#define CHIPDOCK_PLUGIN_CPU_GEMM_INT8_HPP_

#include <string>

#include "kernel.hpp"
#include "simd/dot.hpp"
#include "simd/dot_end.hpp"

namespace chipdock::plugin::cpu {

const DotIsa& dot_isa();

/// How bytes are encoded for an operand that the level wants signed or unsigned.
DotCode dot_code(bool is_signed, bool wants_signed);
/// Words that k values take.
int64_t dot_words(int64_t k);
/// A word whose parts are all the encoded `value`.
int32_t dot_filled_word(int32_t value);

/// Packs A (element i, j at source[i * row + j * column]): blocks of rows, each word-major, and the
/// sums of the encoded rows behind. All sizes in int32_t.
void dot_pack_a(const uint8_t* source, int64_t row, int64_t column, int64_t m, int64_t k,
                DotCode code, int32_t* target);
/// The same by the threads of a launch, as `count` dense matrices, packed dot_packed_a_size apart.
void dot_pack_a(const Context& context, const uint8_t* source, int64_t count, int64_t m, int64_t k,
                DotCode code, int32_t* target);
int64_t dot_packed_a_size(int64_t m, int64_t k);
inline const int32_t* dot_row_sums(const int32_t* packed, int64_t m, int64_t k) {
  return packed + m * dot_words(k);
}

/// Packs B: panel after panel, each dot_words(k) rows of panel width, and the sums of the encoded
/// columns behind, padded to whole panels.
void dot_pack_b(const uint8_t* source, int64_t row, int64_t column, int64_t k, int64_t n,
                DotCode code, int32_t* target);
int64_t dot_packed_b_size(int64_t k, int64_t n);
/// Columns of whole panels.
int64_t dot_padded_columns(int64_t n);
inline const int32_t* dot_column_sums(const int32_t* packed, int64_t k, int64_t n) {
  return packed + dot_padded_columns(n) * dot_words(k);
}
/// One panel of it, without sums.
void dot_pack_panel(const uint8_t* source, int64_t row, int64_t column, int64_t k, int cols,
                    DotCode code, int32_t* target);

/// Names a packed form for the host's sharing of weights: operand, code, ISA.
std::string dot_layout(const char* operand, DotCode code);

struct DotPanel {
  const int32_t* data;
  int64_t row;
};

/// The sums of one block and where they belong.
struct DotSums {
  int64_t member;
  int64_t row;
  int64_t column;
  const int32_t* column_sums;  ///< Of this panel, if the work asked for them.
  DotEnd end;                  ///< Sums and sizes are filled in.
};

/// Where a product goes.
struct DotResult {
  int32_t* y32 = nullptr;  ///< NULL: `bytes` says where.
  DotBytes bytes;

  /// Writes a block: its first element is number `at` of Y, whose rows are `y_row` apart; `row` and
  /// `column` are its first scales.
  void write(const DotEnd& sums, int64_t at, int64_t y_row, int64_t row, int64_t column) const;
};

/// A batch of products, all of one size. Read by many threads.
class DotWork {
 public:
  int64_t m = 0;
  int64_t n = 0;
  int64_t words = 0;
  int64_t batch = 1;
  bool a_signed = false;
  /// One packed row of ones, if panels have no sums yet and end() wants them.
  const int32_t* ones = nullptr;

  virtual ~DotWork() = default;
  virtual const int32_t* a(int64_t member) const = 0;
  /// `cols` columns of B from `column` on, as rows of full panel width that may lie in `scratch`.
  virtual DotPanel panel(int64_t member, int64_t column, int cols, int32_t* scratch) const = 0;
  virtual void end(DotSums& sums) const = 0;
};

/// Bytes that dot_run needs.
uint64_t dot_scratch_bytes(const Context& context, int64_t words);
void dot_run(const Context& context, const DotWork& work, void* scratch);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_GEMM_INT8_HPP_
