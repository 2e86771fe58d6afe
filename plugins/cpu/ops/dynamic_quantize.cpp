// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear: scale and zero point follow from the range of the tensor, which always has
// zero in it.
#include <algorithm>
#include <cmath>

#include "ops/numeric.hpp"
#include "simd/quantize.hpp"
#include "simd/reduce.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

struct Range {
  float low = 0, high = 0;
  /// NaN stays, whichever comes first.
  void join(float least, float most) {
    low = least < low || std::isnan(least) ? least : low;
    high = most > high || std::isnan(most) ? most : high;
  }
};

class DynamicQuantize final : public Kernel {
 public:
  explicit DynamicQuantize(const kit::NodeView&) {}

  uint64_t workspace(const Context& context) const override {
    return padded_bytes(slot_capacity(context), sizeof(Range));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const auto* const from = x.as<float>();
    const Range range = range_of(context, from, x.size());
    const float scale = (range.high - range.low) / 255.0F;
    float zero = std::nearbyint(std::clamp(0.0F - range.low / scale, 0.0F, 255.0F));
    if (std::isnan(zero)) zero = 0;  // All elements are zero, or one is NaN or infinite.
    if (context.has_output(1)) context.output(1).mut<float>()[0] = scale;
    if (context.has_output(2)) {
      context.output(2).mut<uint8_t>()[0] = static_cast<uint8_t>(zero);
    }
    if (!context.has_output(0)) return;
    auto* const to = context.output(0).mut<uint8_t>();
    const ByteScale by = {scale, zero, false};
    context.parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
      CHIPDOCK_CPU_DISPATCH(quantize_bytes)(from + begin, end - begin, by, to + begin);
    });
  }

 private:
  static Range range_of(const Context& context, const float* x, int64_t n) {
    auto* const found = static_cast<Range*>(context.workspace);
    const int64_t slots = std::clamp<int64_t>(n / kGrain, 1, slot_count(context));
    context.parallel_for(slots, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        found[slot] = range_of(x + n * slot / slots, n * (slot + 1) / slots - n * slot / slots);
      }
    });
    Range range;
    for (int64_t slot = 0; slot < slots; ++slot) range.join(found[slot].low, found[slot].high);
    return range;
  }
  static Range range_of(const float* x, int64_t n) {
    const auto fold = CHIPDOCK_CPU_DISPATCH(fold_row);
    constexpr int64_t kPart = 4096;  // Still in the cache at the second fold.
    Range range;
    for (int64_t i = 0; i < n; i += kPart) {
      const int64_t count = std::min(kPart, n - i);
      range.join(static_cast<float>(fold(Fold::kMin, x + i, count, 0)),
                 static_cast<float>(fold(Fold::kMax, x + i, count, 0)));
    }
    return range;
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
