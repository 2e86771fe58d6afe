// SPDX-License-Identifier: Apache-2.0
// Shapes of CumSum and CumProd: like the input. The axis steers no shape, so it stays on the
// device.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void cumulative(ShapeContext& context) {
  kit::require(context.input(1).size() == 1, context.node().op(), ": axis has shape ",
               to_string(context.input(1).dims), ", it is a scalar");
  context.set(0, context.input(0).dims, context.input(0).dtype);
}

}  // namespace

std::vector<Op> cumulative_ops() {
  return {{"CumSum", 11, 0, cumulative}, {"CumProd", 26, 0, cumulative}};
}

}  // namespace chipdock::runtime
