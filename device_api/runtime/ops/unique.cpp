// SPDX-License-Identifier: Apache-2.0
// Upper bounds for Unique; the kernel reports how many values are unique.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void unique_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  const bool flat = !context.node().has("axis");
  Dims to = flat ? Dims{checked_size(input.dims, "Unique")} : input.dims;
  const int64_t axis = flat ? 0 : axis_of(context, context.node().integer("axis", 0), input.rank());
  for (size_t i = 1; i < 4; ++i) context.set(i, {to[axis]}, kit::kInt64);
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> unique_ops() { return {{"Unique", 11, 0, unique_shape, 0, kOpDataDependent}}; }

}  // namespace chipdock::runtime
