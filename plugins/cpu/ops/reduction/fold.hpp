// SPDX-License-Identifier: Apache-2.0
// Folding of runs and columns for every dtype: floats through simd/reduce.cpp and double
// accumulators, halves through floats, float64 and integers here. Integers wrap.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_FOLD_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_FOLD_HPP_

#include <cmath>
#include <limits>

#include "ops/numeric.hpp"
#include "ops/reduction/plan.hpp"
#include "simd/reduce.hpp"

namespace chipdock::plugin::cpu {

/// Accumulators: double for floats, 64-bit integers of the same sign else.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, double>;

template <class A>
A neutral(Fold fold) {
  using Limits = std::numeric_limits<A>;
  switch (fold) {
    case Fold::kProd:
      return A{1};
    case Fold::kMax:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Fold::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    default:
      return A{0};
  }
}

/// Joins two accumulators.
template <class A>
A join(Fold fold, A a, A b) {
  using W = Wrapping<A>;
  switch (fold) {
    case Fold::kProd:
      return static_cast<A>(static_cast<W>(a) * static_cast<W>(b));
    case Fold::kMax:
      return a >= b || a != a ? a : b;
    case Fold::kMin:
      return a <= b || a != a ? a : b;
    default:
      return static_cast<A>(static_cast<W>(a) + static_cast<W>(b));
  }
}

/// Calls `each` with the fold as a constant, so that its loops have no choice in them. kSumExp is
/// kSum here: they differ in what an element gives, not in how sums are joined.
template <class Each>
void with_constant(Fold fold, const Each& each) {
  switch (fold) {
    case Fold::kSumAbs:
      return each(std::integral_constant<Fold, Fold::kSumAbs>());
    case Fold::kSumSquare:
      return each(std::integral_constant<Fold, Fold::kSumSquare>());
    case Fold::kProd:
      return each(std::integral_constant<Fold, Fold::kProd>());
    case Fold::kMax:
      return each(std::integral_constant<Fold, Fold::kMax>());
    case Fold::kMin:
      return each(std::integral_constant<Fold, Fold::kMin>());
    default:
      return each(std::integral_constant<Fold, Fold::kSum>());
  }
}

/// acc[j] = join(fold, acc[j], part[j]).
template <class A, class P>
void join_all(Fold fold, const P* part, int64_t n, A* acc) {
  with_constant(fold, [&](auto constant) {
    constexpr Fold kFold = decltype(constant)::value;
    for (int64_t j = 0; j < n; ++j) acc[j] = join(kFold, acc[j], static_cast<A>(part[j]));
  });
}

/// What one element gives to the fold.
template <class A>
A image(Fold fold, A x, A shift) {
  using W = Wrapping<A>;
  switch (fold) {
    case Fold::kSumAbs:
      return x < A{0} ? static_cast<A>(W{0} - static_cast<W>(x)) : x;
    case Fold::kSumSquare:
      return static_cast<A>(static_cast<W>(x) * static_cast<W>(x));
    case Fold::kSumExp:
      if constexpr (std::is_same_v<A, double>) return std::exp(x - shift);
      return x;
    default:
      return x;
  }
}

/// Folds of one dtype T, to be joined into accumulators A.
template <class T, class A = Accumulator<T>>
struct Folder {
  Fold fold;

  A row(const T* x, int64_t n, A shift) const {
    A acc = neutral<A>(fold);
    for (int64_t i = 0; i < n; ++i) acc = join(fold, acc, image(fold, static_cast<A>(x[i]), shift));
    return acc;
  }
  void columns(const T* x, int64_t lines, int64_t stride, int64_t n, const A* shift, A* acc) const {
    for (int64_t r = 0; r < lines; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        const A by = shift != nullptr ? shift[j] : A{0};
        acc[j] = join(fold, acc[j], image(fold, static_cast<A>(x[r * stride + j]), by));
      }
    }
  }
};

template <>
struct Folder<float, double> {
  Fold fold;
  decltype(CHIPDOCK_CPU_DISPATCH(fold_row)) row_function = CHIPDOCK_CPU_DISPATCH(fold_row);
  decltype(CHIPDOCK_CPU_DISPATCH(fold_columns)) columns_function =
      CHIPDOCK_CPU_DISPATCH(fold_columns);

  double row(const float* x, int64_t n, double shift) const {
    return row_function(fold, x, n, static_cast<float>(shift));
  }
  void columns(const float* x, int64_t lines, int64_t stride, int64_t n, const double* shift,
               double* acc) const {
    constexpr int64_t kLines = 64;  // Summed in float before they are joined in double.
    float part[ReducePlan::kColumns];
    float by[ReducePlan::kColumns];
    for (int64_t j = 0; shift != nullptr && j < n; ++j) by[j] = static_cast<float>(shift[j]);
    for (int64_t r = 0; r < lines; r += kLines) {
      columns_function(fold, x + r * stride, std::min(kLines, lines - r), stride, n, by, part);
      join_all(fold, part, n, acc);
    }
  }
};

/// Half types: widened by blocks, then as float.
template <class Half>
struct HalfFolder {
  Fold fold;
  Folder<float> wide{fold};
  HalfCodec codec = half_codec(dtype_of<Half>());

  double row(const Half* x, int64_t n, double shift) const {
    alignas(64) float block[kBlock];
    double acc = neutral<double>(fold);
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = std::min(kBlock, n - i);
      codec.widen(reinterpret_cast<const uint16_t*>(x + i), block, m);
      acc = join(fold, acc, wide.row(block, m, shift));
    }
    return acc;
  }
  void columns(const Half* x, int64_t lines, int64_t stride, int64_t n, const double* shift,
               double* acc) const {
    constexpr int64_t kLines = 16;  // Half a first-level cache.
    alignas(64) float block[kLines * ReducePlan::kColumns];
    for (int64_t r = 0; r < lines; r += kLines) {
      const int64_t count = std::min(kLines, lines - r);
      for (int64_t k = 0; k < count; ++k) {
        codec.widen(reinterpret_cast<const uint16_t*>(x + (r + k) * stride), block + k * n, n);
      }
      wide.columns(block, count, n, n, shift, acc);
    }
  }
};
template <>
struct Folder<Float16, double> : HalfFolder<Float16> {};
template <>
struct Folder<Bfloat16, double> : HalfFolder<Bfloat16> {};

/// acc[i] for i in [begin, end) where rows are so short that a call for each would cost more than
/// they do. kSumExp is not for it.
template <class T, class A>
void fold_short_rows(const ReducePlan& plan, Fold fold, const T* x, int64_t begin, int64_t end,
                     A* acc) {
  const int64_t n = plan.short_row();
  with_constant(fold, [&](auto constant) {
    constexpr Fold kFold = decltype(constant)::value;
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x + plan.row_at(i);
      A sum = neutral<A>(kFold);
      for (int64_t j = 0; j < n; ++j) {
        sum = join(kFold, sum, image(kFold, static_cast<A>(row[j]), A{0}));
      }
      acc[i] = sum;
    }
  });
}

/// Folds all of x into `acc`, one accumulator for each output element; `shift` is as long, or NULL.
template <class T, class A>
void fold_all(const Context& context, const ReducePlan& plan, Fold fold, const T* x, const A* shift,
              A* acc) {
  const Folder<T, A> folder{fold};
  const auto task = [&](int64_t index, A* to) {
    const int64_t output = index / plan.pieces();
    const int64_t at = plan.output_at(output);
    std::fill(to, to + plan.output_count(output), neutral<A>(fold));
    plan.walk(index, [&](int64_t offset, int64_t lines, int64_t stride, int64_t n) {
      if (plan.rows()) {
        *to = join(fold, *to, folder.row(x + offset, n, shift != nullptr ? shift[at] : A{0}));
      } else {
        folder.columns(x + offset, lines, stride, n, shift != nullptr ? shift + at : nullptr, to);
      }
    });
  };
  const int64_t grain = row_grain(plan.cost());
  if constexpr (std::is_arithmetic_v<T>) {
    if (plan.short_row() > 0 && fold != Fold::kSumExp) {
      return over(context, plan.tasks(), grain, [&](int64_t begin, int64_t end) {
        fold_short_rows(plan, fold, x, begin, end, acc);
      });
    }
  }
  if (plan.pieces() == 1) {
    return over(context, plan.tasks(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) task(i, acc + plan.output_at(i));
    });
  }
  const int64_t width = plan.rows() ? 1 : ReducePlan::kColumns;
  std::vector<A> parts(static_cast<size_t>(plan.tasks() * width));
  over(context, plan.tasks(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) task(i, parts.data() + i * width);
  });
  for (int64_t output = 0; output < plan.outputs(); ++output) {
    const A* part = parts.data() + output * plan.pieces() * width;
    A* to = acc + plan.output_at(output);
    for (int64_t j = 0; j < plan.output_count(output); ++j) {
      to[j] = part[j];
      for (int64_t p = 1; p < plan.pieces(); ++p) to[j] = join(fold, to[j], part[p * width + j]);
    }
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_FOLD_HPP_
