// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 arrays to float and back, round to nearest even, one copy per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_CONVERT_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_CONVERT_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

CHIPDOCK_CPU_DECLARE(void widen_f16(const uint16_t* x, float* y, int64_t n))
CHIPDOCK_CPU_DECLARE(void narrow_f16(const float* x, uint16_t* y, int64_t n))
CHIPDOCK_CPU_DECLARE(void widen_bf16(const uint16_t* x, float* y, int64_t n))
CHIPDOCK_CPU_DECLARE(void narrow_bf16(const float* x, uint16_t* y, int64_t n))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_CONVERT_HPP_
