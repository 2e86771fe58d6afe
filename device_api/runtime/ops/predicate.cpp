// SPDX-License-Identifier: Apache-2.0
// Shapes of IsNaN, IsInf and Not: bool, as large as the input.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void truth_of_input(ShapeContext& context) { context.set(0, context.input(0).dims, kit::kBool); }

}  // namespace

std::vector<Op> predicate_ops() {
  return {{"Not", 1, 0, truth_of_input},
          {"IsNaN", 9, 0, truth_of_input},
          {"IsInf", 10, 0, truth_of_input}};
}

}  // namespace chipdock::runtime
