// SPDX-License-Identifier: Apache-2.0
// Shapes of Cast and CastLike: like the input, in another dtype.
#include "ops/movement/shapes.hpp"
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

/// Numbers of ONNX's TensorProto.DataType that only casts may name: the small formats.
chipdock_dtype target(int64_t number) {
  switch (number) {
    case 17:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FN, 8);
    case 18:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ, 8);
    case 19:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2, 8);
    case 20:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ, 8);
    case 21:
      return kit::dtype(CHIPDOCK_DTYPE_UINT, 4);
    case 22:
      return kit::dtype(CHIPDOCK_DTYPE_INT, 4);
    case 23:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT4_E2M1FN, 4);
    case 24:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E8M0FNU, 8);
    case 25:
      return kit::dtype(CHIPDOCK_DTYPE_UINT, 2);
    case 26:
      return kit::dtype(CHIPDOCK_DTYPE_INT, 2);
    case 27:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT6_E2M3FN, 6);
    case 28:
      return kit::dtype(CHIPDOCK_DTYPE_FLOAT6_E3M2FN, 6);
    default:
      return dtype_of_onnx(number, "Cast");
  }
}

void cast(ShapeContext& context) {
  context.set(0, context.input(0).dims, target(context.node().integer("to", 0)));
}

void cast_like(ShapeContext& context) {
  context.set(0, context.input(0).dims, context.input(1).dtype);
}

}  // namespace

std::vector<Op> cast_ops() { return {{"Cast", 6, 0, cast}, {"CastLike", 15, 0, cast_like}}; }

}  // namespace chipdock::runtime
