// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication of our own for float and double: packing, cache blocking and threads around
// the register tile of simd/gemm.cpp. Operators describe their operands by a GemmWork; convolution
// gives panels of its patches this way and never builds the whole matrix.
#ifndef CHIPDOCK_PLUGIN_CPU_GEMM_HPP_
#define CHIPDOCK_PLUGIN_CPU_GEMM_HPP_

#include <string>

#include "kernel.hpp"
#include "simd/gemm.hpp"

namespace chipdock::plugin::cpu {

template <class T>
const GemmIsa<T>& gemm_isa();

/// A slice of B as the tile reads it: rows of full panel width, `row` elements apart.
template <class T>
struct GemmPanel {
  const T* data;
  int64_t row;
};

/// A batch of products C = f(initial value + A * B), all of one size. Read by many threads.
template <class T>
class GemmWork {
 public:
  const GemmIsa<T>* isa = &gemm_isa<T>();  ///< Or another tile of the same sizes.
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  int64_t c_row = 0;         ///< Elements between rows of C.
  int64_t a_row = 0;         ///< Only where gemm_packs_late says so.
  const T* clamp = nullptr;  ///< NULL, or a lower and an upper bound: done before finish().

  virtual ~GemmWork() = default;
  /// A of one member, packed by gemm_pack_a; if `a_row` is not 0, dense rows that far apart.
  virtual const T* a(int64_t member) const = 0;
  virtual T* c(int64_t member) const = 0;
  /// Initial values: NULL for zeros, C itself, or anything else laid out like C.
  virtual const T* start(int64_t /*member*/) const { return nullptr; }
  /// Added to the initial value: one for each row, one for each column, or NULL.
  virtual const T* bias(int64_t /*member*/) const { return nullptr; }
  virtual const T* column_bias() const { return nullptr; }
  /// A block of C, `rows` by `cols`, holds its sums and is still in the cache: f.
  virtual void finish(T* /*c*/, int64_t /*rows*/, int64_t /*cols*/) const {}
  /// Rows [k_begin, k_end) and columns [column, column + cols) of B, cols at most the panel width.
  /// `scratch` may take them: k_end - k_begin rows of panel width, the rest of each row zeroed.
  virtual GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column,
                             int cols, T* scratch) const = 0;
};

/// Bytes that gemm_run needs for panels.
template <class T>
uint64_t gemm_scratch_bytes(const Context& context);

/// Whether rows of A are multiplied once, right after they were packed: then they may come as they
/// are. B is to be packed.
template <class T>
bool gemm_packs_late(const Context& context, const GemmWork<T>& work);

template <class T>
void gemm_run(const Context& context, const GemmWork<T>& work, T* scratch);
/// The same on the calling thread alone, with the scratch of one thread.
template <class T>
void gemm_run_here(const GemmWork<T>& work, T* scratch);
inline constexpr int64_t kGemmThreadBytes = int64_t{256} * 1024;

/// How rows of A are blocked, whatever their elements are.
template <class T>
GemmRowBlocks gemm_row_blocks(int64_t m);

/// Packs A (element i, j at source[i * row + j * column]) into m * k elements; or only its blocks of
/// rows [first, end), into their places.
template <class T>
void gemm_pack_a(const T* source, int64_t row, int64_t column, int64_t m, int64_t k, T* target,
                 int64_t first = 0, int64_t end = INT64_MAX);
/// The same for `scale` A by the threads of a launch, as `count` matrices that lie `step` apart and
/// are packed one behind the other.
template <class T>
void gemm_pack_a(const Context& context, const T* source, int64_t count, int64_t step, int64_t row,
                 int64_t column, int64_t m, int64_t k, T scale, T* target);

/// Packs B whole: panel after panel, each k rows of panel width. `target` has gemm_packed_b_size
/// elements.
template <class T>
void gemm_pack_b(const T* source, int64_t row, int64_t column, int64_t k, int64_t n, T* target);
template <class T>
int64_t gemm_packed_b_size(int64_t k, int64_t n);

/// Packs rows [0, k) and `cols` columns into one panel.
template <class T>
void gemm_pack_panel(const T* source, int64_t row, int64_t column, int64_t k, int cols, T* target);

/// Names the packed forms for the host's sharing of weights: operand, type, ISA.
template <class T>
std::string gemm_layout(const char* operand);

/// B as a plain strided matrix, or packed whole.
template <class T>
struct GemmB {
  const T* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
  const T* packed = nullptr;

  GemmPanel<T> panel(int64_t m, int64_t k, int64_t k_begin, int64_t k_end, int64_t begin, int cols,
                     T* scratch) const;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_GEMM_HPP_
