// SPDX-License-Identifier: Apache-2.0
// Slice with any steps: a box whose source strides are scaled by the steps and may run backwards.
#include <algorithm>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class SliceKernel : public Kernel {
 public:
  explicit SliceKernel(const kit::NodeView& node)
      : by_attribute_(node.since_version() < 10),
        starts_(node.integers("starts")),
        axes_(node.integers("axes")) {}

  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int width = width_of(from, "Slice");
    kit::require(to.rank == from.rank, "Slice: output has rank ", to.rank, ", input ", from.rank);
    int64_t start[kMaxRank] = {}, step[kMaxRank];
    std::fill_n(step, from.rank, int64_t{1});
    if (by_attribute_) {
      for (size_t i = 0; i < starts_.size(); ++i) {
        place(from, i < axes_.size() ? axes_[i] : static_cast<int64_t>(i), starts_[i], 1, start,
              step);
      }
    } else {
      read(context, from, start, step);
    }
    int64_t in[kMaxRank], out[kMaxRank];
    strides_of(from, in);
    strides_of(to, out);
    Box box;
    int64_t offset = 0;
    for (int32_t i = 0; i < to.rank; ++i) {
      const int64_t extent = to.shape[i];
      if (extent > 0 && !inside(start[i], step[i], extent, from.shape[i])) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Slice: output ", shape_text(to), " with start ",
                  start[i], " and step ", step[i], " leaves input ", shape_text(from), " on axis ",
                  i);
      }
      offset += start[i] * in[i];
      box.add(extent, extent > 1 ? in[i] * step[i] : 0, out[i]);
    }
    if (box.empty()) return;
    copy_box(context, box, from.as<char>() + offset * width, to.data, width);
  }

 private:
  /// Whether `extent` positions from `start` on are in [0, limit). Divides, as a step may be huge.
  static bool inside(int64_t start, int64_t step, int64_t extent, int64_t limit) {
    if (start >= limit) return false;
    if (extent == 1) return true;
    if (step > 0) return (limit - 1 - start) / step >= extent - 1;
    return step > INT64_MIN && start / -step >= extent - 1;
  }
  static void read(const Context& context, const Tensor& from, int64_t* start, int64_t* step) {
    const Integers starts(context.input(1), "Slice");
    const int64_t count = starts.size();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t axis = context.has_input(3) ? Integers(context.input(3), "Slice")[i] : i;
      const int64_t by = context.has_input(4) ? Integers(context.input(4), "Slice")[i] : 1;
      place(from, axis, starts[i], by, start, step);
    }
  }
  static void place(const Tensor& from, int64_t axis, int64_t first, int64_t by, int64_t* start,
                    int64_t* step) {
    axis = kit::normalize_axis(axis, from.rank, "Slice");
    kit::require(by != 0, "Slice: step on axis ", axis, " is 0");
    const int64_t extent = from.shape[axis];
    if (first < 0) first += extent;
    start[axis] = std::max<int64_t>(0, std::min(first, by > 0 ? extent : extent - 1));
    step[axis] = by;
  }

  bool by_attribute_;
  std::vector<int64_t> starts_, axes_;
};

}  // namespace

KernelSpan slice_kernels() {
  KernelDef def{"Slice", 1, 0, make<SliceKernel>};
  def.supports = moves_bytes;
  def.host_inputs = 0b11110;
  return {def};
}

}  // namespace chipdock::plugin::cpu
