// SPDX-License-Identifier: Apache-2.0
// Small steps that the shape functions of data-moving operators share: axes, sizes, dtypes by ONNX
// number.
#ifndef CHIPDOCK_RUNTIME_OPS_MOVEMENT_SHAPES_HPP_
#define CHIPDOCK_RUNTIME_OPS_MOVEMENT_SHAPES_HPP_

#include <string>
#include <vector>

#include "ops/op.hpp"

namespace chipdock::runtime {

/// Integers from input `i` if it is given, else from the attribute (older versions), else empty.
inline Dims input_or_attribute(const ShapeContext& context, size_t i, const char* attribute) {
  return context.has_input(i) ? context.integers(i) : context.node().integers(attribute);
}

inline int64_t axis_of(const ShapeContext& context, int64_t axis, int64_t rank) {
  return kit::normalize_axis(axis, rank, context.node().raw().op);
}

/// Axes made positive; one that is named twice is an error.
inline Dims unique_axes(const ShapeContext& context, Dims axes, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t& axis : axes) {
    axis = axis_of(context, axis, rank);
    kit::require(!seen[axis], context.node().op(), ": axes name axis ", axis, " twice");
    seen[axis] = true;
  }
  return axes;
}

/// Sets output 0 to `dims` with the dtype of input 0, after the overflow check.
inline void set_like_input(ShapeContext& context, Dims dims) {
  checked_size(dims, context.node().op());
  context.set(0, std::move(dims), context.input(0).dtype);
}

/// dims[begin, end) behind `to`.
inline void append(Dims& to, const Dims& dims, int64_t begin, int64_t end) {
  to.insert(to.end(), dims.begin() + begin, dims.begin() + end);
}

/// The dtype of an ONNX TensorProto.DataType number; fails for strings and unknown ones.
inline chipdock_dtype dtype_of_onnx(int64_t number, std::string_view op) {
  switch (number) {
    case 1:
      return kit::kFloat32;
    case 2:
      return kit::kUint8;
    case 3:
      return kit::kInt8;
    case 4:
      return kit::kUint16;
    case 5:
      return kit::kInt16;
    case 6:
      return kit::kInt32;
    case 7:
      return kit::kInt64;
    case 9:
      return kit::kBool;
    case 10:
      return kit::kFloat16;
    case 11:
      return kit::kFloat64;
    case 12:
      return kit::kUint32;
    case 13:
      return kit::kUint64;
    case 16:
      return kit::kBfloat16;
    default:
      break;
  }
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": dtype attribute is ", number,
            ", allowed are the ONNX numbers of bool, integers and floats from 8 bits");
}

/// a * b + c for extents, or INVALID_ARGUMENT naming the operator.
inline int64_t checked_extent(int64_t a, int64_t b, int64_t c, std::string_view op) {
  int64_t product = 0, sum = 0;
  kit::require(!__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, &sum),
               op, ": extent ", a, " * ", b, " + ", c, " does not fit int64");
  return sum;
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_OPS_MOVEMENT_SHAPES_HPP_
