// SPDX-License-Identifier: Apache-2.0
// Shapes of the pooling operators.
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

void pool_shape(ShapeContext& context) {
  const std::string op(context.node().op());
  const Dims& x = context.input(0).dims;
  const Dims space = spatial_dims(context.input(0), op);
  const Dims kernel = context.node().integers("kernel_shape");
  kit::require(kernel.size() == space.size(), op, ": kernel_shape ", to_string(kernel),
               " must have one entry for each spatial axis of X ", to_string(x));
  const Window window(context.node(), kernel);
  const bool ceil_mode = context.node().integer("ceil_mode", 0) != 0;
  Dims out = {x[0], x[1]};
  for (size_t i = 0; i < space.size(); ++i) {
    out.push_back(window.extent(i, space[i], ceil_mode));
  }
  checked_size(out, op);
  context.set(1, out, kit::kInt64);
  context.set(0, std::move(out));
}

void global_pool_shape(ShapeContext& context) {
  const std::string_view op = context.node().op();
  const Dims& x = context.input(0).dims;
  kit::require(x.size() >= 2, op, ": X ", to_string(x), " must have rank 2 or more");
  Dims out(x.size(), 1);
  out[0] = x[0];
  out[1] = x[1];
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> pool_ops() {
  return {{"MaxPool", 1, 0, pool_shape},
          {"AveragePool", 1, 0, pool_shape},
          {"LpPool", 2, 0, pool_shape},
          {"GlobalAveragePool", 1, 0, global_pool_shape},
          {"GlobalMaxPool", 1, 0, global_pool_shape},
          {"GlobalLpPool", 2, 0, global_pool_shape}};
}

}  // namespace chipdock::runtime
