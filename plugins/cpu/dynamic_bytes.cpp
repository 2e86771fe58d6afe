// SPDX-License-Identifier: Apache-2.0
// The range of a tensor, and what follows from it; see dynamic_bytes.hpp.
#include "dynamic_bytes.hpp"

#include <algorithm>
#include <cmath>

#include "ops/numeric.hpp"
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

Range range_of(const float* x, int64_t n) {
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

Range range_of(const Context& context, const float* x, int64_t n, void* scratch) {
  auto* const found = static_cast<Range*>(scratch);
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
}  // namespace

uint64_t dynamic_scratch_bytes(const Context& context) {
  return padded_bytes(slot_capacity(context), sizeof(Range));
}

ByteScale dynamic_scale(const Context& context, const float* x, int64_t n, void* scratch) {
  const Range range = range_of(context, x, n, scratch);
  const float scale = (range.high - range.low) / 255.0F;
  float zero = std::nearbyint(std::clamp(0.0F - range.low / scale, 0.0F, 255.0F));
  if (std::isnan(zero)) zero = 0;  // All elements are zero, or one is NaN or infinite.
  return {scale, zero, false};
}

}  // namespace chipdock::plugin::cpu
