// SPDX-License-Identifier: Apache-2.0
// Shapes of Expand and Tile.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void expand_shape(ShapeContext& context) {
  const Dims shape = context.integers(1);
  for (int64_t d : shape) {
    kit::require(d >= 0, "Expand: shape ", to_string(shape), " has a negative entry");
  }
  set_like_input(context, broadcast(context.input(0).dims, shape, "Expand"));
}

void tile_shape(ShapeContext& context) {
  const Dims repeats = context.integers(1);
  Dims to = context.input(0).dims;
  kit::require(repeats.size() == to.size(), "Tile: repeats ", to_string(repeats),
               " must have one entry for each dim of ", to_string(to));
  for (size_t i = 0; i < to.size(); ++i) {
    kit::require(repeats[i] >= 0, "Tile: repeats ", to_string(repeats), " has a negative entry");
    to[i] = checked_extent(to[i], repeats[i], 0, "Tile");
  }
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> expand_ops() {
  return {{"Expand", 8, 0, expand_shape, 1 << 1}, {"Tile", 6, 0, tile_shape, 1 << 1}};
}

}  // namespace chipdock::runtime
