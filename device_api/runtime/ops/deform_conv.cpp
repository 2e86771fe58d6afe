// SPDX-License-Identifier: Apache-2.0
// Shape of DeformConv: that of the convolution, with offsets and masks for each of its taps.
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

void check_taps(const ShapeContext& context, size_t input, int64_t channels, const Dims& out) {
  if (!context.has_input(input)) return;
  Dims wanted = {out[0], channels};
  wanted.insert(wanted.end(), out.begin() + 2, out.end());
  kit::require(context.input(input).dims == wanted, "DeformConv: input ", input, " is ",
               to_string(context.input(input).dims), ", it must be ", to_string(wanted));
}

void deform_conv_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const Dims& w = context.input(1).dims;
  const Dims space = spatial_dims(context.input(0), "DeformConv");
  const int64_t group = context.node().integer("group", 1);
  const int64_t offsets = context.node().integer("offset_group", 1);
  kit::require(w.size() == x.size() && group > 0 && offsets > 0 && w[0] % group == 0 &&
                   x[1] == checked_multiply(w[1], group, "DeformConv", "group times channels") &&
                   x[1] % offsets == 0,
               "DeformConv: X ", to_string(x), " and W ", to_string(w), " with group ", group,
               " and offset_group ", offsets, " do not fit");
  const Dims kernel(w.begin() + 2, w.end());
  const Window window(context.node(), kernel);
  Dims out = {x[0], w[0]};
  for (size_t i = 0; i < space.size(); ++i) out.push_back(window.extent(i, space[i], false));
  checked_size(out, "DeformConv");
  const int64_t taps = element_count(kernel) * offsets;
  check_taps(context, 2, taps * static_cast<int64_t>(space.size()), out);
  check_taps(context, 4, taps, out);
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> deform_conv_ops() { return {{"DeformConv", 19, 0, deform_conv_shape}}; }

}  // namespace chipdock::runtime
