// SPDX-License-Identifier: Apache-2.0
// Shapes of reductions. Axes are an attribute in old versions and an input in new ones.

#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

std::vector<int64_t> axes_of(const ShapeContext& context) {
  if (context.node().has("axes")) return context.node().integers("axes");
  if (context.has_input(1)) return context.integers(1);
  return {};
}

void reduce(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const bool keep = context.node().integer("keepdims", 1) != 0;
  const std::vector<int64_t> axes = axes_of(context);
  if (axes.empty() && context.node().integer("noop_with_empty_axes", 0) != 0) {
    return context.set(0, x.dims, x.dtype);
  }
  std::vector<bool> reduced(x.dims.size(), axes.empty());
  const std::string op(context.node().op());
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(kit::normalize_axis(axis, x.rank(), op.c_str()));
    kit::require(!reduced[at], op, ": axis ", at, " is given twice");
    reduced[at] = true;
  }
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (!reduced[i]) {
      dims.push_back(x.dims[i]);
    } else if (keep) {
      dims.push_back(1);
    }
  }
  context.set(0, std::move(dims), x.dtype);
}

}  // namespace

std::vector<Op> reduce_ops() {
  std::vector<Op> ops;
  for (const char* name :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    const int32_t first_with_input = std::string_view(name) == "ReduceSum" ? 13 : 18;
    Op old{name, 1, first_with_input - 1};
    old.shape = reduce;
    ops.push_back(old);
    Op current{name, first_with_input};
    current.shape = reduce;
    current.host_inputs = 1u << 1;
    ops.push_back(current);
  }
  return ops;
}

}  // namespace chipdock::runtime
