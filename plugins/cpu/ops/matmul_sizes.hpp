// SPDX-License-Identifier: Apache-2.0
// What a call of MatMul or Gemm multiplies: sizes after broadcasting and transposition, and how C
// spreads over the result.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MATMUL_SIZES_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MATMUL_SIZES_HPP_

#include <algorithm>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

/// Sizes of one call after 1-D operands were promoted and batches folded.
struct Sizes {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  int64_t batch_a = 1, batch_b = 1;  ///< Members that A and B really hold.
  int32_t rank = 0;                  ///< Batch dims.
  int64_t dims[CHIPDOCK_MAX_RANK] = {}, step_a[CHIPDOCK_MAX_RANK] = {},
          step_b[CHIPDOCK_MAX_RANK] = {};

  /// Which member of A (or B) belongs to a member of the batch.
  int64_t member(const int64_t* steps, int64_t index) const {
    int64_t found = 0;
    for (int32_t i = rank - 1; i >= 0; --i) {
      found += index % dims[i] * steps[i];
      index /= dims[i];
    }
    return found;
  }
};

/// `trans_b`: the last two axes of B, which must be there, are exchanged.
inline Sizes matmul_sizes(const Tensor& a, const Tensor& b, bool trans_b = false) {
  Sizes s;
  kit::require(a.rank > 0 && b.rank > (trans_b ? 1 : 0), "MatMul takes no scalars",
               trans_b ? ", nor exchanges axes of a vector" : "", ", got ranks ", a.rank, " and ",
               b.rank);
  s.k = a.dim(a.rank - 1);
  s.m = a.rank > 1 ? a.dim(a.rank - 2) : 1;
  s.n = b.rank > 1 ? b.dim(b.rank - (trans_b ? 2 : 1)) : 1;
  const int64_t k_b = b.rank > 1 ? b.dim(b.rank - (trans_b ? 1 : 2)) : b.dim(0);
  kit::require(s.k == k_b, "MatMul: A has ", s.k, " columns and B ", k_b, " rows, they must agree");
  const int32_t batch_rank_a = std::max(a.rank - 2, 0);
  const int32_t batch_rank_b = std::max(b.rank - 2, 0);
  s.batch_a = a.size(0, batch_rank_a);
  s.batch_b = b.size(0, batch_rank_b);
  if (s.batch_b == 1 && batch_rank_b <= batch_rank_a) {  // One B for all rows of A.
    s.m *= s.batch_a;
    s.batch = s.batch_a = 1;
    return s;
  }
  s.rank = std::max(batch_rank_a, batch_rank_b);
  int64_t step_a = 1;
  int64_t step_b = 1;
  for (int32_t i = 1; i <= s.rank; ++i) {
    const int64_t da = i <= batch_rank_a ? a.dim(batch_rank_a - i) : 1;
    const int64_t db = i <= batch_rank_b ? b.dim(batch_rank_b - i) : 1;
    kit::require(da == db || da == 1 || db == 1, "MatMul: batch dims ", da, " and ", db,
                 " do not broadcast");
    const int32_t at = s.rank - i;
    s.dims[at] = da == 1 ? db : da;
    s.step_a[at] = da == 1 ? 0 : step_a;
    s.step_b[at] = db == 1 ? 0 : step_b;
    step_a *= da;
    step_b *= db;
    s.batch *= s.dims[at];
  }
  return s;
}

/// alpha, beta, transposition, and how C spreads over Y.
struct GemmAttributes {
  explicit GemmAttributes(const kit::NodeView& node)
      : alpha(node.number("alpha", 1)),
        beta(node.number("beta", 1)),
        trans_a(node.integer("transA", 0) != 0),
        trans_b(node.integer("transB", 0) != 0) {}
  Sizes sizes(const Tensor& a, const Tensor& b) const {
    kit::require(a.rank == 2 && b.rank == 2, "Gemm takes matrices, got ranks ", a.rank, " and ",
                 b.rank);
    Sizes s;
    s.m = a.dim(trans_a ? 1 : 0);
    s.k = a.dim(trans_a ? 0 : 1);
    s.n = b.dim(trans_b ? 0 : 1);
    const int64_t k_b = b.dim(trans_b ? 1 : 0);
    kit::require(s.k == k_b, "Gemm: A' has ", s.k, " columns and B' ", k_b,
                 " rows, they must agree");
    return s;
  }
  double alpha;
  double beta;
  bool trans_a;
  bool trans_b;
};

/// body(value of C, element of Y) for all of Y; C is spread from the right, dims of 1 repeat.
template <class T, class Body>
void spread_c(const Context& context, const Sizes& s, const T* c, T* y, const Body& body) {
  const Tensor& shape = context.input(2);
  const int64_t cols = shape.rank > 0 ? shape.dim(shape.rank - 1) : 1;
  const int64_t rows = shape.rank > 1 ? shape.dim(shape.rank - 2) : 1;
  kit::require(shape.rank <= 2 && (cols == 1 || cols == s.n) && (rows == 1 || rows == s.m),
               "Gemm: C of rank ", shape.rank, " with ", rows, "x", cols,
               " does not spread over Y of ", s.m, "x", s.n);
  for (int64_t i = 0; i < s.m; ++i) {
    const T* from = c + (rows == 1 ? 0 : i * cols);
    T* to = y + i * s.n;
    if (cols == 1) {
      for (int64_t j = 0; j < s.n; ++j) body(from[0], to[j]);
    } else {
      for (int64_t j = 0; j < s.n; ++j) body(from[j], to[j]);
    }
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MATMUL_SIZES_HPP_
