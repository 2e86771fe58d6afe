// SPDX-License-Identifier: Apache-2.0
// MatMul with batch broadcasting, FusedMatMul, and Gemm. Floats run on our packed multiplication
// (ops/contraction/matmul_product.hpp), integers in plain loops with wrap-around sums.
#include <algorithm>

#include "ops/contraction/matmul_product.hpp"

namespace chipdock::plugin::cpu {
namespace {

using kit::operator==;

template <class T>
class MatMul final : public Product<T> {
 public:
  explicit MatMul(const kit::NodeView& node)
      : Product<T>(node.number("scale", 1) != 1),
        op_(node.op()),
        trans_b_(node.integer("trans_b", 0) != 0),
        scale_(static_cast<T>(node.number("scale", 1))),
        activation_(node) {}
  void run(const Context& context) const override {
    const Sizes s = matmul_sizes(context.input(0), context.input(1), trans_b_);
    const Tensor* residual = residual_input(context, op_);
    const auto before = [&](Carver& carver, T*) {
      Extras<T> extras;
      extras.scale = scale_;
      extras.last = &activation_;
      if (residual != nullptr) extras.start = this->extra(*residual, carver);
      if (context.has_input(2)) {
        const Tensor& c = context.input(2);
        kit::require(c.rank == 1 && c.size() == s.n, op_, ": C has ", c.size(), " elements, Y ",
                     s.n, " columns");
        extras.column_bias = this->extra(c, carver);
      }
      return extras;
    };
    this->multiply(context, s, {s.k, 1, trans_b_ ? 1 : s.n, trans_b_ ? s.k : 1}, before, [](T*) {});
  }
  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1 || value.rank < 2) return;
    int64_t batch = 1;
    for (int32_t i = 0; i < value.rank - 2; ++i) batch *= value.dims[i];
    this->ask_for_packing(value.dtype, batch, value.dims[value.rank - (trans_b_ ? 1 : 2)],
                          value.dims[value.rank - (trans_b_ ? 2 : 1)], trans_b_, info);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    const int64_t k = source.dim(source.rank - (trans_b_ ? 1 : 2));
    const int64_t n = source.dim(source.rank - (trans_b_ ? 2 : 1));
    this->pack(source, source.size(0, source.rank - 2), k, n, trans_b_, target);
  }

 private:
  std::string op_;
  bool trans_b_;
  T scale_;
  FusedActivation activation_;
};

template <class T>
class Gemm final : public Product<T> {
 public:
  explicit Gemm(const kit::NodeView& node) : Product<T>(false), attributes_(node) {}
  void run(const Context& context) const override {
    const Sizes s = attributes_.sizes(context.input(0), context.input(1));
    const T alpha = static_cast<T>(attributes_.alpha);
    const T beta = static_cast<T>(attributes_.beta);
    const T* c = nullptr;
    const auto before = [&](Carver& carver, T* y) {
      Extras<T> extras;
      extras.unfinished = alpha != T(1);
      if (!context.has_input(2) || attributes_.beta == 0) return extras;
      c = this->extra(context.input(2), carver);
      if (alpha != T(1)) return extras;
      // C is where the sums start.
      if (beta == T(1) && context.input(2).rank == 1 && context.input(2).size() == s.n) {
        extras.column_bias = c;
      } else {
        spread_c(context, s, c, y, [=](T from, T& to) { to = beta * from; });
        extras.start = y;
      }
      return extras;
    };
    const auto after = [&](T* y) {
      if (alpha == T(1)) return;
      for (int64_t i = 0; i < s.m * s.n; ++i) y[i] *= alpha;
      if (c != nullptr) spread_c(context, s, c, y, [=](T from, T& to) { to += beta * from; });
    };
    const bool ta = attributes_.trans_a;
    const bool tb = attributes_.trans_b;
    this->multiply(context, s, {ta ? 1 : s.k, ta ? s.m : 1, tb ? 1 : s.n, tb ? s.k : 1}, before,
                   after);
  }
  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1 || value.rank != 2) return;
    const bool t = attributes_.trans_b;
    this->ask_for_packing(value.dtype, 1, value.dims[t ? 1 : 0], value.dims[t ? 0 : 1], t, info);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    const bool t = attributes_.trans_b;
    const int64_t k = source.dim(t ? 1 : 0);
    const int64_t n = source.dim(t ? 0 : 1);
    this->pack(source, 1, k, n, t, target);
  }

 private:
  GemmAttributes attributes_;
};

/// Row i of A times B, sums wrapping as the type's arithmetic does.
template <class T>
void integer_row(const T* a, int64_t a_step, const T* b, int64_t b_row, int64_t b_column,
                 const Sizes& s, T* y) {
  for (int64_t j = 0; j < s.n; ++j) y[j] = 0;
  for (int64_t k = 0; k < s.k; ++k) {
    const T left = a[k * a_step];
    const T* right = b + k * b_row;
    for (int64_t j = 0; j < s.n; ++j) y[j] = static_cast<T>(y[j] + left * right[j * b_column]);
  }
}

/// T is unsigned: signed types have the same bits, and their overflow would be undefined.
template <class T>
class IntegerMatMul final : public Kernel {
 public:
  explicit IntegerMatMul(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Sizes s = matmul_sizes(context.input(0), context.input(1));
    const T* a = context.input(0).as<T>();
    const T* b = context.input(1).as<T>();
    T* y = context.output(0).mut<T>();
    const int64_t grain = std::max<int64_t>(1, 32768 / (s.n * s.k + 1));
    context.parallel_for(s.batch * s.m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t member = i / s.m;
        const T* left = a + (s.member(s.step_a, member) * s.m + i % s.m) * s.k;
        const T* right = b + s.member(s.step_b, member) * s.k * s.n;
        integer_row(left, 1, right, s.n, 1, s, y + i * s.n);
      }
    });
  }
};

/// `S` gives alpha and beta their meaning, T (unsigned, as wide) does the sums.
template <class S, class T>
class IntegerGemm final : public Kernel {
 public:
  explicit IntegerGemm(const kit::NodeView& node) : attributes_(node) {}
  void run(const Context& context) const override {
    const Sizes s = attributes_.sizes(context.input(0), context.input(1));
    const T* a = context.input(0).as<T>();
    const T* b = context.input(1).as<T>();
    T* y = context.output(0).mut<T>();
    const bool ta = attributes_.trans_a;
    const bool tb = attributes_.trans_b;
    for (int64_t i = 0; i < s.m; ++i) {
      integer_row(a + i * (ta ? 1 : s.k), ta ? s.m : 1, b, tb ? 1 : s.n, tb ? s.k : 1, s,
                  y + i * s.n);
    }
    const double alpha = attributes_.alpha;
    const double beta = attributes_.beta;
    const auto scaled = [](double factor, T value) {
      return factor == 1 ? value : static_cast<T>(static_cast<S>(factor * static_cast<S>(value)));
    };
    for (int64_t i = 0; i < s.m * s.n; ++i) y[i] = scaled(alpha, y[i]);
    if (!context.has_input(2)) return;
    spread_c(context, s, context.input(2).as<T>(), y,
             [=](T from, T& to) { to = static_cast<T>(to + scaled(beta, from)); });
  }

 private:
  GemmAttributes attributes_;
};

KernelDef define(const char* op, int32_t since, const char* name,
                 std::unique_ptr<Kernel> (*create)(const kit::NodeView&),
                 std::vector<chipdock_dtype> dtypes) {
  KernelDef def;
  def.op = op;
  def.since = since;
  def.name = name;
  def.create = create;
  def.supports = supports_fused;
  def.dtypes = {{0, dtypes}, {-1, std::move(dtypes)}};
  return def;
}

}  // namespace

KernelSpan matmul_kernels() {
  using kit::kBfloat16, kit::kFloat16, kit::kFloat32, kit::kFloat64;
  const std::vector<chipdock_dtype> float_like = {kFloat32, kFloat16, kBfloat16};
  KernelSpan span;
  span.push_back(define("MatMul", 1, "matmul_f32", make<MatMul<float>>, float_like));
  span.push_back(define("MatMul", 1, "matmul_f64", make<MatMul<double>>, {kFloat64}));
  span.push_back(fused(span[0], "FusedMatMul", "fused_matmul_f32"));
  span.push_back(fused(span[1], "FusedMatMul", "fused_matmul_f64"));
  span.push_back(define("MatMul", 9, "matmul_i32", make<IntegerMatMul<uint32_t>>,
                        {kit::kInt32, kit::kUint32}));
  span.push_back(define("MatMul", 9, "matmul_i64", make<IntegerMatMul<uint64_t>>,
                        {kit::kInt64, kit::kUint64}));
  span.push_back(define("Gemm", 7, "gemm_f32", make<Gemm<float>>, float_like));
  span.push_back(define("Gemm", 7, "gemm_f64", make<Gemm<double>>, {kFloat64}));
  span.push_back(
      define("Gemm", 9, "gemm_i32", make<IntegerGemm<int32_t, uint32_t>>, {kit::kInt32}));
  span.push_back(
      define("Gemm", 9, "gemm_u32", make<IntegerGemm<uint32_t, uint32_t>>, {kit::kUint32}));
  span.push_back(
      define("Gemm", 9, "gemm_i64", make<IntegerGemm<int64_t, uint64_t>>, {kit::kInt64}));
  span.push_back(
      define("Gemm", 9, "gemm_u64", make<IntegerGemm<uint64_t, uint64_t>>, {kit::kUint64}));
  return span;
}

}  // namespace chipdock::plugin::cpu
