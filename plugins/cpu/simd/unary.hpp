// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one float array, one compiled copy per ISA level. ops/unary.cpp names
// the operators and serves the other dtypes.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_UNARY_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_UNARY_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

enum class Unary : int32_t {
  kAbs,
  kNeg,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,
  kSign,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kHardSigmoid,
  kRelu,
  kLeakyRelu,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kHardSwish,
  kGelu,
  kGeluTanh,
  kCelu,
  kMish,
  kThresholdedRelu,
  kSwish,
  kClip,
  kBitwiseNot,
  kCount
};

/// Attributes of the functions that have some; clip's bounds are alpha and beta.
template <class T>
struct UnaryParams {
  T alpha{};
  T beta{};
};

/// y[i] = f(x[i]); x and y are equal or do not overlap.
using UnaryF32 = void (*)(const float* x, float* y, int64_t n, const UnaryParams<float>& params);

/// NULL for what floats do not have.
CHIPDOCK_CPU_DECLARE(UnaryF32 unary_f32(Unary op))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_UNARY_HPP_
