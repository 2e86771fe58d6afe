// SPDX-License-Identifier: Apache-2.0
// Sliding windows as convolution and pooling kernels see them: three spatial axes, missing ones of
// size 1.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_WINDOW_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_WINDOW_HPP_

#include <algorithm>

#include "kernel.hpp"
#include "simd/patches.hpp"

namespace chipdock::plugin::cpu {

/// All extents of one call: depth, height, width.
struct Space : SpaceFields {
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t span(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  /// Every output element is one input element: no window at all.
  bool pointwise() const {
    for (int i = 0; i < 3; ++i) {
      if (kernel[i] != 1 || stride[i] != 1 || pad[i] != 0 || in[i] != out[i]) return false;
    }
    return true;
  }
  /// Width in which no window moves: each column is on its own.
  bool flat_width() const {
    return kernel[2] == 1 && stride[2] == 1 && pad[2] == 0 && pad_end[2] == 0 && in[2] == out[2];
  }
  /// The same convolution with a flat width merged into the height, whose steps are then that much
  /// longer, so that the innermost axis is the long one: 5x1 over 2048x1 is 5 over 2048.
  void merge_flat_width() {
    for (int i = 0; i < 2 && flat_width() && (stride[1] == 1 || in[2] == 1); ++i) {
      const int64_t width = in[2];
      in[2] = in[1] * width, out[2] = out[1] * width;
      pad[2] = pad[1] * width, pad_end[2] = pad_end[1] * width;
      kernel[2] = kernel[1], stride[2] = stride[1], dilation[2] = dilation[1] * width;
      in[1] = in[0], out[1] = out[0], pad[1] = pad[0], pad_end[1] = pad_end[0];
      kernel[1] = kernel[0], stride[1] = stride[0], dilation[1] = dilation[0];
      in[0] = out[0] = kernel[0] = stride[0] = dilation[0] = 1;
      pad[0] = pad_end[0] = 0;
    }
  }
};

/// strides, dilations, pads and auto_pad of a node.
class WindowAttributes {
 public:
  explicit WindowAttributes(const kit::NodeView& node)
      : strides_(node.integers("strides")),
        dilations_(node.integers("dilations")),
        pads_(node.integers("pads")),
        auto_pad_(node.text("auto_pad", "NOTSET")) {}

  /// `x` and `y` are batch, channel and 1 to 3 spatial axes; `kernel` has the spatial axes.
  Space resolve(const Tensor& x, const Tensor& y, const int64_t* kernel, bool transposed) const {
    const int rank = x.rank - 2;
    if (rank < 1 || rank > 3) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "windows over ", rank, " spatial axes, 1 to 3 are supported");
    }
    kit::require(y.rank == x.rank, "output of rank ", y.rank, " for an input of rank ", x.rank);
    Space s;
    fill_steps(rank, s);
    for (int i = 0; i < rank; ++i) {
      const int at = 3 - rank + i;
      const size_t from = static_cast<size_t>(i);
      s.in[at] = x.dim(2 + i);
      s.out[at] = y.dim(2 + i);
      s.kernel[at] = kernel[i];
      // The window runs over the larger side: the input of a convolution, the output of a
      // transposed one.
      const int64_t large = transposed ? s.out[at] : s.in[at];
      const int64_t small = transposed ? s.in[at] : s.out[at];
      const int64_t total = (small - 1) * s.stride[at] + s.span(at) - large;
      const int64_t needed = std::max<int64_t>(total, 0);
      if (auto_pad_ == "SAME_UPPER") {
        s.pad[at] = needed / 2;
      } else if (auto_pad_ == "SAME_LOWER") {
        s.pad[at] = needed - needed / 2;
      } else if (auto_pad_ != "VALID" && !pads_.empty()) {
        s.pad[at] = pads_[from];
        s.pad_end[at] = pads_[from + static_cast<size_t>(rank)];
      }
      if (auto_pad_ == "SAME_UPPER" || auto_pad_ == "SAME_LOWER")
        s.pad_end[at] = needed - s.pad[at];
    }
    return s;
  }

  /// Strides and dilations alone, which do not depend on extents.
  void fill_steps(int rank, Space& s) const {
    for (int i = 0; i < rank; ++i) {
      const auto from = static_cast<size_t>(i);
      if (!strides_.empty()) s.stride[3 - rank + i] = strides_[from];
      if (!dilations_.empty()) s.dilation[3 - rank + i] = dilations_[from];
    }
  }

 private:
  std::vector<int64_t> strides_;
  std::vector<int64_t> dilations_;
  std::vector<int64_t> pads_;
  std::string auto_pad_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_WINDOW_HPP_
