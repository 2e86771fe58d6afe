// SPDX-License-Identifier: Apache-2.0
// Elements of any real dtype as floats or doubles, for operators whose work is not in the
// conversion. A double keeps every dtype but 64-bit integers beyond 2^53 exactly, a float all
// dtypes of up to 24 bits.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_VALUES_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_VALUES_HPP_

#include <vector>

#include "ops/conversion/small.hpp"
#include "ops/numeric.hpp"
#include "simd/cast.hpp"

namespace chipdock::plugin::cpu {

/// kCount if C++ has no such type.
Native native_of(chipdock_dtype type);

/// Rounds to float such that a second rounding to at most 22 bits gives what one rounding would.
float round_to_odd(double x);

/// Blocks of one dtype, to float and back. `at` lies on a byte of a sub-byte dtype.
class FloatCodec {
 public:
  explicit FloatCodec(chipdock_dtype type);
  void read(const void* data, int64_t at, int64_t n, float* out) const;
  /// Integers are cut off towards zero; the caller clamps them first.
  void write(const float* in, int64_t at, int64_t n, void* data,
             const NarrowOptions& options = {}) const;

 private:
  chipdock_dtype type_;
  HalfCodec half_;
  const SmallFormat* small_;
};

/// Whether a computation on this dtype is done in double.
inline bool needs_double(chipdock_dtype type) {
  return is(type, kit::kFloat64) || (type.bits >= 32 && type.code != CHIPDOCK_DTYPE_FLOAT);
}

/// All elements of a tensor, as float or double.
template <class T>
std::vector<T> load(const Tensor& tensor);
/// Rounds to the tensor's dtype; integers to nearest even, clamped.
template <class T>
void store(const std::vector<T>& values, const Tensor& tensor);

/// Calls body(Tag<float>) or body(Tag<double>), whichever the dtype needs.
template <class Body>
void in_float_or_double(chipdock_dtype type, const Body& body) {
  if (needs_double(type)) {
    body(Tag<double>{});
  } else {
    body(Tag<float>{});
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_VALUES_HPP_
