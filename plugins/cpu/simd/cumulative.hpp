// SPDX-License-Identifier: Apache-2.0
// Running sums and products, one compiled copy per ISA level. ops/cumulative.cpp knows axes and
// threads.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_CUMULATIVE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_CUMULATIVE_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Integers wrap, so their sign does not matter.
enum class CumulativeType : int32_t { kF32, kF64, kF16, kBf16, k32, k64 };

struct CumulativeRule {
  bool product;
  bool exclusive;  ///< Without the element itself.
  bool reverse;
};

/// Most columns of one call.
inline constexpr int64_t kCumulativeColumns = 128;

/// y may be x. Counts are 1 or more.
struct CumulativeFunctions {
  /// `count` rows of `length` elements that follow each other.
  void (*rows)(const void* x, void* y, int64_t count, int64_t length, CumulativeRule rule);
  /// n columns of `length` elements that are `stride` elements apart.
  void (*columns)(const void* x, void* y, int64_t length, int64_t stride, int64_t n,
                  CumulativeRule rule);
};

CHIPDOCK_CPU_DECLARE(CumulativeFunctions cumulative_functions(CumulativeType type))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_CUMULATIVE_HPP_
