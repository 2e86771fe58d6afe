// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin along one axis. The first NaN wins, as in numpy; of equal elements the first,
// or the last if select_last_index says so.
#include "simd/arg.hpp"

#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

class Arg final : public Kernel {
 public:
  explicit Arg(const kit::NodeView& node)
      : op_(node.op()),
        rule_{op_ == "ArgMax", node.integer("select_last_index", 0) != 0},
        axis_(node.integer("axis", 0)),
        functions_(functions_of(node.input_dtype(0))) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    if (x.size() == 0) return;
    const int64_t axis = kit::normalize_axis(axis_, x.rank, op_.c_str());
    const int64_t length = x.dim(axis);
    const int64_t inner = x.size(axis + 1, x.rank);
    const int64_t groups = (inner + kColumns - 1) / kColumns;
    const char* from = x.as<char>();
    const int64_t size = x.dtype.bits / 8;
    int64_t* to = context.output(0).mut<int64_t>();
    const int64_t tasks = x.size() / (length * inner) * groups;
    over(context, tasks, row_grain(length * std::min(inner, kColumns)),
         [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             const int64_t column = i % groups * kColumns;
             const int64_t outer = i / groups;
             const char* first = from + (outer * length * inner + column) * size;
             int64_t* y = to + outer * inner + column;
             if (inner == 1) {
               *y = functions_.row(first, length, rule_);
             } else {
               functions_.columns(first, length, inner, std::min(kColumns, inner - column), rule_,
                                  y);
             }
           }
         });
  }

 private:
  /// Neighbouring columns of one task: several cache lines of the narrowest dtype.
  static constexpr int64_t kColumns = 256;

  static ArgFunctions functions_of(chipdock_dtype type) {
    if (is(type, kit::kFloat16)) return find(ArgType::kF16);
    if (is(type, kit::kBfloat16)) return find(ArgType::kBf16);
    if (type.code == CHIPDOCK_DTYPE_FLOAT)
      return find(type.bits == 32 ? ArgType::kF32 : ArgType::kF64);
    const ArgType first = type.code == CHIPDOCK_DTYPE_INT ? ArgType::kI8 : ArgType::kU8;
    const int32_t step = type.bits == 8 ? 0 : type.bits == 16 ? 1 : type.bits == 32 ? 2 : 3;
    return find(static_cast<ArgType>(static_cast<int32_t>(first) + step));
  }
  static ArgFunctions find(ArgType type) { return CHIPDOCK_CPU_DISPATCH(arg_functions)(type); }

  std::string op_;
  ArgRule rule_;
  int64_t axis_;
  ArgFunctions functions_;
};

}  // namespace

KernelSpan arg_kernels() {
  KernelSpan kernels;
  for (const char* op : {"ArgMax", "ArgMin"}) {
    KernelDef def{op, 1};
    def.create = make<Arg>;
    def.dtypes = {{0, dtypes_of(NumberTypes{})}, {-1, {kit::kInt64}}};
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
