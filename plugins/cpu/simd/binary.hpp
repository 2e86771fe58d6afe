// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of two float arrays and comparisons of any numbers, one compiled copy per
// ISA level. ops/elementwise broadcasts, and has the arithmetic of the other dtypes.
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
/// The same with a truth value for each pair; a and b are arrays of one type, apart from c.
using Compare = void (*)(const void* a, const void* b, bool* c, int64_t n, Operands operands);

/// Types that comparisons tell apart. bool is kU8.
enum class Compared : int32_t { kF32, kF64, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64 };

/// NULL for comparisons and for what floats do not have.
CHIPDOCK_CPU_DECLARE(BinaryF32 binary_f32(Binary op))
/// What binary_f32 gives for kPow (simd/power.cpp).
CHIPDOCK_CPU_DECLARE(void power_f32(const float* a, const float* b, float* c, int64_t n,
                                    Operands operands))
/// NULL unless `op` is a comparison.
CHIPDOCK_CPU_DECLARE(Compare comparison(Binary op, Compared type))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_BINARY_HPP_
