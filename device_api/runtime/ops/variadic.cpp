// SPDX-License-Identifier: Apache-2.0
// Shapes of Max, Min, Sum, Mean: all inputs broadcast.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void fold(ShapeContext& context) {
  Dims dims = context.input(0).dims;
  for (size_t i = 1; i < context.input_count(); ++i) {
    dims = broadcast(dims, context.input(i).dims, context.node().op());
  }
  context.set(0, std::move(dims), context.input(0).dtype);
}

}  // namespace

std::vector<Op> variadic_ops() {
  return {{"Max", 6, 0, fold}, {"Min", 6, 0, fold}, {"Sum", 6, 0, fold}, {"Mean", 6, 0, fold}};
}

}  // namespace chipdock::runtime
