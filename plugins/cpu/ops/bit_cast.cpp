// SPDX-License-Identifier: Apache-2.0
// BitCast: the same bytes under another dtype of the same width.
#include "kernel.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class BitCastKernel final : public Kernel {
 public:
  explicit BitCastKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(from.bytes() == to.bytes(), "BitCast: ", kit::dtype_name(from.dtype), " and ",
                 kit::dtype_name(to.dtype), " differ in width");
    if (from.bytes() > 0) copy_bytes(context, from.data, to.data, from.bytes());
  }
};

}  // namespace

KernelSpan bit_cast_kernels() { return {{"BitCast", 26, 0, make<BitCastKernel>}}; }

}  // namespace chipdock::plugin::cpu
