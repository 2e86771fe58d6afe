// SPDX-License-Identifier: Apache-2.0
// Shapes of Gather, GatherElements and GatherND. Index values are the kernel's to check.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void gather_shape(ShapeContext& context) {
  const ShapeInput& data = context.input(0);
  const int64_t axis = axis_of(context, context.node().integer("axis", 0), data.rank());
  Dims to;
  append(to, data.dims, 0, axis);
  append(to, context.input(1).dims, 0, context.input(1).rank());
  append(to, data.dims, axis + 1, data.rank());
  set_like_input(context, std::move(to));
}

void gather_elements_shape(ShapeContext& context) {
  const Dims& data = context.input(0).dims;
  const Dims& indices = context.input(1).dims;
  const int64_t axis = axis_of(context, context.node().integer("axis", 0), context.input(0).rank());
  bool fits = indices.size() == data.size();
  for (size_t i = 0; fits && i < data.size(); ++i) {
    fits = static_cast<int64_t>(i) == axis || indices[i] <= data[i];
  }
  kit::require(fits, "GatherElements: indices ", to_string(indices), " must have the rank of data ",
               to_string(data), " and reach beyond it on axis ", axis, " only");
  set_like_input(context, indices);
}

void gather_nd_shape(ShapeContext& context) {
  const ShapeInput& data = context.input(0);
  const ShapeInput& indices = context.input(1);
  const int64_t batch = context.node().integer("batch_dims", 0);
  kit::require(data.rank() > 0 && indices.rank() > 0, "GatherND: data ", to_string(data.dims),
               " and indices ", to_string(indices.dims), " must have rank 1 or more");
  kit::require(batch >= 0 && batch < data.rank() && batch < indices.rank(), "GatherND: batch_dims ",
               batch, " must be less than the rank of data ", to_string(data.dims), " and indices ",
               to_string(indices.dims));
  const int64_t depth = indices.dims.back();
  bool fits = batch + depth <= data.rank();
  for (int64_t i = 0; fits && i < batch; ++i) fits = data.dims[i] == indices.dims[i];
  kit::require(fits, "GatherND: indices ", to_string(indices.dims), " with batch_dims ", batch,
               " do not fit data ", to_string(data.dims));
  Dims to;
  append(to, indices.dims, 0, indices.rank() - 1);
  append(to, data.dims, batch + depth, data.rank());
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> gather_ops() {
  return {{"Gather", 1, 0, gather_shape},
          {"GatherElements", 11, 0, gather_elements_shape},
          {"GatherND", 11, 0, gather_nd_shape}};
}

}  // namespace chipdock::runtime
