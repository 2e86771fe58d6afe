// SPDX-License-Identifier: Apache-2.0
// Shape of Concat.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void concat_shape(ShapeContext& context) {
  Dims to = context.input(0).dims;
  const int64_t axis = axis_of(context, context.node().integer("axis", 1), context.input(0).rank());
  for (size_t i = 1; i < context.input_count(); ++i) {
    const ShapeInput& input = context.input(i);
    bool fits = input.dims.size() == to.size();
    for (size_t d = 0; fits && d < to.size(); ++d) {
      fits = static_cast<int64_t>(d) == axis || input.dims[d] == to[d];
    }
    kit::require(fits, "Concat: input ", i, " has shape ", to_string(input.dims), ", input 0 ",
                 to_string(context.input(0).dims), "; they may differ on axis ", axis, " only");
    kit::require(kit::operator==(input.dtype, context.input(0).dtype), "Concat: input ", i, " is ",
                 kit::dtype_name(input.dtype), ", input 0 ",
                 kit::dtype_name(context.input(0).dtype), "; all must be the same");
    to[axis] = checked_extent(1, to[axis], input.dims[axis], "Concat");
  }
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> concat_ops() { return {{"Concat", 4, 0, concat_shape}}; }

}  // namespace chipdock::runtime
