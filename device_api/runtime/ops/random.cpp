// SPDX-License-Identifier: Apache-2.0
// Shapes of the random operators, which are never folded, and of Dropout. That is no view, as it
// may have a mask and may train, but its kernel works in place.
#include "ops/movement/shapes.hpp"

namespace chipdock::runtime {
namespace {

chipdock_dtype asked_dtype(const ShapeContext& context, chipdock_dtype otherwise) {
  if (!context.node().has("dtype")) return otherwise;
  return dtype_of_onnx(context.node().integer("dtype", 1), context.node().op());
}

void random_shape(ShapeContext& context) {
  kit::require(context.node().has("shape"), context.node().op(), ": attribute shape is not given");
  Dims to = context.node().integers("shape");
  checked_size(to, context.node().op());
  context.set(0, std::move(to), asked_dtype(context, kit::kFloat32));
}

void random_like_shape(ShapeContext& context) {
  context.set(0, context.input(0).dims, asked_dtype(context, context.input(0).dtype));
}

void multinomial_shape(ShapeContext& context) {
  const Dims& from = context.input(0).dims;
  const int64_t samples = context.node().integer("sample_size", 1);
  kit::require(from.size() == 2 && samples >= 0, "Multinomial: input ", to_string(from),
               " must be [batch, classes], sample_size ", samples, " 0 or more");
  Dims to = {from[0], samples};
  checked_size(to, "Multinomial");
  context.set(0, std::move(to), asked_dtype(context, kit::kInt32));
}

void dropout_shape(ShapeContext& context) {
  const ShapeInput& data = context.input(0);
  set_like_input(context, data.dims);
  // Before version 10 the mask has the dtype of the data.
  context.set(1, data.dims, context.node().since_version() < 10 ? data.dtype : kit::kBool);
}

}  // namespace

std::vector<Op> random_ops() {
  return {{"Dropout", 7, 0, dropout_shape, 0, kOpRandom},
          {"RandomUniform", 1, 0, random_shape, 0, kOpRandom},
          {"RandomNormal", 1, 0, random_shape, 0, kOpRandom},
          {"RandomUniformLike", 1, 0, random_like_shape, 0, kOpRandom},
          {"RandomNormalLike", 1, 0, random_like_shape, 0, kOpRandom},
          {"Bernoulli", 15, 0, random_like_shape, 0, kOpRandom},
          {"Multinomial", 7, 0, multinomial_shape, 0, kOpRandom}};
}

}  // namespace chipdock::runtime
