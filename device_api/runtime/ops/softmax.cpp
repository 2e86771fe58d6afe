// SPDX-License-Identifier: Apache-2.0
// Shapes of Softmax, LogSoftmax, Hardmax: like the input, with an axis that the input has.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void softmax(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const bool flattens = context.node().since_version() < 13;
  const int64_t axis = context.node().integer("axis", flattens ? 1 : -1);
  // Flattening allows the axis behind the last one: rows of one element.
  const bool behind = flattens && axis == x.rank();
  if (!behind && !(x.rank() == 0 && (axis == 0 || axis == -1 || flattens))) {
    kit::normalize_axis(axis, x.rank(), std::string(context.node().op()).c_str());
  }
  context.set(0, x.dims, x.dtype);
}

}  // namespace

std::vector<Op> softmax_ops() {
  return {{"Softmax", 1, 0, softmax}, {"LogSoftmax", 1, 0, softmax}, {"Hardmax", 1, 0, softmax}};
}

}  // namespace chipdock::runtime
