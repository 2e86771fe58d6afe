// SPDX-License-Identifier: Apache-2.0
// Concat of blocked tensors over channels. As long as blocks are full they follow one another;
// behind an input whose last block is not, channels move to other lanes.
#include "blocked.hpp"
#include "ops/movement/strided_copy.hpp"
#include "simd/blocked.hpp"

namespace chipdock::plugin::cpu {
namespace {

class BlockedConcat final : public Kernel {
 public:
  explicit BlockedConcat(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const BlockedShape to(y);
    int64_t channel = 0;
    for (uint32_t i = 0; i < context.input_count; ++i) {
      const BlockedShape from(context.input(i));
      kit::require(from.batch == to.batch && from.pixels == to.pixels &&
                       channel + from.channels <= to.channels,
                   "Concat: input ", i, " has ", from.pixels, " pixels and ", from.channels,
                   " channels behind ", channel, ", the output ", to.pixels, " and ", to.channels);
      if (channel % to.block == 0) {
        blocks(context, from, context.input(i), to, channel / to.block);
      } else {
        lanes(context, from, context.input(i), to, channel);
      }
      channel += from.channels;
    }
    zero_lanes(y);
  }

 private:
  static void blocks(const Context& context, const BlockedShape& from, const Tensor& x,
                     const BlockedShape& to, int64_t block) {
    const auto bytes = static_cast<int64_t>(sizeof(float)) * to.plane();
    copy_rows(context, to.batch, from.blocks * bytes, x.as<char>(), from.blocks * bytes,
              context.output(0).mut<char>() + block * bytes, to.blocks * bytes);
  }

  static void lanes(const Context& context, const BlockedShape& from, const Tensor& x,
                    const BlockedShape& to, int64_t channel) {
    float* y = context.output(0).mut<float>();
    // Planes of one input block share planes of the output with their neighbours, but no lanes.
    for_units(context, from.batch * from.blocks, from.plane() * 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t n = p / from.blocks;
        const int64_t block = p % from.blocks;
        const int64_t used = block == from.blocks - 1 ? from.used() : from.block;
        int64_t at = channel + block * from.block;
        for (int64_t lane = 0; lane < used;) {
          const int64_t count = std::min(used - lane, to.block - at % to.block);
          CHIPDOCK_CPU_DISPATCH(copy_lanes)
          (x.as<float>() + p * from.plane(), lane, y + (n * to.blocks + at / to.block) * to.plane(),
           at % to.block, count, to.pixels);
          lane += count;
          at += count;
        }
      }
    });
  }
};

int32_t supports(const kit::NodeView& node) {
  const chipdock_value* y = node.output(0);
  if (!is_blocked(y)) return CHIPDOCK_SUPPORTS_NO;
  const int64_t axis = node.integer("axis", 1);
  if (axis != 1 && axis != 1 - y->rank) return CHIPDOCK_SUPPORTS_NO;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const chipdock_value* x = node.input(i);
    if (!is_blocked(x) || x->rank != y->rank) return CHIPDOCK_SUPPORTS_NO;
  }
  return CHIPDOCK_SUPPORTS_YES;
}

}  // namespace

KernelSpan concat_blocked_kernels() {
  KernelDef def{"Concat", 4};
  def.name = "concat_blocked_f32";
  def.create = make<BlockedConcat>;
  def.supports = supports;
  def.dtypes = {{0, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
  def.layouts = {{0, {kBlocked}}, {-1, {kBlocked}}};
  return {def};
}

}  // namespace chipdock::plugin::cpu
