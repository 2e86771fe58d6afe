// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, Hardmax. Up to version 12 all dims from `axis` on form one row; from 13 on
// the axis alone does.
#include "simd/softmax.hpp"

#include <cmath>

#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// x as [outer, length, inner]; the operator works along `length`.
struct Rows {
  int64_t outer;
  int64_t length;
  int64_t inner;
};

class AlongAxis : public Kernel {
 public:
  explicit AlongAxis(const kit::NodeView& node)
      : op_(node.op()),
        flattens_(node.since_version() < 13),
        axis_(node.integer("axis", flattens_ ? 1 : -1)),
        type_(node.input_dtype(0)) {}

 protected:
  Rows rows(const Tensor& x) const {
    if (flattens_) {
      const int64_t axis =
          axis_ >= x.rank ? x.rank : kit::normalize_axis(axis_, x.rank, op_.c_str());
      return {x.size(0, axis), x.size(axis, x.rank), 1};
    }
    if (x.rank == 0) return {1, 1, 1};
    const int64_t axis = kit::normalize_axis(axis_, x.rank, op_.c_str());
    return {x.size(0, axis), x.dim(axis), x.size(axis + 1, x.rank)};
  }

  std::string op_;
  bool flattens_;
  int64_t axis_;
  chipdock_dtype type_;
};

/// Rows of float64, and of half types widened by the caller.
void softmax_double(const double* x, double* y, int64_t n, int64_t step, bool logarithm) {
  double top = -INFINITY;
  for (int64_t i = 0; i < n; ++i)
    top = x[i * step] >= top || x[i * step] != x[i * step] ? x[i * step] : top;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double shifted = x[i * step] - top;
    const double e = std::exp(shifted);
    sum += e;
    y[i * step] = logarithm ? shifted : e;
  }
  const double rest = logarithm ? std::log(sum) : sum;
  for (int64_t i = 0; i < n; ++i) y[i * step] = logarithm ? y[i * step] - rest : y[i * step] / rest;
}

class Softmax final : public AlongAxis {
 public:
  explicit Softmax(const kit::NodeView& node)
      : AlongAxis(node),
        logarithm_(node.op() == "LogSoftmax"),
        half_(half_codec(type_)),
        row_(CHIPDOCK_CPU_DISPATCH(softmax_row)),
        columns_(CHIPDOCK_CPU_DISPATCH(softmax_columns)) {}

  uint64_t workspace(const Context& context) const override {
    return half_ ? static_cast<uint64_t>(context.input(0).size()) * sizeof(float) : 0;
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const Rows r = rows(x);
    if (x.size() == 0) return;
    if (is(type_, kit::kFloat64)) {
      return over(context, r.outer * r.inner, row_grain(r.length, kGrain / 8),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t at = i / r.inner * r.length * r.inner + i % r.inner;
                      softmax_double(x.as<double>() + at, y.mut<double>() + at, r.length, r.inner,
                                     logarithm_);
                    }
                  });
    }
    if (!half_) return single(context, x.as<float>(), y.mut<float>(), r);
    auto* wide = static_cast<float*>(context.workspace);
    over(context, x.size(), kGrain, [&](int64_t begin, int64_t end) {
      half_.widen(x.as<uint16_t>() + begin, wide + begin, end - begin);
    });
    single(context, wide, wide, r);
    over(context, x.size(), kGrain, [&](int64_t begin, int64_t end) {
      half_.narrow(wide + begin, y.mut<uint16_t>() + begin, end - begin);
    });
  }

 private:
  void single(const Context& context, const float* x, float* y, const Rows& r) const {
    if (r.inner == 1) {
      return over(context, r.outer, row_grain(r.length, kGrain / 4),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      row_(x + i * r.length, y + i * r.length, r.length, logarithm_);
                    }
                  });
    }
    const int64_t groups = (r.inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
    const int64_t width = std::min(r.inner, kSoftmaxColumns);
    over(context, r.outer * groups, row_grain(r.length * width, kGrain / 4),
         [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             const int64_t first = i % groups * kSoftmaxColumns;
             const int64_t at = i / groups * r.length * r.inner + first;
             columns_(x + at, y + at, r.length, std::min(kSoftmaxColumns, r.inner - first), r.inner,
                      logarithm_);
           }
         });
  }

  bool logarithm_;
  HalfCodec half_;
  decltype(CHIPDOCK_CPU_DISPATCH(softmax_row)) row_;
  decltype(CHIPDOCK_CPU_DISPATCH(softmax_columns)) columns_;
};

/// 1 at the first largest element of a row, 0 elsewhere.
class Hardmax final : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Rows r = rows(x);
    if (x.size() == 0) return;
    if (is(type_, kit::kFloat64)) return choose<double>(context, r, nullptr, 1.0);
    if (is(type_, kit::kFloat32)) return choose<float>(context, r, nullptr, 1.0f);
    const uint16_t one = is(type_, kit::kFloat16) ? 0x3c00 : 0x3f80;
    choose<uint16_t>(context, r, half_codec(type_).widen, one);
  }

 private:
  template <class T>
  void choose(const Context& context, const Rows& r,
              void (*widen)(const uint16_t*, float*, int64_t), T one) const {
    const T* x = context.input(0).as<T>();
    T* y = context.output(0).mut<T>();
    const auto value = [widen](const T* at) {
      if constexpr (std::is_same_v<T, uint16_t>) {
        float wide = 0;
        widen(at, &wide, 1);
        return wide;
      } else {
        return *at;
      }
    };
    over(context, r.outer * r.inner, row_grain(r.length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / r.inner * r.length * r.inner + i % r.inner;
        int64_t best = 0;
        for (int64_t k = 1; k < r.length; ++k) {
          if (value(x + at + k * r.inner) > value(x + at + best * r.inner)) best = k;
        }
        for (int64_t k = 0; k < r.length; ++k) y[at + k * r.inner] = k == best ? one : T{0};
      }
    });
  }
};

template <class K>
KernelDef define(const char* op) {
  KernelDef def{op, 1};
  def.create = make<K>;
  def.dtypes = {{0, dtypes_of(FloatTypes{})}};
  def.aliases = {{0, 0}};
  return def;
}

}  // namespace

KernelSpan softmax_kernels() {
  KernelSpan kernels;
  kernels.push_back(define<Softmax>("Softmax"));
  kernels.push_back(define<Softmax>("LogSoftmax"));
  kernels.push_back(define<Hardmax>("Hardmax"));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
