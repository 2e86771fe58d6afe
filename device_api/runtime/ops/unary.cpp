// SPDX-License-Identifier: Apache-2.0
// Shapes of functions of one tensor: the output is like the input.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void like_input(ShapeContext& context) {
  context.set(0, context.input(0).dims, context.input(0).dtype);
}

constexpr struct {
  const char* name;
  int32_t since;
} kUnary[] = {{"Abs", 6},         {"Neg", 6},        {"Exp", 6},       {"Log", 6},
              {"Sqrt", 6},        {"Reciprocal", 6}, {"Floor", 6},     {"Ceil", 6},
              {"Round", 11},      {"Sign", 9},       {"Sin", 7},       {"Cos", 7},
              {"Tan", 7},         {"Asin", 7},       {"Acos", 7},      {"Atan", 7},
              {"Sinh", 9},        {"Cosh", 9},       {"Tanh", 6},      {"Asinh", 9},
              {"Acosh", 9},       {"Atanh", 9},      {"Erf", 9},       {"Sigmoid", 6},
              {"HardSigmoid", 6}, {"Relu", 6},       {"LeakyRelu", 6}, {"Elu", 6},
              {"Selu", 6},        {"Softplus", 1},   {"Softsign", 1},  {"HardSwish", 14},
              {"Gelu", 20},       {"Celu", 12},      {"Mish", 18},     {"ThresholdedRelu", 10},
              {"Swish", 24},      {"BitwiseNot", 18}};

}  // namespace

std::vector<Op> unary_ops() {
  std::vector<Op> ops;
  for (const auto& [name, since] : kUnary) {
    Op op{name, since};
    op.shape = like_input;
    ops.push_back(op);
  }
  return ops;
}

}  // namespace chipdock::runtime
