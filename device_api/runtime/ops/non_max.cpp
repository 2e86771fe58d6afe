// SPDX-License-Identifier: Apache-2.0
// Upper bound for NonMaxSuppression; the kernel reports how many boxes it chose.
#include <algorithm>

#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void non_max_shape(ShapeContext& context) {
  const Dims& boxes = context.input(0).dims;
  const Dims& scores = context.input(1).dims;
  kit::require(boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 && boxes[0] == scores[0] &&
                   boxes[1] == scores[2],
               "NonMaxSuppression: boxes ", to_string(boxes), " and scores ", to_string(scores),
               ", allowed are [N,boxes,4] and [N,classes,boxes]");
  int64_t most = 0;
  if (context.has_input(2)) {
    const std::vector<int64_t> given = context.integers(2);
    kit::require(given.size() == 1, "NonMaxSuppression: max_output_boxes_per_class has ",
                 given.size(), " elements, it must have 1");
    most = std::clamp<int64_t>(given[0], 0, scores[2]);
  }
  const int64_t lines = checked_size({scores[0], scores[1]}, "NonMaxSuppression");
  Dims out = {lines * most, 3};
  checked_size(out, "NonMaxSuppression");
  context.set(0, std::move(out), kit::kInt64);
}

}  // namespace

std::vector<Op> non_max_ops() {
  return {{"NonMaxSuppression", 10, 0, non_max_shape, 1 << 2, kOpDataDependent}};
}

}  // namespace chipdock::runtime
