// SPDX-License-Identifier: Apache-2.0
// Sliding windows as convolution and pooling share them: attributes, automatic padding, output
// extents.
#ifndef CHIPDOCK_RUNTIME_OPS_WINDOW_HPP_
#define CHIPDOCK_RUNTIME_OPS_WINDOW_HPP_

#include <algorithm>

#include "ops/op.hpp"

namespace chipdock::runtime {

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
    for (size_t i = 0; i < rank; ++i) {
      kit::require(kernel[i] > 0 && strides[i] > 0 && dilations[i] > 0, op, ": kernel_shape ",
                   to_string(kernel), ", strides ", to_string(strides), " and dilations ",
                   to_string(dilations), " must all be 1 or more");
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
    if (same()) return (in + strides[i] - 1) / strides[i];
    const int64_t free = in + padding(i) - span(i);
    kit::require(free >= 0, op, ": kernel ", to_string(kernel), " with dilations ",
                 to_string(dilations), " spans ", span(i), " on spatial axis ", i,
                 ", more than the padded input of ", in + padding(i));
    if (!ceil_mode || auto_pad == "VALID") return free / strides[i] + 1;
    const int64_t out = (free + strides[i] - 1) / strides[i] + 1;
    // A window that would start in the end padding is not counted.
    return (out - 1) * strides[i] >= in + pads[i] ? out - 1 : out;
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
