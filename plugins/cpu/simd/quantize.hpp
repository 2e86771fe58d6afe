// SPDX-License-Identifier: Apache-2.0
// Runs of floats to bytes and back with one scale and zero point, compiled per ISA level. Which
// elements have which scale is for ops/quantize.cpp to say.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_QUANTIZE_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_QUANTIZE_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

struct ByteScale {
  float scale;
  float zero;
  bool is_signed;
};

/// y = saturated(rint(x / scale) + zero), ties to even; NaN gives 0.
CHIPDOCK_CPU_DECLARE(void quantize_bytes(const float* x, int64_t n, const ByteScale& by,
                                         uint8_t* y))
/// y = (x - zero) * scale.
CHIPDOCK_CPU_DECLARE(void dequantize_bytes(const uint8_t* x, int64_t n, const ByteScale& by,
                                           float* y))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_QUANTIZE_HPP_
