// SPDX-License-Identifier: Apache-2.0
// What happens inside one step of RNN, GRU and LSTM: activations and the arithmetic of the gates.
// The walk over time, directions and batch is rnn.cpp's.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_RNN_CELLS_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_RNN_CELLS_HPP_

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "kernel.hpp"
#include "simd/unary.hpp"

namespace chipdock::plugin::cpu {

enum class ActivationKind {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

struct Activation {
  ActivationKind kind;
  double alpha;
  double beta;
};

/// Reads "activations" with its alphas and betas; those are consumed only by functions that take
/// them.
inline std::vector<Activation> read_activations(const kit::NodeView& node, size_t directions,
                                                const std::vector<ActivationKind>& defaults) {
  struct Known {
    const char* name;
    ActivationKind kind;
    int parameters;
    double alpha, beta;
  };
  static constexpr Known kKnown[] = {{"sigmoid", ActivationKind::kSigmoid, 0, 0, 0},
                                     {"tanh", ActivationKind::kTanh, 0, 0, 0},
                                     {"relu", ActivationKind::kRelu, 0, 0, 0},
                                     {"affine", ActivationKind::kAffine, 2, 1, 0},
                                     {"leakyrelu", ActivationKind::kLeakyRelu, 1, 0.01, 0},
                                     {"thresholdedrelu", ActivationKind::kThresholdedRelu, 1, 1, 0},
                                     {"scaledtanh", ActivationKind::kScaledTanh, 2, 1, 1},
                                     {"hardsigmoid", ActivationKind::kHardSigmoid, 2, 0.2, 0.5},
                                     {"elu", ActivationKind::kElu, 1, 1, 0},
                                     {"softsign", ActivationKind::kSoftsign, 0, 0, 0},
                                     {"softplus", ActivationKind::kSoftplus, 0, 0, 0}};
  std::vector<Activation> out;
  const auto* given = node.find("activations");
  if (given == nullptr || given->count == 0) {
    for (size_t d = 0; d < directions; ++d) {
      for (const ActivationKind kind : defaults) out.push_back({kind, 0, 0});
    }
    return out;
  }
  kit::require(
      given->kind == CHIPDOCK_ATTRIBUTE_STRINGS && given->count >= directions * defaults.size(),
      node.raw().op, ": ", given->count, " activations, ", directions * defaults.size(),
      " are needed");  // RNN's own default names two for one direction.
  const std::vector<double> alphas = node.numbers("activation_alpha");
  const std::vector<double> betas = node.numbers("activation_beta");
  size_t next_alpha = 0;
  size_t next_beta = 0;
  for (size_t i = 0; i < directions * defaults.size(); ++i) {
    std::string name = given->texts[i];
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                     [&](const Known& k) { return name == k.name; });
    kit::require(known != std::end(kKnown), node.raw().op, ": activation ", given->texts[i],
                 " is unknown");
    Activation activation = {known->kind, known->alpha, known->beta};
    if (known->parameters > 0 && next_alpha < alphas.size())
      activation.alpha = alphas[next_alpha++];
    if (known->parameters > 1 && next_beta < betas.size()) activation.beta = betas[next_beta++];
    out.push_back(activation);
  }
  return out;
}

/// Applies `activation` to x[0, count) after cutting to [-clip, clip]; clip 0 cuts nothing.
template <class T>
void activate(const Activation& activation, T clip, T* x, int64_t count) {
  if (clip > 0) {
    for (int64_t i = 0; i < count; ++i) x[i] = std::min(std::max(x[i], -clip), clip);
  }
  if constexpr (std::is_same_v<T, float>) {
    const bool sigmoid = activation.kind == ActivationKind::kSigmoid;
    if (sigmoid || activation.kind == ActivationKind::kTanh) {
      const Unary op = sigmoid ? Unary::kSigmoid : Unary::kTanh;
      CHIPDOCK_CPU_DISPATCH(unary_f32)(op)(x, x, count, {});
      return;
    }
  }
  const T a = static_cast<T>(activation.alpha);
  const T b = static_cast<T>(activation.beta);
  const auto each = [&](const auto& f) {
    for (int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
  };
  switch (activation.kind) {
    case ActivationKind::kSigmoid:
      // Through the exponential of a negative number only, so that nothing overflows.
      return each([](T v) {
        const T e = std::exp(-std::abs(v));
        return (v >= 0 ? T(1) : e) / (T(1) + e);
      });
    case ActivationKind::kTanh:
      return each([](T v) { return std::tanh(v); });
    case ActivationKind::kRelu:
      return each([](T v) { return v < 0 ? T(0) : v; });
    case ActivationKind::kAffine:
      return each([=](T v) { return a * v + b; });
    case ActivationKind::kLeakyRelu:
      return each([=](T v) { return v < 0 ? a * v : v; });
    case ActivationKind::kThresholdedRelu:
      return each([=](T v) { return v > a ? v : T(0); });
    case ActivationKind::kScaledTanh:
      return each([=](T v) { return a * std::tanh(b * v); });
    case ActivationKind::kHardSigmoid:
      return each([=](T v) { return std::max(T(0), std::min(T(1), a * v + b)); });
    case ActivationKind::kElu:
      return each([=](T v) { return v < 0 ? a * std::expm1(v) : v; });
    case ActivationKind::kSoftsign:
      return each([](T v) { return v / (T(1) + std::abs(v)); });
    case ActivationKind::kSoftplus:
      return each([](T v) { return std::max(v, T(0)) + std::log1p(std::exp(-std::abs(v))); });
  }
}

/// One batch member of an LSTM step. `gates` holds i, o, f, c before activation; `h` and `c` are
/// updated.
template <class T>
struct LstmStep {
  int64_t hidden;
  T clip;
  bool couple;        ///< input_forget: f = 1 - i.
  const T* peephole;  ///< i, o, f; or NULL.
  const Activation* activations;

  void operator()(T* gates, T* h, T* c) const {
    T* i = gates;
    T* o = gates + hidden;
    T* f = gates + 2 * hidden;
    T* g = gates + 3 * hidden;
    if (peephole != nullptr) {
      for (int64_t j = 0; j < hidden; ++j) {
        i[j] += peephole[j] * c[j];
        f[j] += peephole[2 * hidden + j] * c[j];
      }
    }
    activate(activations[0], clip, i, hidden);
    if (couple) {
      for (int64_t j = 0; j < hidden; ++j) f[j] = T(1) - i[j];
    } else {
      activate(activations[0], clip, f, hidden);
    }
    activate(activations[1], clip, g, hidden);
    for (int64_t j = 0; j < hidden; ++j) {
      c[j] = f[j] * c[j] + i[j] * g[j];
      h[j] = c[j];
    }
    if (peephole != nullptr) {
      for (int64_t j = 0; j < hidden; ++j) o[j] += peephole[hidden + j] * c[j];
    }
    activate(activations[0], clip, o, hidden);
    activate(activations[2], T(0), h, hidden);
    for (int64_t j = 0; j < hidden; ++j) h[j] *= o[j];
  }
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_RNN_CELLS_HPP_
