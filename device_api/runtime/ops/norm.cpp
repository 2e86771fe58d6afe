// SPDX-License-Identifier: Apache-2.0
// Shapes of normalisations: the main output is like the input; statistics have their own dtypes.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void like_input(ShapeContext& context) {
  context.set(0, context.input(0).dims, context.input(0).dtype);
}

void require_channels(const ShapeContext& context, size_t i, int64_t count) {
  const ShapeInput& given = context.input(i);
  kit::require(given.dims == Dims{count}, context.node().op(), ": input ", i, " has shape ",
               to_string(given.dims), ", it must be [", count, "] for x of shape ",
               to_string(context.input(0).dims));
}

int64_t channels(const ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  kit::require(x.rank() >= 1, context.node().op(), ": x is a scalar, at least rank 1 is needed");
  return x.rank() >= 2 ? x.dims[1] : 1;
}

void instance(ShapeContext& context) {
  for (size_t i = 1; i < 3; ++i) require_channels(context, i, channels(context));
  like_input(context);
}

void group(ShapeContext& context) {
  const int64_t groups = context.node().integer("num_groups", 0);
  const int64_t all = channels(context);
  kit::require(groups > 0 && all % groups == 0, "GroupNormalization: num_groups ", groups,
               " does not divide the ", all, " channels of x of shape ",
               to_string(context.input(0).dims));
  // Version 18 has one scale for a group, 21 one for a channel.
  const int64_t scales = context.node().since_version() < 21 ? groups : all;
  for (size_t i = 1; i < 3; ++i) require_channels(context, i, scales);
  like_input(context);
}

void batch(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const bool per_activation = context.node().integer("spatial", 1) == 0;
  for (size_t i = 1; i < 5; ++i) {
    if (!per_activation) require_channels(context, i, channels(context));
    context.set(i, context.input(i).dims, context.input(i).dtype);
  }
  // From version 14 outputs 1 and 2 are the running mean and variance, like inputs 3 and 4.
  if (context.node().since_version() >= 14) {
    context.set(1, context.input(3).dims, context.input(3).dtype);
    context.set(2, context.input(4).dims, context.input(4).dtype);
  }
  context.set(0, x.dims, x.dtype);
}

/// Checks that `given` broadcasts to the normalised dims.
void require_fits(const ShapeContext& context, size_t i, const Dims& normalised) {
  if (!context.has_input(i)) return;
  const std::string op(context.node().op());
  kit::require(broadcast(normalised, context.input(i).dims, op) == normalised, op, ": input ", i,
               " of shape ", to_string(context.input(i).dims),
               " must broadcast to the normalised dims ", to_string(normalised));
}

int64_t first_axis(const ShapeContext& context) {
  return kit::normalize_axis(context.node().integer("axis", -1), context.input(0).rank(),
                             std::string(context.node().op()).c_str());
}

void layer(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const int64_t axis = first_axis(context);
  const Dims normalised(x.dims.begin() + axis, x.dims.end());
  require_fits(context, 1, normalised);
  require_fits(context, 2, normalised);
  Dims statistics = x.dims;
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  constexpr int64_t kOnnxBfloat16 = 16;
  const bool bfloat = context.node().integer("stash_type", 1) == kOnnxBfloat16;
  context.set(0, x.dims, x.dtype);
  context.set(1, statistics, bfloat ? kit::kBfloat16 : kit::kFloat32);
  context.set(2, statistics, bfloat ? kit::kBfloat16 : kit::kFloat32);
}

void rms(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const int64_t axis = first_axis(context);
  require_fits(context, 1, Dims(x.dims.begin() + axis, x.dims.end()));
  context.set(0, x.dims, context.input(1).dtype);
}

void lp(ShapeContext& context) {
  first_axis(context);
  like_input(context);
}

}  // namespace

std::vector<Op> norm_ops() {
  return {{"LayerNormalization", 17, 0, layer},
          {"RMSNormalization", 23, 0, rms},
          {"BatchNormalization", 7, 0, batch},
          {"InstanceNormalization", 6, 0, instance},
          {"GroupNormalization", 18, 0, group},
          {"LpNormalization", 1, 0, lp},
          {"MeanVarianceNormalization", 9, 0, like_input}};
}

}  // namespace chipdock::runtime
