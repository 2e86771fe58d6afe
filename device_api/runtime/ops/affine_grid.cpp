// SPDX-License-Identifier: Apache-2.0
// Shape of AffineGrid: places of the wanted image, and one coordinate for each of its axes.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void affine_grid_shape(ShapeContext& context) {
  const Dims& theta = context.input(0).dims;
  const Dims size = context.integers(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  kit::require(axes == 2 || axes == 3, "AffineGrid: size ", to_string(size),
               ", allowed are [N,C,H,W] and [N,C,D,H,W]");
  kit::require(theta == Dims{size[0], axes, axes + 1}, "AffineGrid: theta ", to_string(theta),
               " for size ", to_string(size), ", it must be ",
               to_string(Dims{size[0], axes, axes + 1}));
  Dims out = {size[0]};
  out.insert(out.end(), size.begin() + 2, size.end());
  out.push_back(axes);
  checked_size(out, "AffineGrid");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> affine_grid_ops() { return {{"AffineGrid", 20, 0, affine_grid_shape, 1 << 1}}; }

}  // namespace chipdock::runtime
