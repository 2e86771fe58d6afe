// SPDX-License-Identifier: Apache-2.0
// Upper bounds for NonZero and Compress; the kernel reports how much came out.

#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void nonzero_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  Dims to = {input.rank(), checked_size(input.dims, "NonZero")};
  checked_size(to, "NonZero");
  context.set(0, std::move(to), kit::kInt64);
}

void compress_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  const ShapeInput& condition = context.input(1);
  kit::require(condition.rank() == 1, "Compress: condition ", to_string(condition.dims),
               " must have rank 1");
  const bool flat = !context.node().has("axis");
  Dims to = flat ? Dims{checked_size(input.dims, "Compress")} : input.dims;
  const int64_t axis = flat ? 0 : axis_of(context, context.node().integer("axis", 0), input.rank());
  kit::require(condition.dims[0] <= to[axis], "Compress: condition has ", condition.dims[0],
               " entries, at most the ", to[axis], " of ",
               flat ? "the flat input " : "the axis of input ", to_string(input.dims),
               " are allowed");
  to[axis] = condition.dims[0];
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> select_ops() {
  return {{"NonZero", 9, 0, nonzero_shape, 0, kOpDataDependent},
          {"Compress", 9, 0, compress_shape, 0, kOpDataDependent}};
}

}  // namespace chipdock::runtime
