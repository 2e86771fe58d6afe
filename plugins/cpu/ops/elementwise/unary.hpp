// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor for kernels that apply one to their own results; the vectorised ones are
// in simd/unary.hpp.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_UNARY_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_UNARY_HPP_

#include "simd/unary.hpp"

namespace chipdock::plugin::cpu {

/// y[i] = f(x[i]) for elements of a type that is known to whoever chose the function; x and y are
/// equal or do not overlap.
using UnaryLoop = void (*)(const void* x, void* y, int64_t n, const UnaryParams<double>& params);

/// The function on doubles; for bit-wise ones, which doubles do not have, it copies.
UnaryLoop unary_f64(Unary op);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_UNARY_HPP_
