// SPDX-License-Identifier: Apache-2.0
// Max, Min, Sum, Mean of any number of broadcast tensors. The output is made block by block, so
// partial results stay in cache, and half types are rounded once.
#include "ops/elementwise/arithmetic.hpp"
#include "ops/elementwise/broadcast.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Elements folded at a time: a few blocks of every dtype fit the first-level cache.
constexpr int64_t kFold = kBlock;

class Variadic final : public Kernel {
 public:
  explicit Variadic(const kit::NodeView& node)
      : op_(node.op()),
        type_(node.input_dtype(0)),
        half_(half_codec(type_)),
        compute_type_(half_ ? kit::kFloat32 : type_),
        pair_(function_of(node.op()), type_, node.op()),
        fold_(function_of(node.op()), compute_type_, node.op()),
        scale_(Binary::kDiv, compute_type_, node.op()),
        mean_(node.op() == "Mean") {}

  void run(const Context& context) const override {
    const Tensor& out = context.output(0);
    const int64_t n = out.size();
    if (n == 0) return;
    if (context.input_count == 2 && !mean_) {
      return apply_broadcast(context, pair_, context.input(0), context.input(1), out, op_);
    }
    std::vector<Broadcast<1>> plans;
    plans.reserve(context.input_count);
    for (uint32_t k = 0; k < context.input_count; ++k) {
      plans.emplace_back(out, std::array<const Tensor*, 1>{&context.input(k)}, op_);
    }
    over(context, n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kFold) {
        block(context, plans, at, std::min(end, at + kFold));
      }
    });
  }

 private:
  static Binary function_of(std::string_view op) {
    if (op == "Max") return Binary::kMax;
    if (op == "Min") return Binary::kMin;
    return Binary::kAdd;
  }

  void block(const Context& context, const std::vector<Broadcast<1>>& plans, int64_t begin,
             int64_t end) const {
    alignas(64) float wide[kFold];
    const int64_t size = type_.bits / 8;
    const int64_t n = end - begin;
    char* to = context.output(0).mut<char>() + begin * size;
    char* total = half_ ? reinterpret_cast<char*>(wide) : to;
    for (uint32_t k = 0; k < context.input_count; ++k) {
      const char* from = context.input(k).as<char>();
      plans[k].walk(begin, end, end, [&](const int64_t* offset, int64_t at, int64_t count) {
        add(from + offset[0] * size, plans[k].still(0), total, at - begin, count, k == 0);
      });
    }
    if (mean_) divide(total, n, context.input_count);
    if (half_) half_.narrow(wide, reinterpret_cast<uint16_t*>(to), n);
  }

  /// Folds n elements of one input (or one of them, repeated) into `total` from element `done` on.
  void add(const char* x, bool still, char* total, int64_t done, int64_t n, bool first) const {
    alignas(64) float wide[kFold];
    if (half_) {
      half_.widen(reinterpret_cast<const uint16_t*>(x), wide, still ? 1 : n);
      x = reinterpret_cast<const char*>(wide);
    }
    const int64_t size = fold_.input_size();
    char* to = total + done * size;
    if (!first) {
      fold_.apply(to, x, to, n, still ? Operands::kScalarRight : Operands::kBoth);
    } else if (still) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, x, static_cast<size_t>(size));
    } else {
      std::memcpy(to, x, static_cast<size_t>(n * size));
    }
  }

  void divide(char* total, int64_t n, uint32_t by) const {
    const double count = by;
    const float single = static_cast<float>(by);
    const bool is_double = is(compute_type_, kit::kFloat64);
    const void* divisor = is_double ? static_cast<const void*>(&count) : &single;
    scale_.apply(total, divisor, total, n, Operands::kScalarRight);
  }

  std::string op_;
  chipdock_dtype type_;
  HalfCodec half_;
  chipdock_dtype compute_type_;
  BinaryFunction pair_;  ///< On the operator's dtype, for the usual two inputs.
  BinaryFunction fold_;  ///< On the dtype that is computed in.
  BinaryFunction scale_;
  bool mean_;
};

KernelDef define(const char* op, std::vector<chipdock_dtype> types) {
  KernelDef def{op, 6};  // Version 6 of Max and Min is in force at opset 7; shapes are equal there.
  def.create = make<Variadic>;
  def.dtypes = {{0, std::move(types)}};
  return def;
}

}  // namespace

KernelSpan variadic_kernels() {
  KernelSpan kernels;
  kernels.push_back(define("Max", dtypes_of(NumberTypes{})));
  kernels.push_back(define("Min", dtypes_of(NumberTypes{})));
  kernels.push_back(define("Sum", dtypes_of(FloatTypes{})));
  kernels.push_back(define("Mean", dtypes_of(FloatTypes{})));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
