// SPDX-License-Identifier: Apache-2.0
// Choice between two arrays by a third, one compiled copy per ISA level; elements are known by
// size.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_SELECT_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_SELECT_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// to[i] = condition[i * steps[0]] ? x[i * steps[1]] : y[i * steps[2]] with steps of 0 or 1.
using Select = void (*)(const bool* condition, const void* x, const void* y, void* to, int64_t n,
                        const int64_t (&steps)[3]);

/// For elements of 1, 2, 4, 8 or 16 bytes.
CHIPDOCK_CPU_DECLARE(Select select_function(int bytes))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_SELECT_HPP_
