// SPDX-License-Identifier: Apache-2.0
// Scale and zero point that bring floats to unsigned bytes, from their range with zero in it.
#ifndef CHIPDOCK_PLUGIN_CPU_DYNAMIC_BYTES_HPP_
#define CHIPDOCK_PLUGIN_CPU_DYNAMIC_BYTES_HPP_

#include "kernel.hpp"
#include "simd/quantize.hpp"

namespace chipdock::plugin::cpu {

uint64_t dynamic_scratch_bytes(const Context& context);
/// As DynamicQuantizeLinear defines them. Scale and zero point are 0 if all values are.
ByteScale dynamic_scale(const Context& context, const float* x, int64_t n, void* scratch);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_DYNAMIC_BYTES_HPP_
