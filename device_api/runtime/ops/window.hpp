// SPDX-License-Identifier: Apache-2.0
// Sliding windows as convolution and pooling share them: attributes, automatic padding, output
// extents.
#ifndef CHIPDOCK_RUNTIME_OPS_WINDOW_HPP_
#define CHIPDOCK_RUNTIME_OPS_WINDOW_HPP_

#include <algorithm>

#include "ops/op.hpp"

namespace chipdock::runtime {

/// Largest kernel extent, stride, dilation or padding: products of two of them fit int64.
constexpr int64_t kWindowLimit = INT32_MAX;

[[noreturn]] inline void fail_window_overflow(std::string_view op, std::string_view what) {
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": ", what, " does not fit int64");
}
inline int64_t checked_add(int64_t a, int64_t b, std::string_view op, std::string_view what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail_window_overflow(op, what);
  return sum;
}
inline int64_t checked_multiply(int64_t a, int64_t b, std::string_view op, std::string_view what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail_window_overflow(op, what);
  return product;
}

/// Fails unless every value of the attribute lies within [lowest, kWindowLimit].
inline void check_window_values(std::string_view op, std::string_view name, const Dims& values,
                                int64_t lowest) {
  for (const int64_t value : values) {
    if (value >= lowest && value <= kWindowLimit) continue;
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": ", name, " ", to_string(values), " has the value ",
              value, ", allowed are ", lowest, " to ", kWindowLimit,
              value < lowest ? "" : ": beyond, the extent of a window does not fit int64");
  }
}

/// Window attributes of one node with defaults filled in, per spatial axis.
struct Window {
  Dims kernel, strides, dilations, pads;  ///< pads: all begins, then all ends.
  std::string auto_pad;
  std::string op;

  Window(const kit::NodeView& node, Dims kernel_shape)
      : kernel(std::move(kernel_shape)),
        strides(node.integers("strides")),
        dilations(node.integers("dilations")),
        pads(node.integers("pads")),
        auto_pad(node.text("auto_pad", "NOTSET")),
        op(node.op()) {
    const size_t rank = kernel.size();
    fill(strides, rank, 1, "strides");
    fill(dilations, rank, 1, "dilations");
    fill(pads, 2 * rank, 0, "pads");
    check_window_values(op, "kernel_shape", kernel, 1);
    check_window_values(op, "strides", strides, 1);
    check_window_values(op, "dilations", dilations, 1);
    check_window_values(op, "pads", pads, 0);
    int64_t positions = 1;
    for (const int64_t size : kernel) {
      if (__builtin_mul_overflow(positions, size, &positions))
        fail_window_overflow(op, "the product of kernel_shape " + to_string(kernel));
    }
    kit::require(auto_pad == "NOTSET" || auto_pad == "VALID" || auto_pad == "SAME_UPPER" ||
                     auto_pad == "SAME_LOWER",
                 op, ": auto_pad ", auto_pad,
                 " is unknown, allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER");
  }

  bool same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  int64_t span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  int64_t padding(size_t i) const {
    return auto_pad == "NOTSET" ? pads[i] + pads[i + kernel.size()] : 0;
  }

  /// Extent of output axis i over `in` elements.
  int64_t extent(size_t i, int64_t in, bool ceil_mode) const {
    if (same()) return in / strides[i] + (in % strides[i] != 0);
    const int64_t padded = checked_add(in, padding(i), op, "the padded input");
    const int64_t free = padded - span(i);
    const bool ceil = ceil_mode && auto_pad != "VALID";
    // Rounding up, a window that reaches out by less than a stride is there once, in part.
    if (free < 0 && (!ceil || free <= -strides[i])) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": kernel ", to_string(kernel), " with dilations ",
                to_string(dilations), " spans ", span(i), " on spatial axis ", i,
                ", more than the padded input of ", padded);
    }
    if (free < 0) return in + pads[i] > 0 ? 1 : 0;
    if (!ceil) return free / strides[i] + 1;
    const int64_t out = free / strides[i] + (free % strides[i] != 0) + 1;
    // A window that would start in the end padding is not counted.
    const int64_t start = checked_multiply(out - 1, strides[i], op, "the last window's start");
    return start >= in + pads[i] ? out - 1 : out;
  }

 private:
  void fill(Dims& values, size_t count, int64_t value, const char* name) const {
    if (values.empty()) values.assign(count, value);
    kit::require(values.size() == count, op, ": ", name, " ", to_string(values), " must have ",
                 count, " entries");
  }
};

/// The spatial part of an input: dims after batch and channel.
inline Dims spatial_dims(const ShapeInput& input, std::string_view op) {
  kit::require(input.rank() >= 3, op, ": input ", to_string(input.dims),
               " must have rank 3 or more: batch, channel, then spatial axes");
  return Dims(input.dims.begin() + 2, input.dims.end());
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_OPS_WINDOW_HPP_
