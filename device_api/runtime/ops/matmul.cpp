// SPDX-License-Identifier: Apache-2.0
// Shapes of MatMul, FusedMatMul, the integer forms, and Gemm.
#include "ops/fused.hpp"

namespace chipdock::runtime {
namespace {

/// Product of inputs 0 and `right`, with a bias of one element per column if input `bias` is given.
Dims product(const ShapeContext& context, size_t right, size_t bias) {
  const std::string_view op = context.node().op();
  Dims a = context.input(0).dims;
  Dims b = context.input(right).dims;
  kit::require(!a.empty() && !b.empty(), op, ": A ", to_string(a), " and B ", to_string(b),
               ": scalars are not allowed, rank 1 or more is");
  const bool exchanged = context.node().integer("trans_b", 0) != 0;
  if (exchanged) {
    kit::require(b.size() > 1, op, ": B ", to_string(b),
                 " has no two axes that trans_b could exchange");
    std::swap(b[b.size() - 1], b[b.size() - 2]);
  }
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  kit::require(a.back() == b[b.size() - 2], op, ": A ", to_string(context.input(0).dims), " and B ",
               to_string(context.input(right).dims), ": the last dim of A must equal the ",
               column      ? "only"
               : exchanged ? "last"
                           : "last but one",
               " dim of B");
  Dims out = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2), op);
  if (context.has_input(bias)) {
    kit::require(context.input(bias).dims == Dims{b.back()}, op, ": C ",
                 to_string(context.input(bias).dims), " must be ", to_string({b.back()}));
  }
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  checked_size(out, op);
  return out;
}

void matmul_shape(ShapeContext& context) { set_with_residual(context, product(context, 1, 2)); }
void matmul_integer_shape(ShapeContext& context) {
  context.set(0, product(context, 1, context.input_count()));
}
void qlinear_matmul_shape(ShapeContext& context) { context.set(0, product(context, 3, 8)); }

void gemm_shape(ShapeContext& context) {
  const Dims& a = context.input(0).dims;
  const Dims& b = context.input(1).dims;
  kit::require(a.size() == 2 && b.size() == 2, "Gemm: A ", to_string(a), " and B ", to_string(b),
               ": both must have rank 2");
  const bool trans_a = context.node().integer("transA", 0) != 0;
  const bool trans_b = context.node().integer("transB", 0) != 0;
  const int64_t m = a[trans_a ? 1 : 0];
  const int64_t n = b[trans_b ? 0 : 1];
  kit::require(a[trans_a ? 0 : 1] == b[trans_b ? 1 : 0], "Gemm: A ", to_string(a),
               trans_a ? " transposed" : "", " and B ", to_string(b), trans_b ? " transposed" : "",
               ": columns of A must equal rows of B");
  if (context.has_input(2)) {
    const Dims& c = context.input(2).dims;
    const int64_t cols = c.empty() ? 1 : c.back();
    const int64_t rows = c.size() < 2 ? 1 : c[c.size() - 2];
    kit::require(c.size() <= 2 && (cols == 1 || cols == n) && (rows == 1 || rows == m), "Gemm: C ",
                 to_string(c), " must spread over Y ", to_string({m, n}));
  }
  context.set(0, {m, n});
}

}  // namespace

std::vector<Op> matmul_ops() {
  return {{"MatMul", 1, 0, matmul_shape},
          {"Gemm", 7, 0, gemm_shape},
          fused_op("FusedMatMul", matmul_shape),
          {"MatMulInteger", 10, 0, matmul_integer_shape},
          {"QLinearMatMul", 10, 0, qlinear_matmul_shape},
          {"QLinearGemm", 1, 0, qlinear_matmul_shape, 0, 0, "ai.chipdock"}};
}

}  // namespace chipdock::runtime
