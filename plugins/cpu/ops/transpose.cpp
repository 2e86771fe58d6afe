// SPDX-License-Identifier: Apache-2.0
// Transpose in any rank: the box of the output read with the strides of the input.
#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"
#include "ops/movement/unpacked.hpp"

namespace chipdock::plugin::cpu {
namespace {

class TransposeKernel : public Kernel {
 public:
  explicit TransposeKernel(const kit::NodeView& node) : perm_(node.integers("perm")) {
    uint64_t seen = 0;
    const int64_t rank = static_cast<int64_t>(perm_.size());
    for (int64_t& axis : perm_) {
      axis = kit::normalize_axis(axis, rank, "Transpose");
      kit::require((seen >> axis & 1) == 0, "Transpose: perm names axis ", axis, " twice");
      seen |= uint64_t{1} << axis;
    }
  }
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int width = width_of(from, "Transpose");
    // An empty perm is the default (reverse), also of a node that wrote perm=[] for a scalar.
    if (!perm_.empty() && static_cast<int64_t>(perm_.size()) != from.rank) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Transpose: perm has ", perm_.size(),
                " entries, input of shape ", shape_text(from), " needs ", from.rank);
    }
    kit::require(to.rank == from.rank, "Transpose: output has rank ", to.rank, ", input ",
                 from.rank);
    int64_t in[kMaxRank], out[kMaxRank];
    strides_of(from, in);
    strides_of(to, out);
    Box box;
    for (int32_t i = 0; i < to.rank; ++i) {
      const int64_t axis = perm_.empty() ? from.rank - 1 - i : perm_[i];
      if (to.shape[i] != from.shape[axis]) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Transpose: output ", shape_text(to),
                  " is not a permutation of input ", shape_text(from));
      }
      box.add(to.shape[i], in[axis], out[i]);
    }
    copy_box(context, box, from.data, to.data, width);
  }

 private:
  std::vector<int64_t> perm_;
};

}  // namespace

KernelSpan transpose_kernels() {
  KernelDef def{"Transpose", 1, 0, make<TransposeKernel>};
  def.supports = moves_bytes;
  return {def, unpacked<TransposeKernel>(def, "Transpose_packed")};
}

}  // namespace chipdock::plugin::cpu
