// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, inference and (from version 14) training. float32 and half types are computed
// in float with the statistics' channel factors made once, float64 in float64.
#include <type_traits>

#include "ops/normalization/rows.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Statistics of the batch, or as given, and the factor of each channel; T is float or double.
template <class T>
struct Channels {
  std::vector<T> mean;
  std::vector<T> variance;
  std::vector<T> factor;  ///< scale / sqrt(variance + epsilon)
  std::vector<T> bias;
};

class BatchNorm final : public Kernel {
 public:
  explicit BatchNorm(const kit::NodeView& node)
      : training_(node.integer("training_mode", 0) != 0),
        per_activation_(node.integer("spatial", 1) == 0),
        epsilon_(node.number("epsilon", 1e-5f)),
        momentum_(node.number("momentum", 0.9f)),
        affine_(CHIPDOCK_CPU_DISPATCH(affine)),
        affine_row_(CHIPDOCK_CPU_DISPATCH(affine_row)) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    if (is(x.dtype, kit::kFloat64)) return run_double(context);
    const Channels<float> c = channels<float>(context);
    if (x.size() == 0) return;
    const auto count = static_cast<int64_t>(c.mean.size());
    const int64_t positions = per_activation_ ? 1 : x.size(2, x.rank);
    if (positions == 1) {
      return over_rows(context, x, context.output(0), x.size() / count, count,
                       [&](const float* from, float* to, int64_t) {
                         affine_row_(from, to, count, c.mean.data(), c.factor.data(),
                                     c.bias.data());
                       });
    }
    over_rows(context, x, context.output(0), x.size() / positions, positions,
              [&](const float* from, float* to, int64_t i) {
                const auto k = static_cast<size_t>(i % count);
                affine_(from, to, positions, c.mean[k], c.factor[k], c.bias[k]);
              });
  }

 private:
  template <class T>
  static std::vector<T> values(const Tensor& x) {
    std::vector<T> storage;
    const T* from = elements_as(x, storage);
    return {from, from + x.size()};
  }

  template <class T>
  Channels<T> channels(const Context& context) const {
    Channels<T> c;
    c.bias = values<T>(context.input(2));
    c.mean = values<T>(context.input(3));
    c.variance = values<T>(context.input(4));
    if (training_) batch_statistics(context, c);
    c.factor = values<T>(context.input(1));
    for (size_t k = 0; k < c.factor.size(); ++k) {
      const double deviation = std::sqrt(static_cast<double>(c.variance[k]) + epsilon_);
      c.factor[k] = static_cast<T>(static_cast<double>(c.factor[k]) / deviation);
    }
    return c;
  }

  /// Replaces the statistics by those of x, and writes the running ones.
  template <class T>
  void batch_statistics(const Context& context, Channels<T>& c) const {
    const Tensor& x = context.input(0);
    const auto count = static_cast<int64_t>(c.mean.size());
    const int64_t positions = x.size(2, x.rank);
    std::vector<T> storage;
    const T* from = elements_as(x, storage);
    const int64_t each_channel = x.size() / std::max<int64_t>(count, 1);
    const auto n = static_cast<double>(each_channel);
    for (int64_t k = 0; k < count; ++k) {
      const auto each = [&](auto f) {
        for (int64_t b = 0; b < x.dim(0); ++b) {
          const T* row = from + (b * count + k) * positions;
          for (int64_t i = 0; i < positions; ++i) f(static_cast<double>(row[i]));
        }
      };
      double mean = 0;
      each([&](double v) { mean += v; });
      mean /= n;
      double square = 0;
      each([&](double v) { square += (v - mean) * (v - mean); });
      const double variance = square / n;
      T& old_mean = c.mean[static_cast<size_t>(k)];
      T& old_variance = c.variance[static_cast<size_t>(k)];
      if (context.has_output(1)) {
        put_element(context.output(1), k, running(static_cast<double>(old_mean), mean));
      }
      if (context.has_output(2)) {
        put_element(context.output(2), k, running(static_cast<double>(old_variance), variance));
      }
      old_mean = static_cast<T>(mean);
      old_variance = static_cast<T>(variance);
    }
  }
  double running(double old, double now) const { return old * momentum_ + now * (1 - momentum_); }

  void run_double(const Context& context) const {
    const Tensor& x = context.input(0);
    const Channels<double> c = channels<double>(context);
    const auto count = static_cast<int64_t>(c.mean.size());
    const int64_t positions = per_activation_ ? 1 : x.size(2, x.rank);
    const double* from = x.as<double>();
    double* to = context.output(0).mut<double>();
    over(context, x.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto k = static_cast<size_t>(i / positions % count);
        to[i] = (from[i] - c.mean[k]) * c.factor[k] + c.bias[k];
      }
    });
  }

  bool training_;
  bool per_activation_;
  double epsilon_;
  double momentum_;
  std::decay_t<decltype(CHIPDOCK_CPU_DISPATCH(affine))> affine_;
  std::decay_t<decltype(CHIPDOCK_CPU_DISPATCH(affine_row))> affine_row_;
};

}  // namespace

KernelSpan batch_norm_kernels() {
  KernelDef def{"BatchNormalization", 7};
  def.create = make<BatchNorm>;
  def.dtypes = {{0, dtypes_of(FloatTypes{})}};
  def.aliases = {{0, 0}};
  KernelSpan kernels;
  kernels.push_back(std::move(def));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
