// SPDX-License-Identifier: Apache-2.0
// Shapes of ArgMax and ArgMin: one axis goes, the result is int64.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void arg(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const std::string op(context.node().op());
  const int64_t axis = kit::normalize_axis(context.node().integer("axis", 0), x.rank(), op.c_str());
  const auto at = static_cast<size_t>(axis);
  Dims dims = x.dims;
  if (context.node().integer("keepdims", 1) != 0) {
    dims[at] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  kit::require(x.dims[at] > 0 || checked_size(dims, op) == 0, op, ": axis ", axis, " of shape ",
               to_string(x.dims), " has no element to choose from, at least one is needed");
  context.set(0, std::move(dims), kit::kInt64);
}

}  // namespace

std::vector<Op> arg_ops() { return {{"ArgMax", 1, 0, arg}, {"ArgMin", 1, 0, arg}}; }

}  // namespace chipdock::runtime
