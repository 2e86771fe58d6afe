// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool and their global forms. A window is applied one position at a time
// to whole output rows, which has no borders in its inner loop and vectorises for every kernel
// size.
#include "simd/pool.hpp"

#include <cmath>
#include <limits>

#include "ops/window.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

template <class T>
T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

template <class T>
bool wins(T challenger, T holder) {
  return challenger > holder || challenger != challenger;
}

/// What a pooling does with elements: start, fold a row in, finish an output of `count` elements.
template <class T>
struct MaxRule {
  T start() const { return lowest<T>(); }
  void row(const T* in, int64_t stride, int64_t count, T* out) const {
    if constexpr (std::is_same_v<T, float>) {
      CHIPDOCK_CPU_DISPATCH(pool_max_row)(in, stride, count, out);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        if (wins(in[i * stride], out[i])) out[i] = in[i * stride];
      }
    }
  }
  T finish(T value, int64_t) const { return value; }
  T whole(const T* in, int64_t count) const {
    if constexpr (std::is_same_v<T, float>) return CHIPDOCK_CPU_DISPATCH(pool_max)(in, count);
    T best = lowest<T>();
    for (int64_t i = 0; i < count; ++i) best = wins(in[i], best) ? in[i] : best;
    return best;
  }
};

template <class T>
struct AverageRule {
  T start() const { return 0; }
  void row(const T* in, int64_t stride, int64_t count, T* out) const {
    if constexpr (std::is_same_v<T, float>) {
      CHIPDOCK_CPU_DISPATCH(pool_add_row)(in, stride, count, out);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] += in[i * stride];
    }
  }
  T finish(T value, int64_t count) const { return value / static_cast<T>(count); }
  T whole(const T* in, int64_t count) const {
    if constexpr (std::is_same_v<T, float>) {
      return finish(CHIPDOCK_CPU_DISPATCH(pool_sum)(in, count), count);
    }
    T sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += in[i];
    return finish(sum, count);
  }
};

template <class T>
struct LpRule {
  int64_t p;
  T power(T x) const {
    const T size = std::abs(x);
    return p == 2 ? size * size : p == 1 ? size : std::pow(size, static_cast<T>(p));
  }
  T start() const { return 0; }
  void row(const T* in, int64_t stride, int64_t count, T* out) const {
    for (int64_t i = 0; i < count; ++i) out[i] += power(in[i * stride]);
  }
  T finish(T value, int64_t) const {
    return p == 2 ? std::sqrt(value) : p == 1 ? value : std::pow(value, T(1) / static_cast<T>(p));
  }
  T whole(const T* in, int64_t count) const {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(power(in[i]));
    return finish(static_cast<T>(sum), count);
  }
};

/// Outputs [begin, end) of one axis whose element at kernel offset `offset` lies inside the input.
struct Valid {
  Valid(const Space& s, int axis, int64_t offset) {
    const int64_t stride = s.stride[axis];
    const int64_t shift = offset * s.dilation[axis] - s.pad[axis];
    begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    end = shift >= s.in[axis] ? 0 : (s.in[axis] - 1 - shift) / stride + 1;
    end = std::min(end, s.out[axis]);
    first = begin * stride + shift;
  }
  int64_t begin, end;
  int64_t first;  ///< Input index of output `begin`.
};

/// Kernel positions [begin, end) whose elements lie in [low, high) of the input axis for some of
/// the windows that start from `from` to `last`.
struct Taps {
  Taps(const Space& s, int axis, int64_t from, int64_t last, int64_t low, int64_t high) {
    const int64_t step = s.dilation[axis];
    begin = last < low ? (low - last + step - 1) / step : 0;
    end = from >= high ? 0 : std::min(s.kernel[axis], (high - 1 - from) / step + 1);
  }
  /// Of output `at` alone, inside the input.
  Taps(const Space& s, int axis, int64_t at)
      : Taps(s, axis, at * s.stride[axis] - s.pad[axis], at * s.stride[axis] - s.pad[axis], 0,
             s.in[axis]) {}
  int64_t begin, end;
};

/// Kernel positions of output `at` that fall into [low, high) of the input axis.
int64_t positions(const Space& s, int axis, int64_t at, int64_t low, int64_t high) {
  const int64_t from = at * s.stride[axis] - s.pad[axis];
  const Taps taps(s, axis, from, from, low, high);
  return std::max<int64_t>(taps.end - taps.begin, 0);
}

/// Elements that divide the sum at (z, y, x): those inside the input, or inside the padded input.
int64_t window_count(const Space& s, bool with_pads, const int64_t (&at)[3]) {
  int64_t count = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t low = with_pads ? -s.pad[axis] : 0;
    count *= positions(s, axis, at[axis], low, s.in[axis] + (with_pads ? s.pad_end[axis] : 0));
  }
  return std::max<int64_t>(count, 1);
}

template <class T, class Rule>
void pool_plane(const Space& s, const Rule& rule, const T* in, T* out) {
  std::fill_n(out, s.out_size(), rule.start());
  const Taps across(s, 2, -s.pad[2], (s.out[2] - 1) * s.stride[2] - s.pad[2], 0, s.in[2]);
  for (int64_t z = 0; z < s.out[0]; ++z) {
    const Taps deep(s, 0, z);
    for (int64_t y = 0; y < s.out[1]; ++y) {
      const Taps down(s, 1, y);
      T* row = out + (z * s.out[1] + y) * s.out[2];
      for (int64_t k = deep.begin; k < deep.end; ++k) {
        const int64_t from_z = z * s.stride[0] - s.pad[0] + k * s.dilation[0];
        for (int64_t i = down.begin; i < down.end; ++i) {
          const int64_t from_y = y * s.stride[1] - s.pad[1] + i * s.dilation[1];
          const T* line = in + (from_z * s.in[1] + from_y) * s.in[2];
          for (int64_t j = across.begin; j < across.end; ++j) {
            const Valid x(s, 2, j);
            if (x.begin < x.end)
              rule.row(line + x.first, s.stride[2], x.end - x.begin, row + x.begin);
          }
        }
      }
    }
  }
}

/// Divides sums (or takes roots) of a plane.
template <class T, class Rule>
void finish_plane(const Space& s, const Rule& rule, bool with_pads, T* out) {
  for (int64_t z = 0; z < s.out[0]; ++z) {
    for (int64_t y = 0; y < s.out[1]; ++y) {
      for (int64_t x = 0; x < s.out[2]; ++x, ++out) {
        *out = rule.finish(*out, window_count(s, with_pads, {z, y, x}));
      }
    }
  }
}

/// Largest element and where it was, the first one on a tie.
template <class T>
void max_plane_with_indices(const Space& s, const T* in, int64_t base, bool column_major, T* out,
                            int64_t* indices) {
  for (int64_t at = 0; at < s.out_size(); ++at) {
    const int64_t position[3] = {at / s.out[2] / s.out[1], at / s.out[2] % s.out[1], at % s.out[2]};
    T best = lowest<T>();
    int64_t where[3] = {-1, -1, -1};
    const Taps taps[3] = {{s, 0, position[0]}, {s, 1, position[1]}, {s, 2, position[2]}};
    int64_t count[3];
    for (int a = 0; a < 3; ++a) count[a] = std::max<int64_t>(taps[a].end - taps[a].begin, 0);
    for (int64_t k = 0; k < count[0] * count[1] * count[2]; ++k) {
      int64_t from[3] = {k / count[2] / count[1], k / count[2] % count[1], k % count[2]};
      for (int a = 0; a < 3; ++a) {
        from[a] = position[a] * s.stride[a] - s.pad[a] + (taps[a].begin + from[a]) * s.dilation[a];
      }
      const T value = in[(from[0] * s.in[1] + from[1]) * s.in[2] + from[2]];
      if (where[0] < 0 || (wins(value, best) && !(best != best))) {
        best = value;
        std::copy(from, from + 3, where);
      }
    }
    out[at] = best;
    if (where[0] < 0) {
      indices[at] = -1;
    } else if (column_major) {
      indices[at] = base + (where[2] * s.in[1] + where[1]) * s.in[0] + where[0];
    } else {
      indices[at] = base + (where[0] * s.in[1] + where[1]) * s.in[2] + where[2];
    }
  }
}

/// The float forms of half inputs and outputs, in the workspace.
template <class T>
struct Planes {
  Planes(const Context& context, const Tensor& x, const Tensor& y) {
    Carver carver(context.workspace);
    const bool half = is_half(x.dtype);
    in = widened(x, half ? carver.take<T>(x.size()) : nullptr);
    out = half ? carver.take<T>(y.size()) : y.mut<T>();
  }
  void finish(const Tensor& y) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_half(y.dtype)) narrow(y.dtype, out, y.size(), y.data);
    }
  }
  static uint64_t workspace(const Context& context) {
    if (!is_half(context.input(0).dtype)) return 0;
    return padded_bytes(context.input(0).size(), sizeof(T)) +
           padded_bytes(context.output(0).size(), sizeof(T));
  }
  const T* in;
  T* out;
};

template <class T, class Rule>
class Pool : public Kernel {
 public:
  Pool(const kit::NodeView& node, Rule rule, bool divides)
      : window_(node),
        kernel_(node.integers("kernel_shape")),
        rule_(rule),
        divides_(divides),
        with_pads_(node.integer("count_include_pad", 0) != 0),
        column_major_(node.integer("storage_order", 0) != 0) {
    kit::require(!kernel_.empty(), node.raw().op, ": kernel_shape is required");
  }
  uint64_t workspace(const Context& context) const override {
    return Planes<T>::workspace(context);
  }
  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    kit::require(static_cast<size_t>(x.rank) == kernel_.size() + 2, "pooling over ", kernel_.size(),
                 " axes of an input of rank ", x.rank);
    Space s = window_.resolve(x, y, kernel_.data(), false);
    const Planes<T> planes(context, x, y);
    int64_t* indices = context.has_output(1) ? context.output(1).mut<int64_t>() : nullptr;
    const int64_t grain = std::max<int64_t>(1, 16384 / s.out_size() / s.kernel_size());
    context.parallel_for(y.dim(0) * y.dim(1), grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* in = planes.in + p * s.in_size();
        T* out = planes.out + p * s.out_size();
        if (indices != nullptr) {
          max_plane_with_indices(s, in, p * s.in_size(), column_major_, out,
                                 indices + p * s.out_size());
          continue;
        }
        pool_plane(s, rule_, in, out);
        if (divides_) finish_plane(s, rule_, with_pads_, out);
      }
    });
    planes.finish(y);
  }

 private:
  WindowAttributes window_;
  std::vector<int64_t> kernel_;
  Rule rule_;
  bool divides_;
  bool with_pads_;
  bool column_major_;
};

template <class T>
class MaxPool final : public Pool<T, MaxRule<T>> {
 public:
  explicit MaxPool(const kit::NodeView& node) : Pool<T, MaxRule<T>>(node, {}, false) {}
};
template <class T>
class AveragePool final : public Pool<T, AverageRule<T>> {
 public:
  explicit AveragePool(const kit::NodeView& node) : Pool<T, AverageRule<T>>(node, {}, true) {}
};
template <class T>
class LpPool final : public Pool<T, LpRule<T>> {
 public:
  explicit LpPool(const kit::NodeView& node)
      : Pool<T, LpRule<T>>(node, {node.integer("p", 2)}, true) {}
};

template <class T, class Rule>
class GlobalPool : public Kernel {
 public:
  explicit GlobalPool(Rule rule) : rule_(rule) {}
  uint64_t workspace(const Context& context) const override {
    return Planes<T>::workspace(context);
  }
  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const Planes<T> planes(context, x, y);
    const int64_t size = x.size(2, x.rank);
    context.parallel_for(y.size(), std::max<int64_t>(1, 65536 / (size + 1)),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t p = begin; p < end; ++p) {
                             planes.out[p] = rule_.whole(planes.in + p * size, size);
                           }
                         });
    planes.finish(y);
  }

 private:
  Rule rule_;
};

template <class T>
class GlobalMaxPool final : public GlobalPool<T, MaxRule<T>> {
 public:
  explicit GlobalMaxPool(const kit::NodeView&) : GlobalPool<T, MaxRule<T>>({}) {}
};
template <class T>
class GlobalAveragePool final : public GlobalPool<T, AverageRule<T>> {
 public:
  explicit GlobalAveragePool(const kit::NodeView&) : GlobalPool<T, AverageRule<T>>({}) {}
};
template <class T>
class GlobalLpPool final : public GlobalPool<T, LpRule<T>> {
 public:
  explicit GlobalLpPool(const kit::NodeView& node)
      : GlobalPool<T, LpRule<T>>({node.integer("p", 2)}) {}
};

void define(KernelSpan& span, const char* op, int32_t since,
            std::unique_ptr<Kernel> (*create)(const kit::NodeView&),
            std::vector<chipdock_dtype> dtypes, bool indices = false) {
  KernelDef def;
  def.op = op;
  def.since = since;
  def.create = create;
  def.dtypes = {{0, dtypes}, {-1, std::move(dtypes)}};
  if (indices) def.dtypes.push_back({-2, {kit::kInt64}});
  span.push_back(std::move(def));
}

}  // namespace

KernelSpan pool_kernels() {
  const std::vector<chipdock_dtype> single = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
  const std::vector<chipdock_dtype> twice = {kit::kFloat64};
  KernelSpan span;
  define(span, "MaxPool", 1, make<MaxPool<float>>, single, true);
  define(span, "MaxPool", 1, make<MaxPool<double>>, twice, true);
  define(span, "MaxPool", 12, make<MaxPool<int8_t>>, {kit::kInt8}, true);
  define(span, "MaxPool", 12, make<MaxPool<uint8_t>>, {kit::kUint8}, true);
  define(span, "AveragePool", 1, make<AveragePool<float>>, single);
  define(span, "AveragePool", 1, make<AveragePool<double>>, twice);
  define(span, "LpPool", 2, make<LpPool<float>>, single);
  define(span, "LpPool", 2, make<LpPool<double>>, twice);
  define(span, "GlobalMaxPool", 1, make<GlobalMaxPool<float>>, single);
  define(span, "GlobalMaxPool", 1, make<GlobalMaxPool<double>>, twice);
  define(span, "GlobalAveragePool", 1, make<GlobalAveragePool<float>>, single);
  define(span, "GlobalAveragePool", 1, make<GlobalAveragePool<double>>, twice);
  define(span, "GlobalLpPool", 2, make<GlobalLpPool<float>>, single);
  define(span, "GlobalLpPool", 2, make<GlobalLpPool<double>>, twice);
  return span;
}

}  // namespace chipdock::plugin::cpu
