// SPDX-License-Identifier: Apache-2.0
// Normalisations whose statistics come from each row: Layer, RMS, Instance, Group, Lp,
// MeanVariance. BatchNormalization, which is given them, stands in batch_norm.cpp.
#include <string_view>

#include "ops/normalization/rows.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Outputs from this size on would throw all else out of the caches, and are written around them.
constexpr uint64_t kPastCaches = 32u << 20;

/// A parameter that broadcasts to the normalised dims, spread out to n elements where it is
/// smaller.
template <class T>
const T* spread(const Tensor* given, const Tensor& x, int64_t axis, int64_t n,
                std::vector<T>& storage) {
  if (given == nullptr) return nullptr;
  const T* from = elements_as<T>(*given, storage);
  if (given->size() == n) return from;
  std::vector<T> full(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int32_t d = x.rank - 1; d >= axis; --d) {
      const int32_t own = d - (x.rank - given->rank);
      const int64_t extent = own >= 0 ? given->shape[own] : 1;
      if (extent != 1) at += rest % x.shape[d] * step;
      step *= extent;
      rest /= x.shape[d];
    }
    full[static_cast<size_t>(i)] = from[at];
  }
  storage = std::move(full);
  return storage.data();
}

/// LayerNormalization and RMSNormalization: rows are all dims from `axis` on.
class RowNorm final : public Kernel {
 public:
  explicit RowNorm(const kit::NodeView& node)
      : op_(node.op()),
        axis_(node.integer("axis", -1)),
        epsilon_(node.number("epsilon", 1e-5f)),
        centred_(op_ == "LayerNormalization"),
        moments_(CHIPDOCK_CPU_DISPATCH(row_moments)),
        normalize_(CHIPDOCK_CPU_DISPATCH(normalize_row)) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    if (x.size() == 0) return;
    const int64_t axis = kit::normalize_axis(axis_, x.rank, op_.c_str());
    const int64_t count = x.size(0, axis);
    const int64_t n = x.size(axis, x.rank);
    if (is(x.dtype, kit::kFloat64)) return run_double(context, axis, count, n);
    std::vector<float> scale_storage;
    std::vector<float> bias_storage;
    const float* scale = spread(parameter(context, 1), x, axis, n, scale_storage);
    const float* bias = spread(parameter(context, 2), x, axis, n, bias_storage);
    const Tensor& y = context.output(0);
    const bool past_caches = y.bytes() >= kPastCaches && is(y.dtype, kit::kFloat32);
    const float epsilon = static_cast<float>(epsilon_);
    over_rows(context, x, y, count, n, [&](const float* from, float* to, int64_t i) {
      const RowMoments m = moments_(from, n, epsilon, centred_);
      normalize_(from, to, n, m, scale, bias, past_caches);
      statistics(context, i, m.mean, m.inverse);
    });
  }

 private:
  static const Tensor* parameter(const Context& context, uint32_t i) {
    return context.has_input(i) ? &context.input(i) : nullptr;
  }
  void statistics(const Context& context, int64_t i, double mean, double inverse) const {
    if (context.has_output(1)) put_element(context.output(1), i, mean);
    if (context.has_output(2)) put_element(context.output(2), i, inverse);
  }
  void run_double(const Context& context, int64_t axis, int64_t count, int64_t n) const {
    const Tensor& x = context.input(0);
    std::vector<double> scale_storage;
    std::vector<double> bias_storage;
    const double* scale = spread(parameter(context, 1), x, axis, n, scale_storage);
    const double* bias = spread(parameter(context, 2), x, axis, n, bias_storage);
    over(context, count, row_grain(n, kGrain / 2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double* from = x.as<double>() + i * n;
        const DoubleMoments m = moments_double(from, n, epsilon_, centred_);
        for (int64_t j = 0; j < n; ++j) {
          double v = (from[j] - m.mean) * m.inverse;
          if (scale != nullptr) v *= scale[j];
          if (bias != nullptr) v += bias[j];
          put_element(context.output(0), i * n + j, v);
        }
        statistics(context, i, m.mean, m.inverse);
      }
    });
  }

  std::string op_;
  int64_t axis_;
  double epsilon_;
  bool centred_;
  decltype(CHIPDOCK_CPU_DISPATCH(row_moments)) moments_;
  decltype(CHIPDOCK_CPU_DISPATCH(normalize_row)) normalize_;
};

/// InstanceNormalization and GroupNormalization: a row is one group of channels with all positions.
class GroupNorm final : public Kernel {
 public:
  explicit GroupNorm(const kit::NodeView& node)
      : groups_(node.integer("num_groups", 0)),
        scale_per_group_(node.op() == "GroupNormalization" && node.since_version() < 21),
        epsilon_(node.number("epsilon", 1e-5f)),
        moments_(CHIPDOCK_CPU_DISPATCH(row_moments)),
        affine_(CHIPDOCK_CPU_DISPATCH(affine)) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    if (x.size() == 0) return;
    const int64_t channels = x.rank > 1 ? x.dim(1) : 1;
    const int64_t groups = groups_ > 0 ? groups_ : channels;
    kit::require(channels % groups == 0, "num_groups ", groups, " does not divide ", channels,
                 " channels");
    const int64_t positions = x.size(2, x.rank);
    const int64_t width = channels / groups;
    if (is(x.dtype, kit::kFloat64)) return run_double(context, groups, width, positions);
    std::vector<float> storage[2];
    const float* scale = elements_as(context.input(1), storage[0]);
    const float* bias = elements_as(context.input(2), storage[1]);
    const float epsilon = static_cast<float>(epsilon_);
    const int64_t n = width * positions;
    over_rows(context, x, context.output(0), x.size() / n, n,
              [&](const float* from, float* to, int64_t i) {
                const RowMoments m = moments_(from, n, epsilon, true);
                const int64_t group = i % groups;
                for (int64_t c = 0; c < width; ++c) {
                  const int64_t k = scale_per_group_ ? group : group * width + c;
                  affine_(from + c * positions, to + c * positions, positions, m.mean,
                          m.inverse * scale[k], bias[k]);
                }
              });
  }

 private:
  void run_double(const Context& context, int64_t groups, int64_t width, int64_t positions) const {
    const Tensor& x = context.input(0);
    std::vector<double> storage[2];
    const double* scale = elements_as(context.input(1), storage[0]);
    const double* bias = elements_as(context.input(2), storage[1]);
    const int64_t n = width * positions;
    over(context, x.size() / n, row_grain(n, kGrain / 2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double* from = x.as<double>() + i * n;
        double* to = context.output(0).mut<double>() + i * n;
        const DoubleMoments m = moments_double(from, n, epsilon_, true);
        const int64_t group = i % groups;
        for (int64_t j = 0; j < n; ++j) {
          const int64_t k = scale_per_group_ ? group : group * width + j / positions;
          to[j] = (from[j] - m.mean) * m.inverse * scale[k] + bias[k];
        }
      }
    });
  }

  int64_t groups_;
  bool scale_per_group_;
  double epsilon_;
  decltype(CHIPDOCK_CPU_DISPATCH(row_moments)) moments_;
  decltype(CHIPDOCK_CPU_DISPATCH(affine)) affine_;
};

/// LpNormalization: x divided by the norm along one axis; 0 stays 0.
class LpNorm final : public Kernel {
 public:
  explicit LpNorm(const kit::NodeView& node)
      : axis_(node.integer("axis", -1)), p_(node.integer("p", 2)) {
    kit::require(p_ == 1 || p_ == 2, "LpNormalization: p is ", p_, ", allowed are 1 and 2");
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (x.size() == 0) return;
    const int64_t axis = kit::normalize_axis(axis_, x.rank, "LpNormalization");
    const int64_t length = x.dim(axis);
    const int64_t inner = x.size(axis + 1, x.rank);
    std::vector<double> storage;
    const double* from = elements_as(x, storage);
    over(context, x.size() / length, row_grain(length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / inner * length * inner + i % inner;
        double norm = 0;
        for (int64_t k = 0; k < length; ++k) {
          const double v = from[at + k * inner];
          norm += p_ == 1 ? std::fabs(v) : v * v;
        }
        if (p_ == 2) norm = std::sqrt(norm);
        if (norm == 0) norm = 1;
        for (int64_t k = 0; k < length; ++k) {
          put_element(y, at + k * inner, from[at + k * inner] / norm);
        }
      }
    });
  }

 private:
  int64_t axis_;
  int64_t p_;
};

template <class K>
KernelDef define(const char* op, int32_t since) {
  KernelDef def{op, since};
  def.create = make<K>;
  def.dtypes = {{0, dtypes_of(FloatTypes{})}};
  def.aliases = {{0, 0}};
  return def;
}

}  // namespace

KernelSpan norm_kernels() {
  KernelSpan kernels;
  kernels.push_back(define<RowNorm>("LayerNormalization", 17));
  kernels.push_back(define<RowNorm>("RMSNormalization", 23));
  kernels.push_back(define<GroupNorm>("InstanceNormalization", 6));
  kernels.push_back(define<GroupNorm>("GroupNormalization", 18));
  kernels.push_back(define<LpNorm>("LpNormalization", 1));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
