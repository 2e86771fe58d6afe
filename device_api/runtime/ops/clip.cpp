// SPDX-License-Identifier: Apache-2.0
// Shape of Clip: like the input; bounds that are inputs are single elements.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void clip(ShapeContext& context) {
  for (size_t i = 1; i < 3; ++i) {
    if (!context.has_input(i)) continue;
    kit::require(context.input(i).size() == 1, "Clip: input ", i, " has shape ",
                 to_string(context.input(i).dims), ", a bound is a scalar");
  }
  context.set(0, context.input(0).dims, context.input(0).dtype);
}

}  // namespace

std::vector<Op> clip_ops() { return {{"Clip", 6, 0, clip}}; }

}  // namespace chipdock::runtime
