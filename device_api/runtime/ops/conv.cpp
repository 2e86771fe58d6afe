// SPDX-License-Identifier: Apache-2.0
// Shape of Conv and FusedConv.
#include "ops/fused.hpp"
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

void conv_shape(ShapeContext& context) {
  const std::string_view op = context.node().op();
  const Dims& x = context.input(0).dims;
  const Dims& w = context.input(1).dims;
  const Dims space = spatial_dims(context.input(0), op);
  const int64_t group = context.node().integer("group", 1);
  kit::require(w.size() == x.size(), op, ": X ", to_string(x), " and W ", to_string(w),
               " must have one rank");
  kit::require(
      group > 0 && w[0] % group == 0 &&
          x[1] == checked_multiply(w[1], group, op, "group times W's second dim"),
      op, ": X ", to_string(x), " and W ", to_string(w), " with group ", group,
      ": channels of X must be group times W's second dim, and group must divide W's first");
  const Dims kernel(w.begin() + 2, w.end());
  const Dims given = context.node().integers("kernel_shape");
  kit::require(given.empty() || given == kernel, op, ": kernel_shape ", to_string(given),
               " must equal the spatial dims of W ", to_string(w));
  if (context.has_input(2)) {
    kit::require(context.input(2).dims == Dims{w[0]}, op, ": B ", to_string(context.input(2).dims),
                 " must be ", to_string({w[0]}));
  }
  const Window window(context.node(), kernel);
  Dims out = {x[0], w[0]};
  for (size_t i = 0; i < space.size(); ++i) out.push_back(window.extent(i, space[i], false));
  checked_size(out, op);
  set_with_residual(context, std::move(out));
}

}  // namespace

std::vector<Op> conv_ops() {
  return {{"Conv", 1, 0, conv_shape}, fused_op("FusedConv", conv_shape)};
}

}  // namespace chipdock::runtime
