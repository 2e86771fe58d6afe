// SPDX-License-Identifier: Apache-2.0
// Shape of Slice: attributes in version 1, inputs from 10 on; starts and ends are clamped to the
// input.
#include <algorithm>

#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

/// How many positions start, start + step, … lie before end.
int64_t sliced_extent(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  if (step > 0) {
    start = std::clamp(start, int64_t{0}, extent);
    end = std::clamp(end, int64_t{0}, extent);
    return end > start ? (end - start - 1) / step + 1 : 0;
  }
  if (extent == 0) return 0;
  start = std::clamp(start, int64_t{0}, extent - 1);
  end = std::clamp(end, int64_t{-1}, extent - 1);
  step = std::max(step, -INT64_MAX);
  return start > end ? (start - end - 1) / -step + 1 : 0;
}

void slice_shape(ShapeContext& context) {
  const bool by_attribute = context.node().since_version() < 10;
  const Dims starts = by_attribute ? context.node().integers("starts") : context.integers(1);
  const Dims ends = by_attribute ? context.node().integers("ends") : context.integers(2);
  Dims axes = by_attribute ? context.node().integers("axes")
                           : (context.has_input(3) ? context.integers(3) : Dims());
  const Dims steps =
      !by_attribute && context.has_input(4) ? context.integers(4) : Dims(starts.size(), 1);
  const bool no_axes = by_attribute ? !context.node().has("axes") : !context.has_input(3);
  for (size_t i = 0; no_axes && i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  kit::require(
      ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
      "Slice: starts ", to_string(starts), ", ends ", to_string(ends), ", axes ", to_string(axes),
      " and steps ", to_string(steps), " must have equal length");
  Dims to = context.input(0).dims;
  axes = unique_axes(context, std::move(axes), context.input(0).rank());
  for (size_t i = 0; i < axes.size(); ++i) {
    kit::require(steps[i] != 0, "Slice: step of axis ", axes[i], " is 0");
    to[axes[i]] = sliced_extent(to[axes[i]], starts[i], ends[i], steps[i]);
  }
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> slice_ops() {
  return {{"Slice", 1, 9, slice_shape}, {"Slice", 10, 0, slice_shape, 0b11110}};
}

}  // namespace chipdock::runtime
