// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear.
#include "dynamic_bytes.hpp"
#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

class DynamicQuantize final : public Kernel {
 public:
  explicit DynamicQuantize(const kit::NodeView&) {}

  uint64_t workspace(const Context& context) const override {
    return dynamic_scratch_bytes(context);
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const auto* const from = x.as<float>();
    const ByteScale by = dynamic_scale(context, from, x.size(), context.workspace);
    if (context.has_output(1)) context.output(1).mut<float>()[0] = by.scale;
    if (context.has_output(2)) {
      context.output(2).mut<uint8_t>()[0] = static_cast<uint8_t>(by.zero);
    }
    if (!context.has_output(0)) return;
    auto* const to = context.output(0).mut<uint8_t>();
    context.parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
      CHIPDOCK_CPU_DISPATCH(quantize_bytes)(from + begin, end - begin, by, to + begin);
    });
  }
};

}  // namespace

KernelSpan dynamic_quantize_kernels() {
  KernelDef def;
  def.op = "DynamicQuantizeLinear";
  def.since = 11;
  def.name = "dynamic_quantize_linear";
  def.create = make<DynamicQuantize>;
  def.dtypes = {
      {0, {kit::kFloat32}}, {-1, {kit::kUint8}}, {-2, {kit::kFloat32}}, {-3, {kit::kUint8}}};
  KernelSpan span;
  span.push_back(std::move(def));
  return span;
}

}  // namespace chipdock::plugin::cpu
