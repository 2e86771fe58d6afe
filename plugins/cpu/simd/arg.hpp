// SPDX-License-Identifier: Apache-2.0
// Positions of extremes, one compiled copy per ISA level. ops/arg.cpp knows axes and threads.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_ARG_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_ARG_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

enum class ArgType : int32_t {
  kF32,
  kF64,
  kF16,
  kBf16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64
};

/// What counts as best. The first NaN wins over everything; of equal elements the first, or the
/// last.
struct ArgRule {
  bool largest;
  bool last;
};

/// The two ways of looking. Counts are 1 or more.
struct ArgFunctions {
  /// The position in a row of n elements.
  int64_t (*row)(const void* x, int64_t n, ArgRule rule);
  /// y[j] = the position in column j of n, of `length` elements that are `stride` elements apart.
  void (*columns)(const void* x, int64_t length, int64_t stride, int64_t n, ArgRule rule,
                  int64_t* y);
};

CHIPDOCK_CPU_DECLARE(ArgFunctions arg_functions(ArgType type))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_ARG_HPP_
