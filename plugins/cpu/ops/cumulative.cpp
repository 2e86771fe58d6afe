// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd along one axis, either way, with or without the element itself: axes and
// threads around simd/cumulative.cpp.
#include "simd/cumulative.hpp"

#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

using CumulativeTypes = decltype(FloatTypes{} + Types<int32_t, int64_t, uint32_t, uint64_t>{});

CumulativeType kind_of(chipdock_dtype type) {
  if (is(type, kit::kFloat16)) return CumulativeType::kF16;
  if (is(type, kit::kBfloat16)) return CumulativeType::kBf16;
  if (type.code == CHIPDOCK_DTYPE_FLOAT) {
    return type.bits == 32 ? CumulativeType::kF32 : CumulativeType::kF64;
  }
  return type.bits == 32 ? CumulativeType::k32 : CumulativeType::k64;
}

class Cumulative final : public Kernel {
 public:
  explicit Cumulative(const kit::NodeView& node)
      : op_(node.op()),
        rule_{op_ == "CumProd", node.integer("exclusive", 0) != 0, node.integer("reverse", 0) != 0},
        functions_(CHIPDOCK_CPU_DISPATCH(cumulative_functions)(kind_of(node.input_dtype(0)))) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& given = context.input(1);
    kit::require(given.size() == 1, op_, ": axis has ", given.size(), " elements, it is a scalar");
    if (x.size() == 0) return;
    const int64_t asked =
        is(given.dtype, kit::kInt64) ? *given.as<int64_t>() : *given.as<int32_t>();
    const int64_t rank = x.rank;
    const int64_t axis = rank == 0 ? 0 : kit::normalize_axis(asked, rank, op_.c_str());
    const int64_t length = rank == 0 ? 1 : x.dim(axis);
    const int64_t inner = rank == 0 ? 1 : x.size(axis + 1, rank);
    const int64_t outer = x.size() / (length * inner);
    const char* from = x.as<char>();
    char* to = context.output(0).mut<char>();
    const int64_t size = x.dtype.bits / 8;
    if (inner == 1) {
      return over(context, outer, row_grain(length), [&](int64_t begin, int64_t end) {
        const int64_t at = begin * length * size;
        functions_.rows(from + at, to + at, end - begin, length, rule_);
      });
    }
    const int64_t groups = (inner + kCumulativeColumns - 1) / kCumulativeColumns;
    over(context, outer * groups, row_grain(length * std::min(inner, kCumulativeColumns)),
         [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             const int64_t column = i % groups * kCumulativeColumns;
             const int64_t at = (i / groups * length * inner + column) * size;
             functions_.columns(from + at, to + at, length, inner,
                                std::min(kCumulativeColumns, inner - column), rule_);
           }
         });
  }

 private:
  std::string op_;
  CumulativeRule rule_;
  CumulativeFunctions functions_;
};

KernelDef define(const char* op, int32_t since) {
  KernelDef def{op, since};
  def.create = make<Cumulative>;
  def.dtypes = {{0, dtypes_of(CumulativeTypes{})}, {1, {kit::kInt32, kit::kInt64}}};
  def.aliases = {{0, 0}};
  return def;
}

}  // namespace

KernelSpan cumulative_kernels() {
  KernelSpan kernels;
  kernels.push_back(define("CumSum", 11));
  kernels.push_back(define("CumProd", 26));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
