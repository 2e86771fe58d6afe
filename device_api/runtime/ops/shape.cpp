// SPDX-License-Identifier: Apache-2.0
// Shapes of Shape and Size, which the host answers itself from the extents it knows.
#include <algorithm>
#include <cstdint>

#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void shape_shape(ShapeContext& context) {
  const int64_t rank = context.input(0).rank();
  int64_t start = context.node().integer("start", 0);
  int64_t end = context.node().integer("end", INT64_MAX);
  start = std::clamp(start < 0 ? start + rank : start, int64_t{0}, rank);
  end = std::clamp(end < 0 ? end + rank : end, start, rank);
  context.set(0, {end - start}, kit::kInt64);
}

void size_shape(ShapeContext& context) { context.set(0, {}, kit::kInt64); }

}  // namespace

std::vector<Op> shape_ops() {
  return {{"Shape", 1, 0, shape_shape, 0, kOpShapeOnly},
          {"Size", 1, 0, size_shape, 0, kOpShapeOnly}};
}

}  // namespace chipdock::runtime
