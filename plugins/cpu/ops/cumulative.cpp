// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd along one axis, either way, with or without the element itself. Half types and
// float32 accumulate in double and are rounded at each element.
#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

using CumulativeTypes = decltype(FloatTypes{} + Types<int32_t, int64_t, uint32_t, uint64_t>{});

template <class T>
struct Element {
  using Sum = std::conditional_t<std::is_integral_v<T>, Wrapping<T>, double>;
  Sum get(T x) const { return static_cast<Sum>(x); }
  T put(Sum sum) const { return static_cast<T>(sum); }
};

template <class T>
struct HalfElement {
  using Sum = double;
  HalfCodec codec = half_codec(dtype_of<T>());
  double get(T x) const {
    float wide = 0;
    codec.widen(&x.bits, &wide, 1);
    return static_cast<double>(wide);
  }
  T put(double sum) const {
    const float wide = static_cast<float>(sum);
    T x{};
    codec.narrow(&wide, &x.bits, 1);
    return x;
  }
};
template <>
struct Element<Float16> : HalfElement<Float16> {};
template <>
struct Element<Bfloat16> : HalfElement<Bfloat16> {};

class Cumulative final : public Kernel {
 public:
  explicit Cumulative(const kit::NodeView& node)
      : op_(node.op()),
        product_(op_ == "CumProd"),
        exclusive_(node.integer("exclusive", 0) != 0),
        reverse_(node.integer("reverse", 0) != 0),
        type_(node.input_dtype(0)) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& given = context.input(1);
    kit::require(given.size() == 1, op_, ": axis has ", given.size(), " elements, it is a scalar");
    if (x.size() == 0) return;
    const int64_t asked =
        is(given.dtype, kit::kInt64) ? *given.as<int64_t>() : *given.as<int32_t>();
    const int64_t rank = x.rank;
    const int64_t axis = rank == 0 ? 0 : kit::normalize_axis(asked, rank, op_.c_str());
    const int64_t length = rank == 0 ? 1 : x.dim(axis);
    const int64_t inner = rank == 0 ? 1 : x.size(axis + 1, rank);
    dispatch(CumulativeTypes{}, type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.as<T>();
      T* to = context.output(0).mut<T>();
      const int64_t groups = (inner + kColumns - 1) / kColumns;
      over(context, x.size() / (length * inner) * groups,
           row_grain(length * std::min(inner, kColumns)), [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const int64_t column = i % groups * kColumns;
               const int64_t at = i / groups * length * inner + column;
               scan(from + at, to + at, length, inner, std::min(kColumns, inner - column));
             }
           });
    });
  }

 private:
  static constexpr int64_t kColumns = 128;

  /// n neighbouring columns of `length` elements, `stride` apart.
  template <class T>
  void scan(const T* x, T* y, int64_t length, int64_t stride, int64_t n) const {
    const Element<T> element;
    if (stride == 1) return scan_row(element, x, y, length);
    typename Element<T>::Sum sums[kColumns];
    std::fill(sums, sums + n, product_ ? 1 : 0);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = (reverse_ ? length - 1 - k : k) * stride;
      for (int64_t j = 0; j < n; ++j) {
        const auto value = element.get(x[at + j]);
        const auto next = product_ ? sums[j] * value : sums[j] + value;
        y[at + j] = element.put(exclusive_ ? sums[j] : next);
        sums[j] = next;
      }
    }
  }

  template <class T>
  void scan_row(const Element<T>& element, const T* x, T* y, int64_t length) const {
    const bool product = product_;
    const bool exclusive = exclusive_;
    typename Element<T>::Sum sum = product ? 1 : 0;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = reverse_ ? length - 1 - k : k;
      const auto value = element.get(x[at]);
      const auto next = product ? sum * value : sum + value;
      y[at] = element.put(exclusive ? sum : next);
      sum = next;
    }
  }

  std::string op_;
  bool product_;
  bool exclusive_;
  bool reverse_;
  chipdock_dtype type_;
};

KernelDef define(const char* op, int32_t since) {
  KernelDef def{op, since};
  def.create = make<Cumulative>;
  def.dtypes = {{0, dtypes_of(CumulativeTypes{})}, {1, {kit::kInt32, kit::kInt64}}};
  def.aliases = {{0, 0}};
  return def;
}

}  // namespace

KernelSpan cumulative_kernels() {
  KernelSpan kernels;
  kernels.push_back(define("CumSum", 11));
  kernels.push_back(define("CumProd", 26));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
