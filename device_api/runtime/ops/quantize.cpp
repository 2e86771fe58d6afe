// SPDX-License-Identifier: Apache-2.0
// Shapes of QuantizeLinear and DequantizeLinear: like the input.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void like_input(ShapeContext& context) { context.set(0, context.input(0).dims); }

}  // namespace

std::vector<Op> quantize_ops() {
  return {{"QuantizeLinear", 10, 0, like_input}, {"DequantizeLinear", 10, 0, like_input}};
}

}  // namespace chipdock::runtime
