// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that give the same elements another shape. All are views.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

/// Entry that replaces the -1. Where the other extents multiply to 0, extents copied from the input
/// are left out on both sides: a batch of 0 images of [0, 3, 4] becomes [0, 12] by [0, -1].
int64_t inferred_extent(const Dims& from, const Dims& to, const Dims& wanted, size_t unknown,
                        bool allow_zero) {
  int64_t have = 1, rest = 1;
  for (int64_t d : from) have *= d;
  for (size_t i = 0; i < to.size(); ++i) rest *= i == unknown ? 1 : to[i];
  if (rest != 0 && have % rest == 0) return have / rest;
  if (rest == 0 && have == 0 && !allow_zero) {
    have = rest = 1;
    const auto copied = [&](size_t i) { return i < to.size() && i != unknown && wanted[i] == 0; };
    for (size_t i = 0; i < from.size(); ++i) have *= copied(i) ? 1 : from[i];
    for (size_t i = 0; i < to.size(); ++i) rest *= copied(i) || i == unknown ? 1 : to[i];
    if (rest != 0 && have % rest == 0) return have / rest;
  }
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Reshape: no extent in place of -1 turns ", to_string(from),
            " into ", to_string(wanted));
}

void reshape_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  const Dims wanted = context.integers(1);
  kit::require(context.input(1).rank() <= 1, "Reshape: shape has rank ", context.input(1).rank(),
               ", must be 1");
  const bool allow_zero = context.node().integer("allowzero", 0) != 0;
  const int64_t have = checked_size(from, "Reshape");
  Dims to = wanted;
  size_t unknown = to.size();
  bool any_zero = false;
  for (size_t i = 0; i < to.size(); ++i) {
    kit::require(to[i] >= -1, "Reshape: shape ", to_string(wanted), " has ", to[i],
                 ", allowed are -1 once, 0 and more");
    if (to[i] == -1) {
      kit::require(unknown == to.size(), "Reshape: shape ", to_string(wanted),
                   " has -1 twice, allowed is once");
      unknown = i;
    } else if (to[i] == 0 && allow_zero) {
      any_zero = true;
    } else if (to[i] == 0) {
      kit::require(i < from.size(), "Reshape: shape ", to_string(wanted), " copies dim ", i,
                   " of an input of shape ", to_string(from), " (allowzero=0)");
      to[i] = from[i];
    }
  }
  if (unknown < to.size()) {
    kit::require(!any_zero, "Reshape: shape ", to_string(wanted),
                 " has 0 and -1, which allowzero=1 forbids");
    to[unknown] = 1;
    checked_size(to, "Reshape");
    to[unknown] = inferred_extent(from, to, wanted, unknown, allow_zero);
  }
  const int64_t got = checked_size(to, "Reshape");
  kit::require(got == have, "Reshape: input ", to_string(from), " has ", have, " elements, shape ",
               to_string(wanted), " means ", to_string(to), " with ", got);
  context.set(0, std::move(to), context.input(0).dtype);
}

void squeeze_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  const bool all = !context.has_input(1) && !context.node().has("axes");
  std::vector<bool> drop(from.size(), false);
  if (all) {
    for (size_t i = 0; i < from.size(); ++i) drop[i] = from[i] == 1;
  } else {
    const Dims axes = unique_axes(context, input_or_attribute(context, 1, "axes"),
                                  static_cast<int64_t>(from.size()));
    for (int64_t axis : axes) {
      kit::require(from[axis] == 1, "Squeeze: axis ", axis, " of ", to_string(from), " has extent ",
                   from[axis], ", must be 1");
      drop[axis] = true;
    }
  }
  Dims to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!drop[i]) to.push_back(from[i]);
  }
  set_like_input(context, std::move(to));
}

void unsqueeze_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  kit::require(context.has_input(1) || context.node().has("axes"), "Unsqueeze: axes are not given");
  Dims axes = input_or_attribute(context, 1, "axes");
  const size_t rank = from.size() + axes.size();
  kit::require(rank <= CHIPDOCK_MAX_RANK, "Unsqueeze: ", axes.size(), " axes on ", to_string(from),
               " make rank ", rank, ", at most ", CHIPDOCK_MAX_RANK, " is allowed");
  axes = unique_axes(context, std::move(axes), static_cast<int64_t>(rank));
  Dims to(rank, 0);
  for (int64_t axis : axes) to[axis] = 1;
  size_t next = 0;
  for (int64_t& extent : to) {
    if (extent == 0) extent = from[next++];
  }
  set_like_input(context, std::move(to));
}

void flatten_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  const int64_t rank = context.input(0).rank();
  int64_t axis = context.node().integer("axis", 1);
  kit::require(axis >= -rank && axis <= rank, "Flatten: axis ", axis, " is outside [", -rank, ", ",
               rank, "] for ", to_string(from));
  if (axis < 0) axis += rank;
  const int64_t rows = checked_size(Dims(from.begin(), from.begin() + axis), "Flatten");
  const int64_t columns = checked_size(Dims(from.begin() + axis, from.end()), "Flatten");
  set_like_input(context, {rows, columns});
}

void identity_shape(ShapeContext& context) { set_like_input(context, context.input(0).dims); }

}  // namespace

std::vector<Op> view_ops() {
  return {{"Reshape", 5, 0, reshape_shape, 1 << 1, kOpView},
          {"Squeeze", 1, 0, squeeze_shape, 1 << 1, kOpView},
          {"Unsqueeze", 1, 0, unsqueeze_shape, 1 << 1, kOpView},
          {"Flatten", 1, 0, flatten_shape, 0, kOpView},
          {"Identity", 1, 0, identity_shape, 0, kOpView}};
}

}  // namespace chipdock::runtime
