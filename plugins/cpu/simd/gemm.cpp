// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Products of floats and doubles inside registers, by fused multiply-adds where the level has them.
#include "simd/gemm.hpp"

#include "simd/gemm_block.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

template <class T>
struct MultiplyAdd {
  using Element = T;
  using V = typename GemmVector<T>::Type;
  static V broadcast(const T* x) { return *x - V{}; }  // x - 0 is x for every x, x + 0 is not.
  static V right(const T* b, int v) {
    return gemm_load<MultiplyAdd>(b + v * GemmVector<T>::kWidth);
  }
  static V add(V sum, V left, V right) { return sum + left * right; }
};

}  // namespace

const GemmIsa<float>& gemm_isa_f32() {
  static constexpr GemmIsa<float> kIsa = gemm_isa_of<MultiplyAdd<float>>();
  return kIsa;
}

const GemmIsa<double>& gemm_isa_f64() {
  static constexpr GemmIsa<double> kIsa = gemm_isa_of<MultiplyAdd<double>>();
  return kIsa;
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
