// SPDX-License-Identifier: Apache-2.0
// Whole half-type tensors to float and back, for kernels that compute half types in float: exact
// one way, rounded to nearest even the other. The loops are simd/convert.cpp's.
#ifndef CHIPDOCK_PLUGIN_CPU_WIDEN_HPP_
#define CHIPDOCK_PLUGIN_CPU_WIDEN_HPP_

#include "kernel.hpp"
#include "simd/convert.hpp"

namespace chipdock::plugin::cpu {

inline bool is_half(chipdock_dtype dtype) {
  using kit::operator==;
  return dtype == kit::kFloat16 || dtype == kit::kBfloat16;
}

inline void widen(chipdock_dtype dtype, const void* source, int64_t count, float* target) {
  const auto* from = static_cast<const uint16_t*>(source);
  const bool brain = dtype.code == CHIPDOCK_DTYPE_BFLOAT;
  (brain ? CHIPDOCK_CPU_DISPATCH(widen_bf16) : CHIPDOCK_CPU_DISPATCH(widen_f16))(from, target,
                                                                                 count);
}

inline void narrow(chipdock_dtype dtype, const float* source, int64_t count, void* target) {
  auto* to = static_cast<uint16_t*>(target);
  const bool brain = dtype.code == CHIPDOCK_DTYPE_BFLOAT;
  (brain ? CHIPDOCK_CPU_DISPATCH(narrow_bf16) : CHIPDOCK_CPU_DISPATCH(narrow_f16))(source, to,
                                                                                   count);
}

/// The elements of `tensor` as T: its own memory, or widened into `scratch`.
template <class T>
const T* widened(const Tensor& tensor, T* scratch) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (is_half(tensor.dtype)) {
      widen(tensor.dtype, tensor.data, tensor.size(), scratch);
      return scratch;
    }
  }
  return tensor.as<T>();
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_WIDEN_HPP_
