// SPDX-License-Identifier: Apache-2.0
// Conv and FusedConv through oneDNN, where measurement shows it ahead of conv.cpp although tensors are reordered
// around each call: few input channels, and images so small that our panels are mostly edge.
#include <algorithm>
#include <cstring>

#include "onednn.hpp"
#include "ops/fused/activation.hpp"
#include "ops/window.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

using onednn::ConvShape;

/// Output rows [begin, end) of one image as a convolution of its own.
ConvShape slab_of(const Space& s, int64_t in_channels, int64_t out_channels, int64_t begin,
                  int64_t end, int64_t& first_row) {
  ConvShape shape = {};
  shape.in_channels = in_channels;
  shape.out_channels = out_channels;
  shape.in_plane = s.in_size();
  shape.out_plane = s.out_size();
  shape.in_width = s.in[2];
  shape.out_height = end - begin;
  shape.out_width = s.out[2];
  for (int i = 0; i < 2; ++i) {
    shape.kernel[i] = s.kernel[i + 1];
    shape.stride[i] = s.stride[i + 1];
    shape.dilation[i] = s.dilation[i + 1];
  }
  const int64_t top = begin * s.stride[1] - s.pad[1];
  const int64_t bottom = (end - 1) * s.stride[1] - s.pad[1] + s.span(1);
  first_row = std::clamp<int64_t>(top, 0, s.in[1] - 1);
  const int64_t last_row = std::clamp<int64_t>(bottom, first_row + 1, s.in[1]);
  shape.in_height = last_row - first_row;
  shape.pad[0] = first_row - top;
  shape.pad_end[0] = bottom - last_row;
  shape.pad[1] = s.pad[2];
  shape.pad_end[1] = (s.out[2] - 1) * s.stride[2] + s.span(2) - s.in[2] - s.pad[2];
  return shape;
}

class OnednnConv final : public Kernel {
 public:
  explicit OnednnConv(const kit::NodeView& node)
      : op_(node.op()), window_(node), activation_(node) {}

  uint64_t workspace(const Context& context) const override {
    const Space s = space(context);
    const Tensor& w = context.input(1);
    return slots(context, s) * slot_bytes(context, s) +
           (nothing_to_sum(context) ? 0 : onednn::filter_bytes(filter_shape(w)));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Space s = space(context);
    kit::require(x.dim(1) == w.dim(1), op_, ": X has ", x.dim(1), " channels, W ", w.dim(1));
    if (nothing_to_sum(context)) return start_only(context);
    const auto parts = static_cast<int64_t>(slots(context, s));
    const uint64_t part_bytes = slot_bytes(context, s);
    auto* scratch = static_cast<char*>(context.workspace);
    const void* packed = context.packed_input(1);
    if (packed == nullptr) {
      void* own = scratch + static_cast<uint64_t>(parts) * part_bytes;
      onednn::pack_filters(filter_shape(w), w.as<float>(), own);
      packed = own;
    }
    const float* bias = context.has_input(2) ? context.input(2).as<float>() : nullptr;
    const Tensor* residual = residual_input(context, op_);
    const int64_t threads = slot_count(context);
    parallel_slots(
        context, x.dim(0) * parts, std::min(threads, parts), [&](int64_t task, int64_t slot) {
          const int64_t n = task / parts;
          const int64_t begin = s.out[1] * (task % parts) / parts;
          const int64_t end = s.out[1] * (task % parts + 1) / parts;
          int64_t row = 0;
          const ConvShape shape = slab(context, s, begin, end, row);
          const float* from = x.as<float>() + n * x.dim(1) * s.in_size() + row * s.in[2];
          const int64_t at = n * y.dim(1) * s.out_size() + begin * s.out[2];
          float* to = y.mut<float>() + at;
          onednn::convolution(shape)->run(
              from, packed, bias, residual != nullptr ? residual->as<float>() + at : nullptr, to,
              scratch + static_cast<uint64_t>(slot) * part_bytes);
          activation_.apply(to, y.dim(1), (end - begin) * s.out[2], s.out_size());
        });
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    info.size = onednn::filter_bytes(filter_shape(w));
    const ConvShape shape = filter_shape(w);
    const std::string layout =
        onednn::filter_layout() + "_" + std::to_string(shape.out_channels) + "x" +
        std::to_string(shape.in_channels) + "_s" + std::to_string(shape.stride[0]) + "x" +
        std::to_string(shape.stride[1]) + "_d" + std::to_string(shape.dilation[0]) + "x" +
        std::to_string(shape.dilation[1]);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    onednn::pack_filters(filter_shape(source), source.as<float>(), target);
  }

 private:
  Space space(const Context& context) const {
    return window_.resolve(context.input(0), context.output(0), context.input(1).shape + 2, false);
  }
  /// No output, or windows that lie in the padding of an image without rows or columns.
  static bool nothing_to_sum(const Context& context) {
    return context.output(0).size() == 0 || context.input(0).size() == 0;
  }
  /// The output where the sums have no terms: what they start with, then the activation.
  void start_only(const Context& context) const {
    const Tensor& y = context.output(0);
    const int64_t plane = y.size(2, y.rank);
    const float* bias = context.has_input(2) ? context.input(2).as<float>() : nullptr;
    const Tensor* residual = residual_input(context, op_);
    for (int64_t i = 0; i < y.dim(0) * y.dim(1); ++i) {
      const float start = bias != nullptr ? bias[i % y.dim(1)] : 0.0f;
      for (int64_t at = i * plane; at < (i + 1) * plane; ++at) {
        y.mut<float>()[at] = start + (residual != nullptr ? residual->as<float>()[at] : 0.0f);
      }
    }
    activation_.apply(y.mut<float>(), y.dim(0) * y.dim(1), plane, plane);
  }
  /// What the form of the filters depends on.
  ConvShape filter_shape(const Tensor& w) const {
    int64_t row = 0;
    Space s;
    window_.fill_steps(2, s);
    s.kernel[1] = w.dim(2);
    s.kernel[2] = w.dim(3);
    s.in[1] = s.span(1);
    s.in[2] = s.span(2);
    return slab_of(s, w.dim(1), w.dim(0), 0, 1, row);
  }
  static ConvShape slab(const Context& context, const Space& s, int64_t begin, int64_t end,
                        int64_t& first_row) {
    ConvShape shape =
        slab_of(s, context.input(0).dim(1), context.output(0).dim(1), begin, end, first_row);
    shape.bias = context.has_input(2) ? 1 : 0;
    shape.residual = context.has_input(3) ? 1 : 0;
    return shape;
  }
  /// Parts that an image is cut into: one for each thread there is, at least two rows each.
  static uint64_t slots(const Context& context, const Space& s) {
    return static_cast<uint64_t>(std::clamp<int64_t>(s.out[1] / 2, 1, slot_capacity(context)));
  }
  static uint64_t slot_bytes(const Context& context, const Space& s) {
    if (nothing_to_sum(context)) return 0;
    const auto parts = static_cast<int64_t>(slots(context, s));
    uint64_t most = 0;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t row = 0;
      const ConvShape shape =
          slab(context, s, s.out[1] * part / parts, s.out[1] * (part + 1) / parts, row);
      most = std::max(most, onednn::convolution(shape)->scratch_bytes());
    }
    return most;
  }

  std::string op_;
  WindowAttributes window_;
  FusedActivation activation_;
};

/// Constant filters, one group, two dimensions, and a shape for which the reorders pay.
int32_t supports(const kit::NodeView& node) {
  supports_fused(node);
  const chipdock_value* x = node.input(0);
  const chipdock_value* w = node.input(1);
  if (!onednn::available() || x == nullptr || w == nullptr || x->rank != 4 || w->rank != 4 ||
      w->constant == nullptr || node.integer("group", 1) != 1) {
    return CHIPDOCK_SUPPORTS_NO;
  }
  // The library has its own ideas about windows as large as the ones left to conv.cpp.
  for (const char* name : {"strides", "dilations", "pads"}) {
    for (const int64_t value : node.integers(name)) {
      if (value < 0 || value > 4096) return CHIPDOCK_SUPPORTS_NO;
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (w->dims[i] <= 0) return CHIPDOCK_SUPPORTS_NO;
  }
  // Rows of an output that see nothing but padding make slabs without any input.
  const std::vector<int64_t> pads = node.integers("pads"), dilations = node.integers("dilations");
  for (size_t i = 0; i < pads.size(); ++i) {
    const int64_t dilation = i % 2 < dilations.size() ? dilations[i % 2] : 1;
    if (pads[i] > (w->dims[2 + i % 2] - 1) * dilation) return CHIPDOCK_SUPPORTS_NO;
  }
  const bool one_by_one = w->dims[2] == 1 && w->dims[3] == 1;
  const bool first_layer = w->dims[1] <= 4 && !one_by_one && w->dims[0] % 16 == 0;
  if (first_layer) return CHIPDOCK_SUPPORTS_YES;
  if (!one_by_one || w->dims[0] < 128 || w->dims[1] < 128) return CHIPDOCK_SUPPORTS_NO;
  if (x->dims[2] < 0 || x->dims[3] < 0) return CHIPDOCK_SUPPORTS_NO;
  // conv.cpp computes whole vectors of columns: 64 for an image of 7 x 7.
  const int64_t size = x->dims[2] * x->dims[3];
  const int64_t computed = (size + 15) / 16 * 16;
  const bool wasteful = size > 16 && size <= 64 && computed * 10 >= size * 12;
  return wasteful ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

}  // namespace

KernelSpan conv_onednn_kernels() {
  KernelDef def{"Conv", 1};
  def.name = "conv_onednn_f32";
  def.create = make<OnednnConv>;
  def.supports = supports;
  def.score = [](const kit::NodeView&) { return 10.0; };
  def.dtypes = {{0, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
  return {def, fused(def, "FusedConv", "fused_conv_onednn_f32")};
}

}  // namespace chipdock::plugin::cpu
