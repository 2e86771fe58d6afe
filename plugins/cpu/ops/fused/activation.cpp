// SPDX-License-Identifier: Apache-2.0
// Names of activations; see activation.hpp.
#include "ops/fused/activation.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace chipdock::plugin::cpu {
namespace {

struct Named {
  const char* name;
  Unary function;
};
constexpr Named kActivations[] = {
    {"Relu", Unary::kRelu},           {"LeakyRelu", Unary::kLeakyRelu},
    {"Clip", Unary::kClip},           {"HardSigmoid", Unary::kHardSigmoid},
    {"HardSwish", Unary::kHardSwish}, {"Sigmoid", Unary::kSigmoid},
    {"Swish", Unary::kSwish},         {"Tanh", Unary::kTanh},
    {"Gelu", Unary::kGelu},           {"GeluTanh", Unary::kGeluTanh}};

}  // namespace

FusedActivation::FusedActivation(const kit::NodeView& node)
    : double_params_{node.number("alpha", 0), node.number("beta", 0)} {
  const std::string name = node.text("activation", "");
  if (name.empty()) return;
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const Named& n) { return name == n.name; });
  if (found == std::end(kActivations)) {
    std::string known;
    for (const Named& n : kActivations) known += std::string(", ") + n.name;
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, node.op(), ": activation \"", name,
              "\" is unknown, allowed are \"\"", known);
  }
  single_ = CHIPDOCK_CPU_DISPATCH(unary_f32)(found->function);
  double_ = unary_f64(found->function);
  single_params_ = {static_cast<float>(double_params_.alpha),
                    static_cast<float>(double_params_.beta)};
  if (found->function == Unary::kRelu || found->function == Unary::kClip) {
    const bool relu = found->function == Unary::kRelu;
    double_bounds_[0] = relu ? 0 : double_params_.alpha;
    double_bounds_[1] = relu ? INFINITY : double_params_.beta;
    for (int i = 0; i < 2; ++i) single_bounds_[i] = static_cast<float>(double_bounds_[i]);
    // Comparisons ignore a bound that is NaN, the functions do not.
    clamps_ = !std::isnan(double_bounds_[0]) && !std::isnan(double_bounds_[1]);
  }
}

void FusedActivation::apply(float* y, int64_t n) const {
  if (!none()) single_(y, y, n, single_params_);
}
void FusedActivation::apply(double* y, int64_t n) const {
  if (!none()) double_(y, y, n, double_params_);
}

int32_t supports_fused(const kit::NodeView& node) {
  using kit::operator==;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i) && !(node.input_dtype(i) == node.input_dtype(0))) {
      kit::fail(CHIPDOCK_UNSUPPORTED, node.op(), ": input ", i, " is ",
                kit::dtype_name(node.input_dtype(i)), " and input 0 ",
                kit::dtype_name(node.input_dtype(0)), ", they must have one dtype");
    }
  }
  const FusedActivation checked(node);
  return CHIPDOCK_SUPPORTS_YES;
}

KernelDef fused(KernelDef plain, const char* op, const char* name) {
  plain.op = op;
  plain.name = name;
  plain.domain = "ai.chipdock";
  plain.since = 1;
  plain.aliases = {{3, 0}};
  return plain;
}

const Tensor* residual_input(const Context& context, const std::string& op) {
  if (!context.has_input(3)) return nullptr;
  const Tensor& z = context.input(3);
  const Tensor& y = context.output(0);
  kit::require(z.rank == y.rank && std::equal(z.shape, z.shape + z.rank, y.shape), op, ": Z of ",
               z.size(), " elements has another shape than Y of ", y.size());
  return &z;
}

}  // namespace chipdock::plugin::cpu
