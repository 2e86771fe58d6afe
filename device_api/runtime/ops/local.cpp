// SPDX-License-Identifier: Apache-2.0
// Shapes of LRN, Shrink, Det and TensorScatter.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void like_input(ShapeContext& context) { set_like_input(context, context.input(0).dims); }

void det_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  kit::require(x.size() >= 2 && x[x.size() - 1] == x[x.size() - 2], "Det: X ", to_string(x),
               " must end in a square");
  set_like_input(context, Dims(x.begin(), x.end() - 2));
}

void tensor_scatter_shape(ShapeContext& context) {
  const Dims& cache = context.input(0).dims;
  const Dims& update = context.input(1).dims;
  const int64_t axis =
      axis_of(context, context.node().integer("axis", -2), context.input(0).rank());
  bool fits = update.size() == cache.size() && axis > 0;
  for (size_t i = 0; fits && i < cache.size(); ++i) {
    fits = static_cast<int64_t>(i) == axis ? update[i] <= cache[i] : update[i] == cache[i];
  }
  kit::require(fits, "TensorScatter: update ", to_string(update), " does not fit the cache ",
               to_string(cache), " along axis ", axis);
  if (context.has_input(2)) {
    kit::require(context.input(2).dims == Dims{cache[0]}, "TensorScatter: write_indices ",
                 to_string(context.input(2).dims), " must be ", to_string({cache[0]}));
  }
  set_like_input(context, cache);
}

}  // namespace

std::vector<Op> local_ops() {
  return {{"LRN", 1, 0, like_input},
          {"Shrink", 9, 0, like_input},
          {"Det", 11, 0, det_shape},
          {"TensorScatter", 24, 0, tensor_scatter_shape}};
}

}  // namespace chipdock::runtime
