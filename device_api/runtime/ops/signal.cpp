// SPDX-License-Identifier: Apache-2.0
// Shapes of DFT and STFT: the last axis holds real or complex numbers.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

int64_t scalar(const ShapeContext& context, size_t i, const char* what) {
  const std::vector<int64_t> given = context.integers(i);
  kit::require(given.size() == 1 && given[0] > 0, context.node().op(), ": ", what, " has ",
               given.size(), " elements and the value ", given.empty() ? 0 : given[0],
               ", it must be one number above 0");
  return given[0];
}

void dft_shape(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const bool inverse = context.node().integer("inverse", 0) != 0;
  const bool onesided = context.node().integer("onesided", 0) != 0;
  int64_t axis = context.node().integer("axis", 1);
  if (context.node().since_version() >= 20) {
    axis = -2;
    if (context.has_input(2)) axis = context.integers(2).at(0);
  }
  kit::require(x.rank() >= 2 && (x.dims.back() == 1 || x.dims.back() == 2), "DFT: input ",
               to_string(x.dims), "; its last axis holds 1 (real) or 2 (complex) numbers");
  axis = axis_of(context, axis, x.rank());
  kit::require(axis < x.rank() - 1, "DFT: axis ", axis, " is that of the complex numbers");
  Dims out = x.dims;
  out.back() = inverse && onesided ? 1 : 2;
  int64_t length = x.dims[static_cast<size_t>(axis)];
  if (inverse && onesided) length = 2 * (length - 1);
  if (context.has_input(1)) length = scalar(context, 1, "dft_length");
  kit::require(length > 0, "DFT: axis ", axis, " of input ", to_string(x.dims), " is too short");
  out[static_cast<size_t>(axis)] = onesided && !inverse ? length / 2 + 1 : length;
  set_like_input(context, std::move(out));
}

void stft_shape(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  kit::require(x.rank() == 3 || x.rank() == 2, "STFT: signal ", to_string(x.dims),
               ", allowed are [N,samples] and [N,samples,1 or 2]");
  const int64_t step = scalar(context, 1, "frame_step");
  const int64_t length = context.has_input(3)   ? scalar(context, 3, "frame_length")
                         : context.has_input(2) ? context.input(2).size()
                                                : 0;
  kit::require(length > 0 && length <= x.dims[1], "STFT: frames of ", length, " in a signal of ",
               x.dims[1], "; frame_length or window says how long frames are");
  const bool onesided = context.node().integer("onesided", 1) != 0;
  const bool is_real = x.rank() == 2 || x.dims[2] == 1;
  const int64_t bins = onesided && is_real ? length / 2 + 1 : length;
  set_like_input(context, {x.dims[0], (x.dims[1] - length) / step + 1, bins, 2});
}

}  // namespace

std::vector<Op> signal_ops() {
  return {{"DFT", 17, 19, dft_shape, 1 << 1},
          {"DFT", 20, 0, dft_shape, 1 << 1 | 1 << 2},
          {"STFT", 17, 0, stft_shape, 1 << 1 | 1 << 3}};
}

}  // namespace chipdock::runtime
