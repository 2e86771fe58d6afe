// SPDX-License-Identifier: Apache-2.0
// Pad with zeros in the blocked layout: around the pixels, and behind the channels, where lanes of
// the last block are zero already. Everything else is left to layout 0.
#include <algorithm>
#include <array>
#include <cstring>

#include "blocked.hpp"
#include "ops/movement/strided_copy.hpp"
#include "simd/blocked.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Begins, then ends, of four axes.
using Pads = std::array<int64_t, 8>;

/// The constant pads of a node, from an input or, before version 11, an attribute; false for none.
bool read_pads(const kit::NodeView& node, Pads& pads) {
  if (node.since_version() < 11) {
    const std::vector<int64_t> given = node.integers("pads");
    if (given.size() != pads.size()) return false;
    std::copy(given.begin(), given.end(), pads.begin());
    return true;
  }
  const chipdock_value* given = node.input(1);
  if (given == nullptr || given->constant == nullptr || given->constant_size != sizeof(pads)) {
    return false;
  }
  std::memcpy(pads.data(), given->constant, sizeof(pads));
  return true;
}

class BlockedPadKernel final : public Kernel {
 public:
  explicit BlockedPadKernel(const kit::NodeView& node) {
    kit::require(read_pads(node, pads_), "Pad: the pads are no constant of eight numbers");
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    for (int i = 0; i < 4; ++i) {
      const int64_t wanted =
          x.dim(i) + pads_[static_cast<size_t>(i)] + pads_[static_cast<size_t>(i) + 4];
      kit::require(y.dim(i) == wanted, "Pad: dim ", i, " of the output is ", y.dim(i),
                   ", input and pads make ", wanted);
    }
    const BlockedShape from(x);
    const BlockedShape to(y);
    for_units(context, to.batch * to.blocks, to.plane() * 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t block = p % to.blocks;
        BlockedPad pad;
        pad.height = block < from.blocks ? x.dim(2) : 0;  // Behind the channels no row is inside.
        pad.width = x.dim(3);
        pad.image = x.as<float>() +
                    (p / to.blocks * from.blocks + std::min(block, from.blocks - 1)) * from.plane();
        pad.first = -pads_[2];
        pad.rows = y.dim(2);
        pad.left = pads_[3];
        pad.phase_width = y.dim(3);
        pad.target = y.mut<float>() + p * to.plane();
        CHIPDOCK_CPU_DISPATCH(blocked_pad)(pad);
      }
    });
  }

 private:
  Pads pads_{};
};

int32_t supports(const kit::NodeView& node) {
  const chipdock_value* x = node.input(0);
  Pads pads;
  const bool fits = is_blocked(x) && is_blocked(node.output(0)) && x->rank == 4 &&
                    !node.has_input(3) && node.text("mode", "constant") == "constant" &&
                    read_pads(node, pads) && pads[0] == 0 && pads[1] == 0 && pads[4] == 0 &&
                    std::all_of(pads.begin(), pads.end(), [](int64_t n) { return n >= 0; });
  if (!fits || node.number("value", 0) != 0) return CHIPDOCK_SUPPORTS_NO;
  if (const chipdock_value* value = node.input(2); value != nullptr) {
    const bool zero = value->constant != nullptr && value->constant_size == sizeof(float) &&
                      *static_cast<const float*>(value->constant) == 0;
    if (!zero) return CHIPDOCK_SUPPORTS_NO;
  }
  return CHIPDOCK_SUPPORTS_YES;
}

}  // namespace

KernelSpan pad_blocked_kernels() {
  KernelDef def{"Pad", 2};
  def.name = "pad_blocked_f32";
  def.create = make<BlockedPadKernel>;
  def.supports = supports;
  def.dtypes = {
      {0, {kit::kFloat32}}, {1, {kit::kInt64}}, {2, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
  def.layouts = blocked_arguments({0, -1});
  return {def};
}

}  // namespace chipdock::plugin::cpu
