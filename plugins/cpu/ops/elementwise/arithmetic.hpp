// SPDX-License-Identifier: Apache-2.0
// A function of two arrays for any dtype, broadcast or not: what Add, Less, Max, … have in common.
// arithmetic.cpp holds the functions of the dtypes that simd/binary.cpp does not serve, apply.cpp
// the broadcasting.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_ARITHMETIC_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_ARITHMETIC_HPP_

#include "ops/numeric.hpp"
#include "simd/binary.hpp"

namespace chipdock::plugin::cpu {

/// One binary function for one dtype. apply() is all that callers need; it picks the fastest form.
class BinaryFunction {
 public:
  /// Throws UNSUPPORTED if the function does not exist for the dtype.
  BinaryFunction(Binary op, chipdock_dtype type, std::string_view name);

  int64_t input_size() const { return size_; }
  int64_t output_size() const { return compares_ ? 1 : size_; }
  /// c[i] = f(a[i], b[i]) over n elements of the dtype (bool for c of a comparison).
  void apply(const void* a, const void* b, void* c, int64_t n, Operands operands) const;

 private:
  using Loop = void (*)(const void* a, const void* b, void* c, int64_t n);
  void apply_half(const uint16_t* a, const uint16_t* b, void* c, int64_t n,
                  Operands operands) const;
  void apply_loop(const char* a, const char* b, char* c, int64_t n, Operands operands) const;
  static Loop find(Binary op, chipdock_dtype type);

  BinaryF32 single_ = nullptr;
  Compare compare_ = nullptr;
  HalfCodec half_;
  Loop loop_ = nullptr;
  int64_t size_ = 0;
  bool compares_ = false;
};

/// c = f(a, b), numpy broadcast. c may be the memory of an operand that has as many elements.
void apply_broadcast(const Context& context, const BinaryFunction& function, const Tensor& a,
                     const Tensor& b, const Tensor& c, std::string_view op);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_ARITHMETIC_HPP_
