// SPDX-License-Identifier: Apache-2.0
// Where: picks by a bool tensor, all three broadcast. The loops stand in simd/select.cpp.
#include "ops/elementwise/broadcast.hpp"
#include "ops/numeric.hpp"
#include "simd/select.hpp"

namespace chipdock::plugin::cpu {
namespace {

class Where final : public Kernel {
 public:
  explicit Where(const kit::NodeView& node)
      : bytes_(node.input_dtype(1).bits / 8),
        select_(CHIPDOCK_CPU_DISPATCH(select_function)(bytes_)) {}

  void run(const Context& context) const override {
    const Tensor& out = context.output(0);
    if (out.size() == 0) return;
    const Broadcast<3> plan(out, {&context.input(0), &context.input(1), &context.input(2)},
                            "Where");
    const int64_t steps[3] = {plan.still(0) ? 0 : 1, plan.still(1) ? 0 : 1, plan.still(2) ? 0 : 1};
    const bool* condition = context.input(0).as<bool>();
    const char* x = context.input(1).as<char>();
    const char* y = context.input(2).as<char>();
    over(context, plan.size(), kGrain, [&](int64_t begin, int64_t end) {
      plan.walk(begin, end, end, [&](const int64_t* offset, int64_t at, int64_t n) {
        select_(condition + offset[0], x + offset[1] * bytes_, y + offset[2] * bytes_,
                out.mut<char>() + at * bytes_, n, steps);
      });
    });
  }

 private:
  int bytes_;
  Select select_;
};

}  // namespace

KernelSpan where_kernels() {
  KernelDef def{"Where", 9};
  def.create = make<Where>;
  auto types = dtypes_of(NumberTypes{} + Types<bool>{});
  types.push_back(kit::dtype(CHIPDOCK_DTYPE_COMPLEX, 64));
  types.push_back(kit::dtype(CHIPDOCK_DTYPE_COMPLEX, 128));
  def.dtypes = {{0, {kit::kBool}}, {1, std::move(types)}};
  KernelSpan kernels;
  kernels.push_back(std::move(def));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
