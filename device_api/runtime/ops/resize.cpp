// SPDX-License-Identifier: Apache-2.0
// Shapes of Resize and Upsample.
#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

/// A computed extent as an integer; the comparison is false for NaN too.
int64_t to_extent(double extent, std::string_view op, double scale) {
  constexpr double kLimit = 4611686018427387904.0;  // 2^62, as checked_size() has it.
  if (!(extent <= kLimit)) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": scale ", scale, " is out of range, it makes ",
              extent, " elements along one axis, allowed are 2^62");
  }
  return static_cast<int64_t>(extent);
}

/// floor(dim * scale) in float, as the operator's scales are given.
int64_t scaled(int64_t dim, double scale, std::string_view op) {
  kit::require(scale > 0, op, ": scale ", scale, " must be positive");
  const float extent = std::floor(static_cast<float>(dim) * static_cast<float>(scale));
  return to_extent(static_cast<double>(extent), op, scale);
}

Dims scale_all(const Dims& x, const std::vector<double>& scales, std::string_view op) {
  kit::require(scales.size() == x.size(), op, ": ", scales.size(), " scales for X ", to_string(x),
               ", one for each axis is needed");
  Dims out = x;
  for (size_t i = 0; i < x.size(); ++i) out[i] = scaled(x[i], scales[i], op);
  checked_size(out, op);
  return out;
}

void upsample_shape(ShapeContext& context) {
  const std::vector<double> scales =
      context.node().since_version() >= 9 ? context.numbers(1) : context.node().numbers("scales");
  context.set(0, scale_all(context.input(0).dims, scales, "Upsample"));
}

void resize10_shape(ShapeContext& context) {
  context.set(0, scale_all(context.input(0).dims, context.numbers(1), "Resize"));
}

/// One scale for all axes that keeps the aspect ratio within or around `sizes`.
double common_scale(const Dims& x, const Dims& axes, const Dims& sizes, bool not_larger) {
  double best = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = x[static_cast<size_t>(axes[i])];
    if (dim == 0) continue;
    const double scale = static_cast<double>(sizes[i]) / static_cast<double>(dim);
    if (i == 0 || (not_larger ? scale < best : scale > best)) best = scale;
  }
  return best;
}

void resize_shape(ShapeContext& context) {
  const Dims& x = context.input(0).dims;
  const auto rank = static_cast<int64_t>(x.size());
  Dims axes = context.node().integers("axes");
  if (axes.empty()) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  for (int64_t& axis : axes) axis = kit::normalize_axis(axis, rank, "Resize");
  const std::vector<double> scales =
      context.has_input(2) ? context.numbers(2) : std::vector<double>();
  const Dims sizes = context.has_input(3) ? context.integers(3) : Dims();
  kit::require(scales.empty() != sizes.empty() || rank == 0,
               "Resize: exactly one of scales and sizes must be given, got ", scales.size(),
               " scales and ", sizes.size(), " sizes");
  kit::require(scales.empty() ? sizes.size() == axes.size() : scales.size() == axes.size(),
               "Resize: ", scales.empty() ? sizes.size() : scales.size(), " values for ",
               axes.size(), " axes of X ", to_string(x));
  const std::string policy = context.node().text("keep_aspect_ratio_policy", "stretch");
  const bool stretch = policy == "stretch";
  kit::require(stretch || policy == "not_larger" || policy == "not_smaller",
               "Resize: keep_aspect_ratio_policy ", policy,
               " is unknown, allowed are stretch, not_larger and not_smaller");
  Dims out = x;
  const double common =
      stretch || sizes.empty() ? 1 : common_scale(x, axes, sizes, policy == "not_larger");
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& dim = out[static_cast<size_t>(axes[i])];
    if (sizes.empty()) {
      dim = scaled(dim, scales[i], "Resize");
    } else if (stretch) {
      kit::require(sizes[i] >= 0, "Resize: size ", sizes[i], " must not be negative");
      dim = sizes[i];
    } else {
      dim = to_extent(std::floor(common * static_cast<double>(dim) + 0.5), "Resize", common);
    }
  }
  if (checked_size(out, "Resize") > 0 && std::find(x.begin(), x.end(), 0) != x.end()) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Resize: X ", to_string(x),
              " is empty, so it has no elements to make ", to_string(out),
              " from, only an empty output is allowed");
  }
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> resize_ops() {
  return {{"Upsample", 7, 7, upsample_shape},
          {"Upsample", 9, 0, upsample_shape, 1u << 1},
          {"Resize", 10, 10, resize10_shape, 1u << 1},
          {"Resize", 11, 0, resize_shape, (1u << 1) | (1u << 2) | (1u << 3)}};
}

}  // namespace chipdock::runtime
