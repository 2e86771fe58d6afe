// SPDX-License-Identifier: Apache-2.0
// Shapes of DepthToSpace, SpaceToDepth, Trilu and ReverseSequence.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void depth_to_space_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const int64_t block = context.node().integer("blocksize", 0);
  const std::string mode = context.node().text("mode", "DCR");
  kit::require(block > 0 && block < (int64_t{1} << 31), "DepthToSpace: blocksize is ", block,
               ", must be 1 or more");
  kit::require(mode == "DCR" || mode == "CRD", "DepthToSpace: mode is ", mode,
               ", DCR or CRD is allowed");
  kit::require(x.size() == 4 && x[1] % (block * block) == 0, "DepthToSpace: input ", to_string(x),
               " must be [N, C, H, W] with C a multiple of blocksize^2 = ", block * block);
  set_like_input(context,
                 {x[0], x[1] / (block * block), checked_extent(x[2], block, 0, "DepthToSpace"),
                  checked_extent(x[3], block, 0, "DepthToSpace")});
}

void space_to_depth_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const int64_t block = context.node().integer("blocksize", 0);
  kit::require(block > 0 && block < (int64_t{1} << 31), "SpaceToDepth: blocksize is ", block,
               ", must be 1 or more");
  kit::require(x.size() == 4 && x[2] % block == 0 && x[3] % block == 0, "SpaceToDepth: input ",
               to_string(x), " must be [N, C, H, W] with H and W multiples of blocksize ", block);
  set_like_input(context, {x[0], checked_extent(x[1], block * block, 0, "SpaceToDepth"),
                           x[2] / block, x[3] / block});
}

void trilu_shape(ShapeContext& context) {
  kit::require(context.input(0).rank() >= 2, "Trilu: input ", to_string(context.input(0).dims),
               " must have rank 2 or more");
  set_like_input(context, context.input(0).dims);
}

void reverse_sequence_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const int64_t batch = context.node().integer("batch_axis", 1);
  const int64_t time = context.node().integer("time_axis", 0);
  kit::require((batch == 0 && time == 1) || (batch == 1 && time == 0),
               "ReverseSequence: batch_axis ", batch, " and time_axis ", time,
               " must be 0 and 1 or 1 and 0");
  kit::require(x.size() >= 2 && context.input(1).size() == x[batch], "ReverseSequence: input ",
               to_string(x), " must have rank 2 or more and sequence_lens ",
               to_string(context.input(1).dims), " one entry for each of its batch (axis ", batch,
               ")");
  set_like_input(context, x);
}

}  // namespace

std::vector<Op> depth_ops() {
  return {{"DepthToSpace", 1, 0, depth_to_space_shape},
          {"SpaceToDepth", 1, 0, space_to_depth_shape},
          {"Trilu", 14, 0, trilu_shape},
          {"ReverseSequence", 10, 0, reverse_sequence_shape}};
}

}  // namespace chipdock::runtime
