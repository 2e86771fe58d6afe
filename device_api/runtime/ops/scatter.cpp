// SPDX-License-Identifier: Apache-2.0
// Shapes of ScatterElements, its elder Scatter, and ScatterND: the output is like the data.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void scatter_elements_shape(ShapeContext& context) {
  const std::string_view op = context.node().op();
  const Dims& data = context.input(0).dims;
  const Dims& indices = context.input(1).dims;
  const int64_t axis = axis_of(context, context.node().integer("axis", 0), context.input(0).rank());
  bool fits = indices.size() == data.size();
  for (size_t i = 0; fits && i < data.size(); ++i) {
    fits = static_cast<int64_t>(i) == axis || indices[i] <= data[i];
  }
  kit::require(fits, op, ": indices ", to_string(indices), " must have the rank of data ",
               to_string(data), " and reach beyond it on axis ", axis, " only");
  kit::require(context.input(2).dims == indices, op, ": updates ", to_string(context.input(2).dims),
               " must have the shape of indices ", to_string(indices));
  set_like_input(context, data);
}

void scatter_nd_shape(ShapeContext& context) {
  const ShapeInput& data = context.input(0);
  const ShapeInput& indices = context.input(1);
  kit::require(data.rank() > 0 && indices.rank() > 0 && indices.dims.back() <= data.rank(),
               "ScatterND: indices ", to_string(indices.dims), " do not fit data ",
               to_string(data.dims),
               "; the last dim may be at most the rank of the data, and both need rank 1 or more");
  Dims expected(indices.dims.begin(), indices.dims.end() - 1);
  append(expected, data.dims, indices.dims.back(), data.rank());
  kit::require(context.input(2).dims == expected, "ScatterND: updates ",
               to_string(context.input(2).dims), " must have shape ", to_string(expected),
               " for data ", to_string(data.dims), " and indices ", to_string(indices.dims));
  set_like_input(context, data.dims);
}

}  // namespace

std::vector<Op> scatter_ops() {
  return {{"Scatter", 9, 0, scatter_elements_shape},
          {"ScatterElements", 11, 0, scatter_elements_shape},
          {"ScatterND", 11, 0, scatter_nd_shape}};
}

}  // namespace chipdock::runtime
