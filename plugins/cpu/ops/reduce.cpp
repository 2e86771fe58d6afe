// SPDX-License-Identifier: Apache-2.0
// ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare. What is folded and how it
// is cut into tasks stands in reduction/; this file knows operators, axes and what becomes of an
// accumulator.
#include <array>
#include <cmath>

#include "ops/reduction/fold.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum class Finish : int32_t { kNone, kMean, kRoot, kLog };

struct Operator {
  const char* op;
  Fold fold;
  Finish finish;
};

constexpr Operator kOperators[] = {{"ReduceSum", Fold::kSum, Finish::kNone},
                                   {"ReduceMean", Fold::kSum, Finish::kMean},
                                   {"ReduceMax", Fold::kMax, Finish::kNone},
                                   {"ReduceMin", Fold::kMin, Finish::kNone},
                                   {"ReduceProd", Fold::kProd, Finish::kNone},
                                   {"ReduceL1", Fold::kSumAbs, Finish::kNone},
                                   {"ReduceL2", Fold::kSumSquare, Finish::kRoot},
                                   {"ReduceLogSum", Fold::kSum, Finish::kLog},
                                   {"ReduceLogSumExp", Fold::kSumExp, Finish::kLog},
                                   {"ReduceSumSquare", Fold::kSumSquare, Finish::kNone}};

bool is_extreme(const Operator& o) { return o.fold == Fold::kMax || o.fold == Fold::kMin; }

/// Stores an accumulator as T: floats are rounded, integers cut off or wrapped.
template <class T, class A>
void put(A value, T* to) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<A>) {
    constexpr double kLimit = 9223372036854775807.0;
    *to = std::fabs(value) < kLimit ? static_cast<T>(static_cast<int64_t>(value)) : T{0};
  } else if constexpr (std::is_same_v<T, bool>) {
    *to = value != 0;
  } else {
    *to = static_cast<T>(value);
  }
}

/// y[i] = value(i); half types are rounded by blocks.
template <class T, class Value>
void put_all(T* y, int64_t n, const Value& value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    const HalfCodec codec = half_codec(dtype_of<T>());
    float block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      for (int64_t j = 0; j < count; ++j) block[j] = static_cast<float>(value(i + j));
      codec.narrow(block, &y[i].bits, count);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) put(value(i), y + i);
  }
}

class Reduce final : public Kernel {
 public:
  explicit Reduce(const kit::NodeView& node)
      : type_(node.input_dtype(0)),
        axes_(node.integers("axes")),
        noop_(node.integer("noop_with_empty_axes", 0) != 0) {
    for (const Operator& o : kOperators) {
      if (node.op() == o.op) operator_ = o;
    }
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    std::array<bool, CHIPDOCK_MAX_RANK> reduced{};
    mark(context, x.rank, reduced);
    dispatch(NumberTypes{} + Types<bool>{}, type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        if (operator_.fold == Fold::kSumExp) return run_as<T, double>(context, reduced);
      }
      run_as<T, Accumulator<T>>(context, reduced);
    });
  }

 private:
  void mark(const Context& context, int32_t rank,
            std::array<bool, CHIPDOCK_MAX_RANK>& reduced) const {
    const int64_t* axes = axes_.data();
    auto count = static_cast<int64_t>(axes_.size());
    if (context.has_input(1)) {
      axes = context.input(1).as<int64_t>();
      count = context.input(1).size();
    }
    if (count == 0) std::fill(reduced.begin(), reduced.begin() + rank, !noop_);
    for (int64_t i = 0; i < count; ++i) {
      reduced[static_cast<size_t>(kit::normalize_axis(axes[i], rank, operator_.op))] = true;
    }
  }

  template <class T, class A>
  void run_as(const Context& context, const std::array<bool, CHIPDOCK_MAX_RANK>& reduced) const {
    const Tensor& x = context.input(0);
    T* y = context.output(0).mut<T>();
    const int64_t n = context.output(0).size();
    if (n == 0) return;
    // Accumulators of small results stay on the stack.
    A few[kBlock];
    A few_shifts[kBlock];
    std::vector<A> many(n > kBlock ? static_cast<size_t>(n) : 0);
    std::vector<A> many_shifts(n > kBlock && operator_.fold == Fold::kSumExp ? many.size() : 0);
    A* acc = n > kBlock ? many.data() : few;
    A* shift = n > kBlock ? many_shifts.data() : few_shifts;
    if (x.size() == 0) {
      std::fill(acc, acc + n, empty_value<T, A>());
      return finish(acc, static_cast<const A*>(nullptr), y, n, 0);
    }
    const ReducePlan plan(x, reduced.data());
    if (operator_.fold == Fold::kSumExp) {
      fold_all(context, plan, Fold::kMax, x.as<T>(), static_cast<const A*>(nullptr), shift);
      for (int64_t i = 0; i < n; ++i) {
        if (std::isinf(static_cast<double>(shift[i]))) shift[i] = A{0};
      }
    }
    const bool shifted = operator_.fold == Fold::kSumExp;
    const A* by = shifted ? shift : nullptr;
    fold_all(context, plan, operator_.fold, x.as<T>(), by, acc);
    finish(acc, by, y, n, x.size() / n);
  }

  /// The extremes of nothing are the ends of the dtype.
  template <class T, class A>
  A empty_value() const {
    if constexpr (std::is_integral_v<T>) {
      if (operator_.fold == Fold::kMax) return static_cast<A>(std::numeric_limits<T>::lowest());
      if (operator_.fold == Fold::kMin) return static_cast<A>(std::numeric_limits<T>::max());
    }
    return neutral<A>(operator_.fold);
  }

  template <class T, class A>
  void finish(const A* acc, const A* shift, T* y, int64_t n, int64_t count) const {
    switch (operator_.finish) {
      case Finish::kNone:
        return put_all(y, n, [&](int64_t i) { return acc[i]; });
      case Finish::kMean:
        return put_all(y, n, [&](int64_t i) { return mean(acc[i], count); });
      case Finish::kRoot:
        return put_all(y, n, [&](int64_t i) { return std::sqrt(static_cast<double>(acc[i])); });
      case Finish::kLog:
        return put_all(y, n, [&](int64_t i) {
          const double by = shift != nullptr ? static_cast<double>(shift[i]) : 0;
          return std::log(static_cast<double>(acc[i])) + by;
        });
    }
  }

  template <class A>
  static A mean(A sum, int64_t count) {
    if constexpr (std::is_integral_v<A>) return count == 0 ? A{0} : sum / static_cast<A>(count);
    return sum / static_cast<A>(count);
  }

  Operator operator_{};
  chipdock_dtype type_;
  std::vector<int64_t> axes_;
  bool noop_;
};

}  // namespace

KernelSpan reduce_kernels() {
  KernelSpan kernels;
  for (const Operator& o : kOperators) {
    KernelDef def{o.op, 1};
    def.create = make<Reduce>;
    auto types = dtypes_of(FloatTypes{} + Types<int32_t, int64_t, uint32_t, uint64_t>{});
    if (is_extreme(o)) types.insert(types.end(), {kit::kInt8, kit::kUint8, kit::kBool});
    def.dtypes = {{0, types}, {1, {kit::kInt64}}};
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
