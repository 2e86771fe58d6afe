// SPDX-License-Identifier: Apache-2.0
// Operators of two broadcast tensors: arithmetic, comparison, logic, bits. What is computed and how
// it is broadcast stands in elementwise/; this file knows operators and attributes.
#include "ops/elementwise/arithmetic.hpp"

namespace chipdock::plugin::cpu {
namespace {

struct Operator {
  const char* op;
  int32_t since;
  Binary function;
  char types;  // f: floats, n: numbers, e: numbers and bool, b: bool, i: integers, p: PRelu's.
};

constexpr Operator kOperators[] = {{"Add", 7, Binary::kAdd, 'n'},
                                   {"Sub", 7, Binary::kSub, 'n'},
                                   {"Mul", 7, Binary::kMul, 'n'},
                                   {"Div", 7, Binary::kDiv, 'n'},
                                   {"Mod", 10, Binary::kMod, 'n'},
                                   {"PRelu", 7, Binary::kPRelu, 'p'},
                                   {"Equal", 7, Binary::kEqual, 'e'},
                                   {"Less", 7, Binary::kLess, 'n'},
                                   {"LessOrEqual", 12, Binary::kLessOrEqual, 'n'},
                                   {"Greater", 7, Binary::kGreater, 'n'},
                                   {"GreaterOrEqual", 12, Binary::kGreaterOrEqual, 'n'},
                                   {"And", 7, Binary::kAnd, 'b'},
                                   {"Or", 7, Binary::kOr, 'b'},
                                   {"Xor", 7, Binary::kXor, 'b'},
                                   {"BitwiseAnd", 18, Binary::kBitwiseAnd, 'i'},
                                   {"BitwiseOr", 18, Binary::kBitwiseOr, 'i'},
                                   {"BitwiseXor", 18, Binary::kBitwiseXor, 'i'},
                                   {"BitShift", 11, Binary::kShiftLeft, 'i'}};

std::vector<chipdock_dtype> types_of(char kind) {
  switch (kind) {
    case 'b':
      return {kit::kBool};
    case 'i':
      return dtypes_of(IntegerTypes{});
    case 'p':
      return dtypes_of(FloatTypes{} + Types<int32_t, int64_t, uint32_t, uint64_t>{});
    case 'e':
      return dtypes_of(NumberTypes{} + Types<bool>{});
    default:
      return dtypes_of(NumberTypes{});
  }
}

Binary function_of(const kit::NodeView& node) {
  for (const Operator& o : kOperators) {
    if (node.op() != o.op) continue;
    if (o.function == Binary::kMod && node.integer("fmod", 0) != 0) return Binary::kFmod;
    if (o.function == Binary::kShiftLeft) {
      const std::string direction = node.text("direction", "");
      kit::require(direction == "LEFT" || direction == "RIGHT", "BitShift: direction is '",
                   direction, "', allowed are LEFT and RIGHT");
      return direction == "LEFT" ? Binary::kShiftLeft : Binary::kShiftRight;
    }
    return o.function;
  }
  kit::fail(CHIPDOCK_UNSUPPORTED, node.op(), " is not an operator of two tensors");
}

class BinaryKernel final : public Kernel {
 public:
  explicit BinaryKernel(const kit::NodeView& node)
      : op_(node.op()), function_(function_of(node), node.input_dtype(0), node.op()) {}

  void run(const Context& context) const override {
    apply_broadcast(context, function_, context.input(0), context.input(1), context.output(0), op_);
  }

 private:
  std::string op_;
  BinaryFunction function_;
};

}  // namespace

KernelSpan binary_kernels() {
  KernelSpan kernels;
  for (const Operator& o : kOperators) {
    KernelDef def{o.op, o.since};
    def.create = make<BinaryKernel>;
    const bool truth = is_comparison(o.function) || o.types == 'b';
    def.dtypes = {{0, types_of(o.types)}};
    if (truth) def.dtypes.push_back({-1, {kit::kBool}});
    if (!is_comparison(o.function)) def.aliases = {{0, 0}, {1, 0}};
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
