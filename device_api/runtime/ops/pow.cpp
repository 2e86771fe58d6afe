// SPDX-License-Identifier: Apache-2.0
// Shape of Pow: base and exponent broadcast, the dtype is the base's.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void power(ShapeContext& context) {
  const ShapeInput& base = context.input(0);
  context.set(0, broadcast(base.dims, context.input(1).dims, "Pow"), base.dtype);
}

}  // namespace

std::vector<Op> pow_ops() { return {{"Pow", 7, 0, power}}; }

}  // namespace chipdock::runtime
