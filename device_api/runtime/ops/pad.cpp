// SPDX-License-Identifier: Apache-2.0
// Shape of Pad: pads as attribute up to version 10, as input from 11, with axes from 18.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void pad_shape(ShapeContext& context) {
  const ShapeInput& data = context.input(0);
  const Dims pads =
      context.node().since_version() < 11 ? context.node().integers("pads") : context.integers(1);
  Dims axes;
  if (context.has_input(3)) {
    axes = unique_axes(context, context.integers(3), data.rank());
  } else {
    for (int64_t i = 0; i < data.rank(); ++i) axes.push_back(i);
  }
  kit::require(pads.size() == 2 * axes.size(), "Pad: pads ", to_string(pads), " must have ",
               2 * axes.size(), " entries: a begin for each padded axis, then an end for each");
  const std::string mode = context.node().text("mode", "constant");
  Dims to = data.dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& extent = to[axes[i]];
    const int64_t before = extent;
    extent = checked_extent(1, extent, pads[i], "Pad");
    extent = checked_extent(1, extent, pads[axes.size() + i], "Pad");
    kit::require(extent >= 0, "Pad: pads ", to_string(pads), " take more from axis ", axes[i],
                 " of ", to_string(data.dims), " than it has");
    kit::require(before > 0 || extent == 0 || mode == "constant", "Pad: axis ", axes[i], " of ",
                 to_string(data.dims), " is empty, mode ", mode,
                 " has nothing to show; use constant");
  }
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> pad_ops() {
  // constant_value (input 2) stays on the device.
  return {{"Pad", 2, 10, pad_shape}, {"Pad", 11, 0, pad_shape, 0b1010}};
}

}  // namespace chipdock::runtime
