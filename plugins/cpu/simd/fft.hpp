// SPDX-License-Identifier: Apache-2.0
// Transforms of several lines at once, one compiled copy per ISA level. An element is the real parts
// of all lines and then their imaginary parts; complex constants are pairs. Plans are made in
// ops/signal.cpp.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_FFT_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_FFT_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Lines that are transformed side by side, unless there is one alone.
inline constexpr int kFftLines = 8;

struct FftFunctions {
  /// In place; n is a power of two. `roots` holds exp(-pi i k / h) for k < h, for each h of 1, 2, 4,
  /// … below n: n - 1 in all. `inverse` takes their conjugates; nothing is scaled.
  void (*transform)(double* x, int64_t n, const double* roots, bool inverse);
  /// x[k] *= factors[k]
  void (*multiply)(double* x, int64_t n, const double* factors);
};

/// For kFftLines lines, or for one.
CHIPDOCK_CPU_DECLARE(FftFunctions fft_functions(bool one_line))

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_FFT_HPP_
