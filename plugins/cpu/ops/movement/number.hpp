// SPDX-License-Identifier: Apache-2.0
// Single elements as numbers, for operators that need one value of any dtype, and the order of
// elements as unsigned keys, so that sorting needs no code per dtype.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_NUMBER_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_NUMBER_HPP_

#include <cstdint>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

/// The element at `source` as a double; UNSUPPORTED for dtypes that are no plain numbers.
double decode_number(chipdock_dtype type, const void* source, const char* op);

/// Writes `value` as an element, rounded to nearest even for floats, truncated for integers.
void encode_number(chipdock_dtype type, double value, void* target, const char* op);

/// Writes for `count` elements, `stride` bytes apart, keys that compare as the elements do. -0
/// equals 0, and every NaN is the largest value.
void order_keys(chipdock_dtype type, const void* source, int64_t stride, int64_t count,
                uint64_t* keys, const char* op);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_NUMBER_HPP_
