// SPDX-License-Identifier: Apache-2.0
// Operators whose output is the input with another shape: one copy, or nothing when the host lets
// output and input be the same memory. In a model the host passes them by; here they serve single
// calls.
#include <string>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(const kit::NodeView& node) : op_(node.op()) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    if (from.size() != to.size() || from.bytes() != to.bytes()) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, op_, ": output of shape ", shape_text(to), " and dtype ",
                kit::dtype_name(to.dtype), " does not hold the elements of input ",
                shape_text(from), " of dtype ", kit::dtype_name(from.dtype));
    }
    copy_bytes(context, from.data, to.data, from.bytes());
  }

 private:
  std::string op_;
};

}  // namespace

KernelSpan view_kernels() {
  KernelSpan out;
  const struct {
    const char* op;
    int32_t since;
  } views[] = {{"Reshape", 5}, {"Squeeze", 1}, {"Unsqueeze", 1}, {"Flatten", 1}, {"Identity", 1}};
  for (const auto& view : views) {
    KernelDef def{view.op, view.since, 0, make<CopyKernel>};
    def.aliases = {{0, 0}};
    out.push_back(std::move(def));
  }
  return out;
}

}  // namespace chipdock::plugin::cpu
