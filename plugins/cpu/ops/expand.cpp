// SPDX-License-Identifier: Apache-2.0
// Expand and Tile: boxes in which some source stride is 0.
#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class ExpandKernel : public Kernel {
 public:
  explicit ExpandKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int width = width_of(from, "Expand");
    int64_t in[kMaxRank], out[kMaxRank];
    strides_of(from, in);
    strides_of(to, out);
    const int32_t extra = to.rank - from.rank;
    kit::require(extra >= 0, "Expand: output has rank ", to.rank, ", input ", from.rank);
    Box box;
    for (int32_t i = 0; i < to.rank; ++i) {
      const int64_t extent = i < extra ? 1 : from.shape[i - extra];
      if (extent != to.shape[i] && extent != 1) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Expand: input ", shape_text(from),
                  " does not broadcast to ", shape_text(to));
      }
      box.add(to.shape[i], extent == 1 ? 0 : in[i - extra], out[i]);
    }
    copy_box(context, box, from.data, to.data, width);
  }
};

class TileKernel : public Kernel {
 public:
  explicit TileKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int width = width_of(from, "Tile");
    kit::require(to.rank == from.rank, "Tile: output has rank ", to.rank, ", input ", from.rank);
    int64_t in[kMaxRank], out[kMaxRank];
    strides_of(from, in);
    strides_of(to, out);
    Box box;
    for (int32_t i = 0; i < to.rank; ++i) {
      const int64_t extent = from.shape[i];
      if (extent == 0 ? to.shape[i] != 0 : to.shape[i] % extent != 0) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Tile: output ", shape_text(to),
                  " is no multiple of input ", shape_text(from));
      }
      box.add(extent == 0 ? 0 : to.shape[i] / extent, 0, out[i] * extent);
      box.add(extent, in[i], out[i]);
    }
    copy_box(context, box, from.data, to.data, width);
  }
};

}  // namespace

KernelSpan expand_kernels() {
  KernelDef expand{"Expand", 8, 0, make<ExpandKernel>};
  KernelDef tile{"Tile", 6, 0, make<TileKernel>};
  expand.supports = tile.supports = moves_bytes;
  expand.host_inputs = tile.host_inputs = 1 << 1;
  return {expand, tile};
}

}  // namespace chipdock::plugin::cpu
