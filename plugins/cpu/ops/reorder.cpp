// SPDX-License-Identifier: Apache-2.0
// Reorder of the domain "ai.chipdock": a tensor from layout 0 to the blocked layout and back.
#include <algorithm>

#include "blocked.hpp"
#include "simd/blocked.hpp"

namespace chipdock::plugin::cpu {
namespace {

class Reorder final : public Kernel {
 public:
  explicit Reorder(const kit::NodeView&) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    kit::require(x.rank == y.rank && std::equal(x.shape, x.shape + x.rank, y.shape),
                 "Reorder: X of ", x.size(), " elements has another shape than Y of ", y.size());
    const BlockedShape shape(y);
    const bool forth = y.layout == kBlocked;
    // Pieces of planes, so that one large image is work for several threads.
    const int64_t piece = std::max<int64_t>(64, 16384 / shape.block);
    const int64_t pieces = (shape.pixels + piece - 1) / piece;
    const int64_t grain =
        std::max<int64_t>(1, 16384 / (std::min(piece, shape.pixels) * shape.block));
    context.parallel_for(shape.batch * shape.blocks * pieces, grain,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t at = i % pieces * piece;
                             copy(shape, forth, x.as<float>(), y.mut<float>(), i / pieces, at,
                                  std::min(piece, shape.pixels - at));
                           }
                         });
  }

 private:
  /// Pixels [at, at + count) of one plane.
  static void copy(const BlockedShape& s, bool forth, const float* x, float* y, int64_t plane,
                   int64_t at, int64_t count) {
    const int64_t n = plane / s.blocks;
    const int64_t first = plane % s.blocks * s.block;
    const int64_t channels = std::min(s.block, s.channels - first);
    const int64_t plain = (n * s.channels + first) * s.pixels + at;
    const int64_t blocked = plane * s.plane() + at * s.block;
    if (forth) {
      CHIPDOCK_CPU_DISPATCH(block_channels)(x + plain, s.pixels, channels, count, y + blocked);
    } else {
      CHIPDOCK_CPU_DISPATCH(unblock_channels)(x + blocked, channels, count, y + plain, s.pixels);
    }
  }
};

int32_t supports(const kit::NodeView& node) {
  const chipdock_value* x = node.input(0);
  const chipdock_value* y = node.output(0);
  if (x == nullptr || y == nullptr) return CHIPDOCK_SUPPORTS_NO;
  // One that has channels of its own, or as many as the run will say.
  const auto blocked = [](const chipdock_value* value) {
    const bool open = value->layout == kBlocked && value->rank >= 3 && value->dims[1] < 0;
    return is_blocked(value) || (open && channel_block() > 0);
  };
  const bool one = (blocked(x) && y->layout == 0) || (x->layout == 0 && blocked(y));
  return one ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

}  // namespace

KernelSpan reorder_kernels() {
  KernelDef def{"Reorder", 1};
  def.domain = "ai.chipdock";
  def.name = "reorder_f32";
  def.create = make<Reorder>;
  def.supports = supports;
  def.dtypes = {{0, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
  def.layouts = blocked_arguments({0, -1});
  return {def};
}

}  // namespace chipdock::plugin::cpu
