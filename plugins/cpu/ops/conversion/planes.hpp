// SPDX-License-Identifier: Apache-2.0
// Complex elements for kernels that are linear in their first input: the real and the imaginary
// parts are taken apart, go through the kernel one after the other, and are put together again.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_PLANES_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_PLANES_HPP_

#include <type_traits>
#include <vector>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

inline constexpr chipdock_dtype kComplex64 = kit::dtype(CHIPDOCK_DTYPE_COMPLEX, 64);
inline constexpr chipdock_dtype kComplex128 = kit::dtype(CHIPDOCK_DTYPE_COMPLEX, 128);

/// K for complex input 0 and output 0 whose parts are T. Other inputs reach K as they are. A K that
/// writes elements of its own has `imaginary()`, called once on the copy for imaginary parts.
template <class K, class T>
class Planes final : public Kernel {
 public:
  explicit Planes(const kit::NodeView& node) : real_(node), imaginary_(node) {
    make_imaginary(imaginary_, 0);
  }
  uint64_t workspace(const Context& context) const override { return real_.workspace(context); }

  void run(const Context& context) const override {
    Tensor x = context.input(0);
    Tensor y = context.output(0);
    const T* from = x.as<T>();
    T* to = y.mut<T>();
    std::vector<T> before(static_cast<size_t>(x.size())), after(static_cast<size_t>(y.size()));
    std::vector<const Tensor*> inputs(context.inputs, context.inputs + context.input_count);
    x.dtype = y.dtype = kit::dtype(CHIPDOCK_DTYPE_FLOAT, sizeof(T) * 8);
    x.data = before.data();
    y.data = after.data();
    inputs[0] = &x;
    const Tensor* output = &y;
    Context plain = context;
    plain.inputs = inputs.data();
    plain.outputs = &output;
    for (size_t part = 0; part < 2; ++part) {
      for (size_t i = 0; i < before.size(); ++i) before[i] = from[2 * i + part];
      (part == 0 ? real_ : imaginary_).run(plain);
      for (size_t i = 0; i < after.size(); ++i) to[2 * i + part] = after[i];
    }
  }

 private:
  template <class Inner>
  static auto make_imaginary(Inner& kernel, int) -> decltype(kernel.imaginary()) {
    kernel.imaginary();
  }
  template <class Inner>
  static void make_imaginary(Inner&, long) {}

  K real_, imaginary_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_PLANES_HPP_
