// SPDX-License-Identifier: Apache-2.0
// Shape of Transpose.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void transpose_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  const int64_t rank = context.input(0).rank();
  Dims perm = context.node().integers("perm");
  if (perm.empty()) {
    for (int64_t i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  kit::require(static_cast<int64_t>(perm.size()) == rank, "Transpose: perm ", to_string(perm),
               " has ", perm.size(), " entries, input ", to_string(from), " needs ", rank);
  Dims to;
  for (int64_t axis : unique_axes(context, perm, rank)) to.push_back(from[axis]);
  set_like_input(context, std::move(to));
}

}  // namespace

std::vector<Op> transpose_ops() { return {{"Transpose", 1, 0, transpose_shape}}; }

}  // namespace chipdock::runtime
