// SPDX-License-Identifier: Apache-2.0
// Split: the mirror of Concat. Sizes come from the output shapes, which the host made from split or
// num_outputs; an output that is not wanted still takes its place.
#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(const kit::NodeView& node)
      : axis_(node.integer("axis", 0)), split_(node.integers("split")) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const int64_t axis = kit::normalize_axis(axis_, from.rank, "Split");
    const int width = width_of(from, "Split");
    const int64_t rows = from.size(0, axis);
    const int64_t inner = from.size(axis + 1, from.rank) * width;
    const int64_t extent = from.shape[axis];
    int64_t first = 0;
    for (uint32_t i = 0; i < context.output_count; ++i) {
      if (!context.has_output(i)) {
        first += unwanted(context, i, extent);
        continue;
      }
      const Tensor& to = context.output(i);
      bool fits = to.rank == from.rank;
      for (int32_t d = 0; fits && d < to.rank; ++d)
        fits = d == axis || to.shape[d] == from.shape[d];
      if (!fits || first + to.shape[axis] > extent) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Split: output ", i, " of shape ", shape_text(to),
                  " does not fit input ", shape_text(from), " at ", first, " on axis ", axis);
      }
      const int64_t run = to.shape[axis] * inner;
      copy_rows(context, rows, run, from.as<char>() + first * inner, extent * inner, to.mut<char>(),
                run);
      first += to.shape[axis];
    }
  }

 private:
  /// Extent of an output that is not there to be asked.
  int64_t unwanted(const Context& context, uint32_t i, int64_t extent) const {
    if (i < split_.size()) return split_[i];
    if (context.has_input(1)) return Integers(context.input(1), "Split")[i];
    const int64_t count = context.output_count;
    return std::min((extent + count - 1) / count, extent);
  }

  int64_t axis_;
  std::vector<int64_t> split_;
};

}  // namespace

KernelSpan split_kernels() {
  KernelDef def{"Split", 2, 0, make<SplitKernel>};
  def.supports = moves_bytes;
  def.host_inputs = 1 << 1;
  return {def};
}

}  // namespace chipdock::plugin::cpu
