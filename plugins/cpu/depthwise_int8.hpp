// SPDX-License-Identifier: Apache-2.0
// Convolution of bytes where each filter sees one channel: planes become floats, which hold such sums
// exactly, and run through the plane filter of simd/depthwise.cpp.
#ifndef CHIPDOCK_PLUGIN_CPU_DEPTHWISE_INT8_HPP_
#define CHIPDOCK_PLUGIN_CPU_DEPTHWISE_INT8_HPP_

#include "kernel.hpp"
#include "ops/window.hpp"
#include "simd/dot_end.hpp"

namespace chipdock::plugin::cpu {

struct ByteDepthwise {
  const Space& space;
  int64_t images, channels, filters;
  const Tensor& x;
  const Tensor& w;
  int32_t zero_x;
  const int32_t* zero_w;    ///< One for each filter.
  const int32_t* row_term;  ///< The bias, one for each filter.
  int32_t* y32;             ///< NULL: `bytes` says where sums go.
  DotBytes bytes;
};

/// Whether sums stay exact and padded planes of a sensible size.
bool fits_byte_depthwise(const Space& space);
uint64_t byte_depthwise_scratch(const Context& context, const Space& space);
void byte_depthwise(const Context& context, const ByteDepthwise& work, void* scratch);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_DEPTHWISE_INT8_HPP_
