// SPDX-License-Identifier: Apache-2.0
// Shape of BitCast: like the input; the dtype is the model's, of the same width.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void bit_cast_shape(ShapeContext& context) { context.set(0, context.input(0).dims); }

}  // namespace

std::vector<Op> bit_cast_ops() { return {{"BitCast", 26, 0, bit_cast_shape}}; }

}  // namespace chipdock::runtime
