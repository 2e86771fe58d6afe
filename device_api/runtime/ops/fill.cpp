// SPDX-License-Identifier: Apache-2.0
// Shapes of ConstantOfShape, Range, EyeLike and OneHot: extents come from values, not from shapes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

void constant_of_shape_shape(ShapeContext& context) {
  Dims to = context.integers(0);
  checked_size(to, "ConstantOfShape");
  const chipdock_tensor* value = context.node().tensor("value");
  context.set(0, std::move(to), value != nullptr ? value->dtype : kit::kFloat32);
}

bool is_integer(chipdock_dtype type) {
  return type.code == CHIPDOCK_DTYPE_INT || type.code == CHIPDOCK_DTYPE_UINT;
}

/// The one element of an integer host input of any width; unsigned 64-bit values are capped.
int64_t integer_scalar(const ShapeContext& context, size_t i) {
  const ShapeInput& input = context.input(i);
  kit::require(input.size() == 1 && input.data != nullptr, context.node().op(), ": input ", i,
               " has shape ", to_string(input.dims), ", must be one element");
  const int bytes = input.dtype.bits / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, input.data, static_cast<size_t>(bytes));
  const int unused = 64 - 8 * bytes;
  if (input.dtype.code == CHIPDOCK_DTYPE_INT) return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(std::min<uint64_t>(bits, INT64_MAX));
}

double number_scalar(const ShapeContext& context, size_t i) {
  kit::require(context.input(i).size() == 1, context.node().op(), ": input ", i, " has shape ",
               to_string(context.input(i).dims), ", must be one element");
  return context.numbers(i)[0];
}

int64_t range_count(int64_t start, int64_t limit, int64_t delta) {
  kit::require(delta != 0, "Range: delta is 0");
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  // Unsigned: the span of two int64 may need 64 bits.
  const uint64_t a = static_cast<uint64_t>(start), b = static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  const uint64_t count = ((delta > 0 ? b - a : a - b) - 1) / step + 1;
  kit::require(count <= (uint64_t{1} << 62), "Range: ", start, " to ", limit, " by ", delta,
               " has ", count, " elements, at most 2^62 are allowed");
  return static_cast<int64_t>(count);
}

/// As ONNX's own shape inference: the span in the dtype of the inputs, the division in double.
int64_t range_count(double start, double limit, double delta, chipdock_dtype type) {
  kit::require(delta != 0 && std::isfinite(start) && std::isfinite(limit) && !std::isnan(delta),
               "Range: start ", start, ", limit ", limit, " and delta ", delta,
               " must be finite, delta not 0");
  const double span =
      type.bits <= 32 ? static_cast<double>(static_cast<float>(limit) - static_cast<float>(start))
                      : limit - start;
  const double count = std::ceil(span / delta);
  kit::require(count <= 0x1p62, "Range: ", start, " to ", limit, " by ", delta, " has ", count,
               " elements, at most 2^62 are allowed");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

void range_shape(ShapeContext& context) {
  const chipdock_dtype type = context.input(0).dtype;
  for (size_t i = 1; i < 3; ++i) {
    kit::require(kit::operator==(context.input(i).dtype, type), "Range: input ", i, " is ",
                 kit::dtype_name(context.input(i).dtype), ", input 0 ", kit::dtype_name(type),
                 "; all must be the same");
  }
  const int64_t count = is_integer(type)
                            ? range_count(integer_scalar(context, 0), integer_scalar(context, 1),
                                          integer_scalar(context, 2))
                            : range_count(number_scalar(context, 0), number_scalar(context, 1),
                                          number_scalar(context, 2), type);
  context.set(0, {count}, type);
}

void eye_like_shape(ShapeContext& context) {
  const ShapeInput& input = context.input(0);
  kit::require(input.rank() == 2, "EyeLike: input ", to_string(input.dims), " must have rank 2");
  context.set(0, input.dims,
              context.node().has("dtype")
                  ? dtype_of_onnx(context.node().integer("dtype", 1), "EyeLike")
                  : input.dtype);
}

void one_hot_shape(ShapeContext& context) {
  const ShapeInput& indices = context.input(0);
  const int64_t axis = axis_of(context, context.node().integer("axis", -1), indices.rank() + 1);
  int64_t depth = 0;
  if (is_integer(context.input(1).dtype)) {
    depth = integer_scalar(context, 1);
  } else {
    const double given = number_scalar(context, 1);
    kit::require(given >= 0 && given < 0x1p62, "OneHot: depth is ", given, ", must be 0 or more");
    depth = static_cast<int64_t>(given);
  }
  kit::require(depth >= 0, "OneHot: depth is ", depth, ", must be 0 or more");
  kit::require(context.input(2).size() == 2, "OneHot: values ", to_string(context.input(2).dims),
               " must have two elements: off, on");
  Dims to = indices.dims;
  to.insert(to.begin() + axis, depth);
  checked_size(to, "OneHot");
  context.set(0, std::move(to), context.input(2).dtype);
}

}  // namespace

std::vector<Op> fill_ops() {
  return {{"ConstantOfShape", 9, 0, constant_of_shape_shape, 1},
          {"Range", 11, 0, range_shape, 0b111},
          {"EyeLike", 9, 0, eye_like_shape},
          {"OneHot", 9, 0, one_hot_shape, 1 << 1}};
}

}  // namespace chipdock::runtime
