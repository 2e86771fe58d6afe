// SPDX-License-Identifier: Apache-2.0
// What the operators of the domain "ai.chipdock" add to Conv and MatMul: an activation on the
// result while it is in the cache. It calls the functions of the plain operators, so both agree.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_FUSED_ACTIVATION_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_FUSED_ACTIVATION_HPP_

#include <string>

#include "kernel.hpp"
#include "ops/elementwise/unary.hpp"

namespace chipdock::plugin::cpu {

/// The attributes activation, alpha and beta of a node; a node without them has none.
class FusedActivation {
 public:
  /// Throws kit::Failure INVALID_ARGUMENT for a name it does not know.
  explicit FusedActivation(const kit::NodeView& node);

  /// True if there is nothing to do.
  bool none() const { return single_ == nullptr; }
  /// The two bounds, if holding values between them is all; else NULL.
  template <class T>
  const T* clamp() const {
    if (!clamps_) return nullptr;
    if constexpr (sizeof(T) == sizeof(float)) {
      return single_bounds_;
    } else {
      return double_bounds_;
    }
  }
  void apply(float* y, int64_t n) const;
  void apply(double* y, int64_t n) const;
  /// The same for a block whose rows are `row` elements apart.
  template <class T>
  void apply(T* y, int64_t rows, int64_t cols, int64_t row) const {
    if (none()) return;
    if (cols == row) return apply(y, rows * cols);
    for (int64_t i = 0; i < rows; ++i) apply(y + i * row, cols);
  }

 private:
  UnaryF32 single_ = nullptr;
  UnaryLoop double_ = nullptr;
  UnaryParams<float> single_params_;
  UnaryParams<double> double_params_;
  bool clamps_ = false;
  float single_bounds_[2] = {};
  double double_bounds_[2] = {};
};

/// `supports` of fused kernels and of the plain ones that share their code: one dtype for all
/// inputs, and a known activation. Says why in the failure that it throws.
int32_t supports_fused(const kit::NodeView& node);

/// The fused operator's registration from that of the operator it extends: input 3, the residual,
/// may be Y's memory.
KernelDef fused(KernelDef plain, const char* op, const char* name);

/// The residual, which has Y's shape, or NULL.
const Tensor* residual_input(const Context& context, const std::string& op);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_FUSED_ACTIVATION_HPP_
