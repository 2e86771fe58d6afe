// SPDX-License-Identifier: Apache-2.0
// Resize to the nearest pixel in the blocked layout: groups of channels are moved whole. The other
// modes are left to layout 0.
#include <cstring>

#include "blocked.hpp"
#include "ops/resize_attributes.hpp"
#include "simd/blocked.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

class BlockedNearest final : public ResizeBase {
 public:
  explicit BlockedNearest(const kit::NodeView& node) : ResizeBase(node) {}

  uint64_t workspace(const Context& context) const override {
    const Tensor& y = context.output(0);
    return padded_bytes(y.dim(0) + y.dim(2) + y.dim(3), sizeof(int32_t));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    ResizeAxis axes[CHIPDOCK_MAX_RANK];
    resolve(context, axes);
    int32_t* maps[4] = {};
    auto* next = static_cast<int32_t*>(context.workspace);
    for (const int axis : {0, 2, 3}) {
      maps[axis] = next;
      const bool same = axes[axis].identity(sampling_);
      for (int64_t i = 0; i < y.dim(axis); ++i) {
        *next++ = static_cast<int32_t>(same ? i : nearest_source(sampling_, axes[axis], i));
      }
    }
    const BlockedShape to(y);
    const BlockedShape from(x);
    const int64_t height = y.dim(2);
    const int64_t row = y.dim(3) * to.block;
    const auto bytes = static_cast<size_t>(row) * sizeof(float);
    context.parallel_for(to.batch * to.blocks * height, std::max<int64_t>(1, 32768 / row),
                         [&](int64_t begin, int64_t end) {
                           const float* before = nullptr;
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t plane = i / height;
                             const int64_t source =
                                 maps[0][plane / to.blocks] * to.blocks + plane % to.blocks;
                             const float* line = x.as<float>() + source * from.plane() +
                                                 maps[2][i % height] * x.dim(3) * to.block;
                             float* out = y.mut<float>() + i * row;
                             if (line == before) {
                               std::memcpy(out, out - row, bytes);
                             } else {
                               CHIPDOCK_CPU_DISPATCH(gather_pixels)(line, maps[3], y.dim(3), out);
                             }
                             before = line;
                           }
                         });
  }
};

/// Scales that are constants and leave channels alone, or sizes, which do where dims are equal.
int32_t supports(const kit::NodeView& node) {
  using kit::operator==;
  const chipdock_value* x = node.input(0);
  const chipdock_value* y = node.output(0);
  if (!is_blocked(x) || !is_blocked(y) || x->rank != 4 || x->dims[1] != y->dims[1] ||
      node.since_version() < 11 || !node.integers("axes").empty() ||
      node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return CHIPDOCK_SUPPORTS_NO;
  }
  const Sampling sampling = sampling_of(node);
  if (sampling.mode != ResizeMode::kNearest ||
      sampling.coordinates == Coordinates::kCropAndResize) {
    return CHIPDOCK_SUPPORTS_NO;
  }
  const chipdock_value* scales = node.input(2);
  if (scales != nullptr && !(scales->rank == 1 && scales->dims[0] == 0)) {
    const bool kept = scales->constant != nullptr && scales->dtype == kit::kFloat32 &&
                      scales->constant_size == 4 * sizeof(float) &&
                      static_cast<const float*>(scales->constant)[1] == 1.0f;
    if (!kept) return CHIPDOCK_SUPPORTS_NO;
  }
  return CHIPDOCK_SUPPORTS_YES;
}

}  // namespace

KernelSpan resize_blocked_kernels() {
  KernelDef def{"Resize", 11};
  def.name = "resize_nearest_blocked_f32";
  def.create = make<BlockedNearest>;
  def.supports = supports;
  def.host_inputs = (1u << 1) | (1u << 2) | (1u << 3);
  def.dtypes = {
      {0, {kit::kFloat32}}, {1, {kit::kFloat32}}, {3, {kit::kInt64}}, {-1, {kit::kFloat32}}};
  def.layouts = blocked_arguments({0, -1});
  return {def};
}

}  // namespace chipdock::plugin::cpu
