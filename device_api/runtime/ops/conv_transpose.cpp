// SPDX-License-Identifier: Apache-2.0
// Shape of ConvTranspose.
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

void conv_transpose_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const Dims& w = context.input(1).dims;
  const Dims space = spatial_dims(context.input(0), "ConvTranspose");
  const int64_t group = context.node().integer("group", 1);
  kit::require(w.size() == x.size() && group > 0 && w[0] == x[1] && x[1] % group == 0,
               "ConvTranspose: X ", to_string(x), " and W ", to_string(w), " with group ", group,
               ": ranks must be equal, W's first dim the channels of X, and group divide them");
  const Window window(context.node(), Dims(w.begin() + 2, w.end()));
  const size_t rank = space.size();
  const Dims given = context.node().integers("output_shape");
  Dims extra = context.node().integers("output_padding");
  if (extra.empty()) extra.assign(rank, 0);
  // Some exporters give batch and channel too.
  kit::require(given.empty() || given.size() == rank || given.size() == rank + 2,
               "ConvTranspose: output_shape ", to_string(given), " must have ", rank, " entries");
  kit::require(extra.size() == rank, "ConvTranspose: output_padding ", to_string(extra),
               " must have ", rank, " entries");
  check_window_values("ConvTranspose", "output_padding", extra, 0);
  const int64_t channels =
      checked_multiply(w[1], group, "ConvTranspose", "group times W's second dim");
  if (context.has_input(2)) {
    kit::require(context.input(2).dims == Dims{channels}, "ConvTranspose: B ",
                 to_string(context.input(2).dims), " must be ", to_string({channels}));
  }
  Dims out = {x[0], channels};
  for (size_t i = 0; i < rank; ++i) {
    constexpr std::string_view kWhat = "the output extent from strides and X";
    int64_t full = checked_multiply(window.strides[i], space[i] - 1, "ConvTranspose", kWhat);
    full = checked_add(full, extra[i], "ConvTranspose", kWhat);
    full = checked_add(full, window.span(i), "ConvTranspose", kWhat);
    int64_t extent = full - window.padding(i);
    if (!given.empty()) {
      extent = given[given.size() - rank + i];
    } else if (window.same()) {
      extent = checked_multiply(space[i], window.strides[i], "ConvTranspose", kWhat);
    }
    if (space[i] == 0) extent = 0;
    kit::require(extent >= 0, "ConvTranspose: pads ", to_string(window.pads),
                 " take more than the ", full, " elements of output axis ", i);
    out.push_back(extent);
  }
  checked_size(out, "ConvTranspose");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> conv_transpose_ops() { return {{"ConvTranspose", 1, 0, conv_transpose_shape}}; }

}  // namespace chipdock::runtime
