// SPDX-License-Identifier: Apache-2.0
// A product whose operands were both packed before.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PACKED_WORK_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PACKED_WORK_HPP_

#include "gemm.hpp"

namespace chipdock::plugin::cpu {

/// C = A * B with both operands packed.
template <class T>
class PackedWork final : public GemmWork<T> {
 public:
  PackedWork(int64_t m, int64_t n, int64_t k, const T* a, const T* packed_b, T* c, int64_t c_row,
             bool accumulate)
      : a_(a), c_(c), accumulate_(accumulate) {
    this->m = m;
    this->n = n;
    this->k = k;
    this->c_row = c_row;
    b_.packed = packed_b;
  }
  const T* a(int64_t) const override { return a_; }
  T* c(int64_t) const override { return c_; }
  const T* start(int64_t) const override { return accumulate_ ? c_ : nullptr; }
  GemmPanel<T> panel(int64_t, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    return b_.panel(this->m, this->k, k_begin, k_end, column, cols, scratch);
  }

 private:
  const T* a_;
  GemmB<T> b_;
  T* c_;
  bool accumulate_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PACKED_WORK_HPP_
