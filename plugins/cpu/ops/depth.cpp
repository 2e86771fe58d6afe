// SPDX-License-Identifier: Apache-2.0
// DepthToSpace, SpaceToDepth, Trilu and ReverseSequence: fixed rearrangements of whole tensors.
#include <algorithm>
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Both directions of one 6-D transpose: blocks move between the channels and the image.
class BlockKernel : public Kernel {
 public:
  explicit BlockKernel(const kit::NodeView& node)
      : to_space_(node.op() == "DepthToSpace"),
        columns_first_(node.text("mode", "DCR") == "CRD"),
        block_(node.integer("blocksize", 0)) {
    kit::require(block_ > 0, node.op(), ": blocksize is ", block_, ", must be 1 or more");
  }
  void run(const Context& context) const override {
    const char* op = to_space_ ? "DepthToSpace" : "SpaceToDepth";
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(from.rank == 4 && to.rank == 4, op, ": rank is ", from.rank, ", must be 4 (NCHW)");
    const int64_t b = block_;
    const Tensor& deep = to_space_ ? from : to;
    const Tensor& wide = to_space_ ? to : from;
    const int64_t n = deep.shape[0], c = wide.shape[1], h = deep.shape[2], w = deep.shape[3];
    if (wide.shape[0] != n || deep.shape[1] != c * b * b || wide.shape[2] != h * b ||
        wide.shape[3] != w * b) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": shapes ", shape_text(from), " and ",
                shape_text(to), " do not fit blocksize ", b);
    }
    // Strides of (n, c, row in block, column in block, h, w) on both sides.
    const int64_t plane = h * w;
    const int64_t block_rows = columns_first_ ? b * plane : b * c * plane;
    const int64_t block_columns = columns_first_ ? plane : c * plane;
    const int64_t channels = columns_first_ ? b * b * plane : plane;
    const int64_t in_deep[6] = {c * b * b * plane, channels, block_rows, block_columns, w, 1};
    const int64_t in_wide[6] = {c * b * b * plane, b * b * plane, w * b, 1, w * b * b, b};
    const int64_t extents[6] = {n, c, b, b, h, w};
    const int wide_order[6] = {0, 1, 4, 2, 5, 3};  // n, c, h, row, w, column
    const int deep_order[6] = {0, 2, 3, 1, 4, 5};  // n, row, column, c, h, w
    Box box;
    for (int i = 0; i < 6; ++i) {
      const int d = to_space_ ? wide_order[i] : deep_order[i];
      box.add(extents[d], to_space_ ? in_deep[d] : in_wide[d], to_space_ ? in_wide[d] : in_deep[d]);
    }
    copy_box(context, box, from.data, to.data, width_of(from, op));
  }

 private:
  bool to_space_, columns_first_;
  int64_t block_;
};

class TriluKernel : public Kernel {
 public:
  explicit TriluKernel(const kit::NodeView& node) : upper_(node.integer("upper", 1) != 0) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(from.rank >= 2, "Trilu: rank is ", from.rank, ", must be 2 or more");
    require_same_shape(to, from, "Trilu", "output");
    const int width = width_of(from, "Trilu");
    const int64_t rows = from.shape[from.rank - 2], columns = from.shape[from.rank - 1];
    int64_t k = context.has_input(1) ? *context.input(1).as<int64_t>() : 0;
    k = std::clamp(k, -rows - 1, columns + 1);
    const int64_t lines = columns == 0 ? 0 : from.size(0, from.rank - 1);
    for_units(context, lines, columns * width, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t diagonal =
            std::clamp(line % rows + k + (upper_ ? 0 : 1), int64_t{0}, columns);
        const int64_t kept = upper_ ? diagonal : 0;  // First column that is kept.
        const int64_t stop = upper_ ? columns : diagonal;
        const char* in = from.as<char>() + line * columns * width;
        char* out = to.mut<char>() + line * columns * width;
        std::memset(out, 0, static_cast<size_t>(kept * width));
        if (in != out) {
          std::memcpy(out + kept * width, in + kept * width,
                      static_cast<size_t>((stop - kept) * width));
        }
        std::memset(out + stop * width, 0, static_cast<size_t>((columns - stop) * width));
      }
    });
  }

 private:
  bool upper_;
};

class ReverseSequenceKernel : public Kernel {
 public:
  explicit ReverseSequenceKernel(const kit::NodeView& node)
      : batch_axis_(node.integer("batch_axis", 1)), time_axis_(node.integer("time_axis", 0)) {
    kit::require((batch_axis_ == 0 && time_axis_ == 1) || (batch_axis_ == 1 && time_axis_ == 0),
                 "ReverseSequence: batch_axis ", batch_axis_, " and time_axis ", time_axis_,
                 " must be 0 and 1 or 1 and 0");
  }
  void run(const Context& context) const override {
    constexpr const char* kOp = "ReverseSequence";
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(from.rank >= 2, kOp, ": rank is ", from.rank, ", must be 2 or more");
    require_same_shape(to, from, kOp, "output");
    const Integers lengths(context.input(1), kOp);
    const int64_t batches = from.shape[batch_axis_], times = from.shape[time_axis_];
    kit::require(lengths.size() == batches, kOp, ": sequence_lens has ", lengths.size(),
                 " entries, the batch ", batches);
    for (int64_t i = 0; i < batches; ++i) {
      kit::require(lengths[i] >= 0 && lengths[i] <= times, kOp, ": sequence_lens[", i, "] is ",
                   lengths[i], ", must be 0 to ", times);
    }
    const int64_t run = from.size(2, from.rank) * width_of(from, kOp);
    const int64_t count = from.shape[1];
    if (run == 0) return;
    for_units(context, batches * times, run, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t batch = batch_axis_ == 0 ? n / count : n % count;
        const int64_t time = time_axis_ == 0 ? n / count : n % count;
        const int64_t length = lengths[batch];
        const int64_t source = time < length ? length - 1 - time : time;
        const int64_t at = batch_axis_ == 0 ? batch * count + source : source * count + batch;
        std::memcpy(to.mut<char>() + n * run, from.as<char>() + at * run, static_cast<size_t>(run));
      }
    });
  }

 private:
  int64_t batch_axis_, time_axis_;
};

}  // namespace

KernelSpan depth_kernels() {
  KernelSpan out;
  out.push_back({"DepthToSpace", 1, 0, make<BlockKernel>});
  out.push_back({"SpaceToDepth", 1, 0, make<BlockKernel>});
  out.push_back({"Trilu", 14, 0, make<TriluKernel>});
  out.back().aliases = {{0, 0}};
  out.push_back({"ReverseSequence", 10, 0, make<ReverseSequenceKernel>});
  for (KernelDef& def : out) def.supports = moves_bytes;
  return out;
}

}  // namespace chipdock::plugin::cpu
