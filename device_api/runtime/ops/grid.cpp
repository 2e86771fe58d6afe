// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that read an image at places given by another tensor: GridSample, RoiAlign
// and MaxRoiPool.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void grid_sample_shape(ShapeContext& context) {
  const Dims& image = context.input(0).dims;
  const Dims& grid = context.input(1).dims;
  kit::require(image.size() >= 3 && grid.size() == image.size() && grid[0] == image[0] &&
                   grid.back() == static_cast<int64_t>(image.size()) - 2,
               "GridSample: grid ", to_string(grid), " for X ", to_string(image),
               "; it must be [N, places..., spatial rank]");
  Dims out = {image[0], image[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  checked_size(out, "GridSample");
  context.set(0, std::move(out));
}

void roi_align_shape(ShapeContext& context) {
  const Dims& image = context.input(0).dims;
  const Dims& rois = context.input(1).dims;
  kit::require(image.size() == 4 && rois.size() == 2 && rois[1] == 4, "RoiAlign: X ",
               to_string(image), " and rois ", to_string(rois),
               ", allowed are [N,C,H,W] and [R,4]");
  kit::require(context.input(2).dims == Dims{rois[0]}, "RoiAlign: batch_indices ",
               to_string(context.input(2).dims), ", one per roi is wanted");
  Dims out = {rois[0], image[1], context.node().integer("output_height", 1),
              context.node().integer("output_width", 1)};
  checked_size(out, "RoiAlign");
  context.set(0, std::move(out));
}

void max_roi_pool_shape(ShapeContext& context) {
  const Dims& image = context.input(0).dims;
  const Dims& rois = context.input(1).dims;
  const Dims cells = context.node().integers("pooled_shape");
  kit::require(image.size() == 4 && rois.size() == 2 && rois[1] == 5 && cells.size() == 2 &&
                   cells[0] > 0 && cells[1] > 0,
               "MaxRoiPool: X ", to_string(image), ", rois ", to_string(rois), ", pooled_shape ",
               to_string(cells), "; allowed are [N,C,H,W], [R,5] and two extents above 0");
  Dims out = {rois[0], image[1], cells[0], cells[1]};
  checked_size(out, "MaxRoiPool");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> grid_ops() {
  return {{"MaxRoiPool", 1, 0, max_roi_pool_shape},
          {"GridSample", 16, 0, grid_sample_shape},
          {"RoiAlign", 10, 0, roi_align_shape}};
}

}  // namespace chipdock::runtime
