// SPDX-License-Identifier: Apache-2.0
// Shape of MelWeightMatrix: bins of the spectrum by triangles.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void mel_shape(ShapeContext& context) {
  const std::vector<int64_t> triangles = context.integers(0);
  const std::vector<int64_t> length = context.integers(1);
  kit::require(triangles.size() == 1 && length.size() == 1 && triangles[0] > 0 && length[0] > 0,
               "MelWeightMatrix: num_mel_bins and dft_length must each be one number above 0");
  Dims out = {length[0] / 2 + 1, triangles[0]};
  checked_size(out, "MelWeightMatrix");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> mel_ops() { return {{"MelWeightMatrix", 17, 0, mel_shape, 0x1f}}; }

}  // namespace chipdock::runtime
