// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of two float arrays, one compiled copy per ISA level. ops/binary.cpp names
// the operators, broadcasts, and serves the other dtypes.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_BINARY_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_BINARY_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

enum class Binary : int32_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPow,
  kMod,
  kFmod,
  kPRelu,
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kShiftLeft,
  kShiftRight,
  kCount
};

constexpr bool is_comparison(Binary op) {
  return op >= Binary::kEqual && op <= Binary::kGreaterOrEqual;
}

/// Which operands are arrays; the other one is a single element.
enum class Operands : int32_t { kBoth, kScalarRight, kScalarLeft };

/// c[i] = f(a[i], b[i]). c may equal an operand that is an array, else does not overlap.
using BinaryF32 = void (*)(const float* a, const float* b, float* c, int64_t n, Operands operands);
/// The same with a truth value for each pair.
using CompareF32 = void (*)(const float* a, const float* b, bool* c, int64_t n, Operands operands);

/// NULL for comparisons and for what floats do not have.
CHIPDOCK_CPU_DECLARE(BinaryF32 binary_f32(Binary op))
/// NULL unless `op` is a comparison.
CHIPDOCK_CPU_DECLARE(CompareF32 compare_f32(Binary op))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BINARY_HPP_
