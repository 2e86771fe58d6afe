// SPDX-License-Identifier: Apache-2.0
// Conversions between the dtypes that C++ has, one compiled copy per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_CAST_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_CAST_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

enum class Native : int32_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat32,
  kFloat64,
  kBool,
  kCount
};

using CastLoop = void (*)(const void* x, void* y, int64_t n);

/// NULL if either is kCount.
CHIPDOCK_CPU_DECLARE(CastLoop cast_loop(Native from, Native to))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_CAST_HPP_
