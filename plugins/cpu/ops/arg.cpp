// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin along one axis. The first NaN wins, as in numpy; of equal elements the first,
// or the last if select_last_index says so.
#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// True if `x` replaces the best so far.
template <class T>
bool better(T x, T best, bool largest, bool last) {
  if (x != x) return best == best;
  if (best != best) return false;
  if (last && x == best) return true;
  return largest ? x > best : x < best;
}

class Arg final : public Kernel {
 public:
  explicit Arg(const kit::NodeView& node)
      : op_(node.op()),
        largest_(op_ == "ArgMax"),
        last_(node.integer("select_last_index", 0) != 0),
        axis_(node.integer("axis", 0)),
        type_(node.input_dtype(0)) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    if (x.size() == 0) return;
    const int64_t axis = kit::normalize_axis(axis_, x.rank, op_.c_str());
    const int64_t length = x.dim(axis);
    const int64_t inner = x.size(axis + 1, x.rank);
    const int64_t groups = (inner + kColumns - 1) / kColumns;
    dispatch(NumberTypes{}, type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.as<T>();
      int64_t* to = context.output(0).mut<int64_t>();
      const int64_t tasks = x.size() / (length * inner) * groups;
      over(context, tasks, row_grain(length * std::min(inner, kColumns)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const int64_t column = i % groups * kColumns;
               const int64_t outer = i / groups;
               columns(from + outer * length * inner + column, to + outer * inner + column, length,
                       inner, std::min(kColumns, inner - column));
             }
           });
    });
  }

 private:
  static constexpr int64_t kColumns = 128;

  /// The answers for n neighbouring columns of `length` elements, `stride` apart.
  template <class T>
  void columns(const T* x, int64_t* y, int64_t length, int64_t stride, int64_t n) const {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
      const HalfCodec codec = half_codec(dtype_of<T>());
      select<float>(y, length, n, [&](int64_t k, float* row) {
        codec.widen(reinterpret_cast<const uint16_t*>(x + k * stride), row, n);
      });
    } else if (stride == 1) {
      *y = best_of(x, length);
    } else {
      select<T>(y, length, n,
                [&](int64_t k, T* row) { std::copy(x + k * stride, x + k * stride + n, row); });
    }
  }

  template <class T>
  int64_t best_of(const T* row, int64_t length) const {
    const bool largest = largest_;
    const bool last = last_;
    T best = row[0];
    int64_t at = 0;
    for (int64_t k = 1; k < length; ++k) {
      if (!better(row[k], best, largest, last)) continue;
      best = row[k];
      at = k;
    }
    return at;
  }

  template <class T, class Fetch>
  void select(int64_t* y, int64_t length, int64_t n, const Fetch& fetch) const {
    T best[kColumns];
    T row[kColumns];
    fetch(0, best);
    std::fill(y, y + n, 0);
    const bool largest = largest_;
    const bool last = last_;
    for (int64_t k = 1; k < length; ++k) {
      fetch(k, row);
      for (int64_t j = 0; j < n; ++j) {
        if (!better(row[j], best[j], largest, last)) continue;
        best[j] = row[j];
        y[j] = k;
      }
    }
  }

  std::string op_;
  bool largest_;
  bool last_;
  int64_t axis_;
  chipdock_dtype type_;
};

}  // namespace

KernelSpan arg_kernels() {
  KernelSpan kernels;
  for (const char* op : {"ArgMax", "ArgMin"}) {
    KernelDef def{op, 1};
    def.create = make<Arg>;
    def.dtypes = {{0, dtypes_of(NumberTypes{})}, {-1, {kit::kInt64}}};
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
