// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that put pieces of an image back: MaxUnpool and Col2Im.
#include "ops/window.hpp"

namespace chipdock::runtime {
namespace {

void max_unpool_shape(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const Dims space = spatial_dims(x, "MaxUnpool");
  kit::require(context.input(1).dims == x.dims, "MaxUnpool: indices ",
               to_string(context.input(1).dims), " must have the shape of X ", to_string(x.dims));
  if (context.has_input(2)) {
    Dims out = context.integers(2);
    kit::require(out.size() == x.dims.size(), "MaxUnpool: output_shape ", to_string(out),
                 " must have rank ", x.rank());
    checked_size(out, "MaxUnpool");
    return context.set(0, std::move(out));
  }
  const Dims kernel = context.node().integers("kernel_shape");
  kit::require(kernel.size() == space.size(), "MaxUnpool: kernel_shape ", to_string(kernel),
               " must have ", space.size(), " entries");
  const Window window(context.node(), kernel);
  Dims out = {x.dims[0], x.dims[1]};
  for (size_t i = 0; i < space.size(); ++i) {
    const int64_t reach =
        checked_multiply(space[i] - 1, window.strides[i], "MaxUnpool", "the output's extent");
    out.push_back(reach - window.padding(i) + kernel[i]);
  }
  checked_size(out, "MaxUnpool");
  context.set(0, std::move(out));
}

void col2im_shape(ShapeContext& context) {
  const Dims& columns = context.input(0).dims;
  const Dims image = context.integers(1);
  const Dims block = context.integers(2);
  kit::require(columns.size() == 3 && image.size() == block.size(), "Col2Im: input ",
               to_string(columns), ", image_shape ", to_string(image), ", block_shape ",
               to_string(block), "; the input has rank 3, the others one length");
  const Window window(context.node(), block);
  int64_t places = 1;
  for (size_t i = 0; i < image.size(); ++i) places *= window.extent(i, image[i], false);
  const int64_t size = element_count(block);
  kit::require(columns[1] % size == 0 && columns[2] == places, "Col2Im: input ", to_string(columns),
               " must be [N, channels times ", size, ", ", places, "]");
  Dims out = {columns[0], columns[1] / size};
  out.insert(out.end(), image.begin(), image.end());
  checked_size(out, "Col2Im");
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> unpool_ops() {
  return {{"MaxUnpool", 9, 0, max_unpool_shape, 1 << 2},
          {"Col2Im", 18, 0, col2im_shape, 1 << 1 | 1 << 2}};
}

}  // namespace chipdock::runtime
