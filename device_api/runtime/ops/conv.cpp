// SPDX-License-Identifier: Apache-2.0
// Shapes of Conv, FusedConv and the integer forms.
#include "ops/fused.hpp"
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

/// Output of image 0 and filters `filters`, with a bias of one element per filter if input `bias` is
/// given.
Dims windowed(const ShapeContext& context, size_t filters, size_t bias) {
  const std::string_view op = context.node().op();
  const Dims& x = context.input(0).dims;
  const Dims& w = context.input(filters).dims;
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
  if (context.has_input(bias)) {
    kit::require(context.input(bias).dims == Dims{w[0]}, op, ": B ",
                 to_string(context.input(bias).dims), " must be ", to_string({w[0]}));
  }
  const Window window(context.node(), kernel);
  Dims out = {x[0], w[0]};
  for (size_t i = 0; i < space.size(); ++i) out.push_back(window.extent(i, space[i], false));
  checked_size(out, op);
  return out;
}

void conv_shape(ShapeContext& context) { set_with_residual(context, windowed(context, 1, 2)); }
void conv_integer_shape(ShapeContext& context) {
  context.set(0, windowed(context, 1, context.input_count()));
}
void qlinear_conv_shape(ShapeContext& context) { context.set(0, windowed(context, 3, 8)); }

}  // namespace

std::vector<Op> conv_ops() {
  return {{"Conv", 1, 0, conv_shape},
          fused_op("FusedConv", conv_shape),
          {"ConvInteger", 10, 0, conv_integer_shape},
          {"QLinearConv", 10, 0, qlinear_conv_shape}};
}

}  // namespace chipdock::runtime
