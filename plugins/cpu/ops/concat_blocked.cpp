// SPDX-License-Identifier: Apache-2.0
// Concat of blocked tensors over channels: whole blocks follow one another, so only the last input
// may have a block that is not full.
#include "blocked.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

class BlockedConcat final : public Kernel {
 public:
  explicit BlockedConcat(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const BlockedShape to(y);
    const auto bytes = static_cast<int64_t>(sizeof(float)) * to.plane();
    char* out = y.mut<char>();
    int64_t blocks = 0;
    for (uint32_t i = 0; i < context.input_count; ++i) {
      const BlockedShape from(context.input(i));
      blocks += from.blocks;
      kit::require(from.batch == to.batch && from.pixels == to.pixels && blocks <= to.blocks,
                   "Concat: input ", i, " has ", from.pixels, " pixels and ", from.channels,
                   " channels, the output ", to.pixels, " and ", to.channels);
      copy_rows(context, to.batch, from.blocks * bytes, context.input(i).as<char>(),
                from.blocks * bytes, out, to.blocks * bytes);
      out += from.blocks * bytes;
    }
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
    const bool last = i + 1 == node.input_count();
    if (!last && x->dims[1] % channel_block() != 0) return CHIPDOCK_SUPPORTS_NO;
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
