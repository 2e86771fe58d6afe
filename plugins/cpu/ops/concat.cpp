// SPDX-License-Identifier: Apache-2.0
// Concat: every input is a set of runs that lie one output row apart.
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const kit::NodeView& node) : axis_(node.integer("axis", 1)) {}
  void run(const Context& context) const override {
    const Tensor& to = context.output(0);
    const int64_t axis = kit::normalize_axis(axis_, to.rank, "Concat");
    const int width = width_of(to, "Concat");
    const int64_t rows = to.size(0, axis);
    const int64_t inner = to.size(axis + 1, to.rank) * width;
    const int64_t pitch = to.shape[axis] * inner;
    check(context, to, axis);
    char* out = to.mut<char>();
    for (uint32_t i = 0; i < context.input_count; ++i) {
      const Tensor& from = context.input(i);
      const int64_t run = from.shape[axis] * inner;
      copy_rows(context, rows, run, from.as<char>(), run, out, pitch);
      out += run;
    }
  }

 private:
  static void check(const Context& context, const Tensor& to, int64_t axis) {
    int64_t total = 0;
    for (uint32_t i = 0; i < context.input_count; ++i) {
      const Tensor& from = context.input(i);
      bool fits = from.rank == to.rank && kit::operator==(from.dtype, to.dtype);
      for (int32_t d = 0; fits && d < to.rank; ++d)
        fits = d == axis || from.shape[d] == to.shape[d];
      if (!fits) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Concat: input ", i, " of shape ", shape_text(from),
                  " and dtype ", kit::dtype_name(from.dtype), " does not fit output ",
                  shape_text(to), " of dtype ", kit::dtype_name(to.dtype), " on axis ", axis);
      }
      total += from.shape[axis];
    }
    kit::require(total == to.shape[axis], "Concat: inputs have ", total, " entries on axis ", axis,
                 ", the output ", to.shape[axis]);
  }

  int64_t axis_;
};

}  // namespace

KernelSpan concat_kernels() {
  KernelDef def{"Concat", 4, 0, make<ConcatKernel>};
  def.supports = moves_bytes;
  return {def};
}

}  // namespace chipdock::plugin::cpu
