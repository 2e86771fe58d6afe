// SPDX-License-Identifier: Apache-2.0
// Shape of TreeEnsemble: a row of targets for each row of features.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void tree_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const int64_t targets = context.node().integer("n_targets", 1);
  kit::require(x.size() == 2 && targets > 0, "TreeEnsemble: X ", to_string(x), " and ", targets,
               " targets, allowed are [rows, features] and 1 or more");
  context.set(0, {x[0], targets});
}

}  // namespace

std::vector<Op> tree_ops() { return {{"TreeEnsemble", 5, 0, tree_shape, 0, 0, "ai.onnx.ml"}}; }

}  // namespace chipdock::runtime
