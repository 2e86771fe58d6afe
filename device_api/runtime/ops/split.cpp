// SPDX-License-Identifier: Apache-2.0
// Shapes of Split: by sizes (attribute, later input), by num_outputs, or in as many equal parts as
// there are outputs.
#include <algorithm>

#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

Dims split_sizes(const ShapeContext& context, int64_t extent, int64_t axis) {
  const int64_t outputs = static_cast<int64_t>(context.output_count());
  if (context.has_input(1) || context.node().has("split")) {
    kit::require(!(context.has_input(1) && context.node().has("num_outputs")),
                 "Split: split and num_outputs are both given, one is allowed");
    Dims sizes = input_or_attribute(context, 1, "split");
    int64_t sum = 0;
    for (int64_t size : sizes) {
      kit::require(size >= 0, "Split: split ", to_string(sizes), " has a negative entry");
      sum = checked_extent(1, sum, size, "Split");
    }
    kit::require(sum == extent && static_cast<int64_t>(sizes.size()) == outputs, "Split: split ",
                 to_string(sizes), " must have ", outputs, " entries (the outputs) with sum ",
                 extent, " (axis ", axis, " of ", to_string(context.input(0).dims), ")");
    return sizes;
  }
  const int64_t parts = context.node().integer("num_outputs", outputs);
  kit::require(parts == outputs && parts > 0, "Split: num_outputs is ", parts, ", the node has ",
               outputs, " outputs");
  const bool uneven = context.node().has("num_outputs");
  kit::require(uneven || extent % parts == 0, "Split: extent ", extent, " of axis ", axis,
               " does not divide into ", parts, " equal outputs; give split or num_outputs");
  const int64_t part = (extent + parts - 1) / parts;
  Dims sizes;
  int64_t rest = extent;
  for (int64_t i = 0; i < parts; ++i) {
    sizes.push_back(std::min(part, rest));
    rest -= sizes.back();
  }
  return sizes;
}

void split_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  const int64_t axis = axis_of(context, context.node().integer("axis", 0), input.rank());
  const Dims sizes = split_sizes(context, input.dims[axis], axis);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dims to = input.dims;
    to[axis] = sizes[i];
    context.set(i, std::move(to), input.dtype);
  }
}

}  // namespace

std::vector<Op> split_ops() { return {{"Split", 2, 0, split_shape, 1 << 1}}; }

}  // namespace chipdock::runtime
