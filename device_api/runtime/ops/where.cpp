// SPDX-License-Identifier: Apache-2.0
// Shape of Where: condition and both choices broadcast.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void where(ShapeContext& context) {
  const ShapeInput& x = context.input(1);
  const Dims choices = broadcast(x.dims, context.input(2).dims, "Where");
  context.set(0, broadcast(context.input(0).dims, choices, "Where"), x.dtype);
}

}  // namespace

std::vector<Op> where_ops() { return {{"Where", 9, 0, where}}; }

}  // namespace chipdock::runtime
