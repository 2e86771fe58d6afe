// SPDX-License-Identifier: Apache-2.0
// Shape of TopK: k is an attribute in version 1 and an input from 10 on.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void top_k_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  const int64_t axis = axis_of(context, context.node().integer("axis", -1), input.rank());
  int64_t k = 0;
  if (context.node().since_version() < 10) {
    k = context.node().integer("k", -1);
  } else {
    const std::vector<int64_t> given = context.integers(1);
    kit::require(given.size() == 1, "TopK: k has ", given.size(), " elements, must be 1");
    k = given[0];
  }
  kit::require(k >= 0 && k <= input.dims[axis], "TopK: k is ", k, ", axis ", axis, " of input ",
               to_string(input.dims), " allows 0 to ", input.dims[axis]);
  Dims to = input.dims;
  to[axis] = k;
  context.set(1, to, kit::kInt64);
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> top_k_ops() {
  return {{"TopK", 1, 9, top_k_shape}, {"TopK", 10, 0, top_k_shape, 1 << 1}};
}

}  // namespace chipdock::runtime
