// SPDX-License-Identifier: Apache-2.0
// Folds with several vectors in flight. A sum never runs longer than kRun elements in float: lanes
// then hold at most kRun / lanes terms, and the runs are joined in double.
// build: fp-contract=fast
#include "simd/reduce.hpp"

#include <algorithm>
#include <limits>

#include "simd/math.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int64_t kRun = 2048;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <Fold F>
constexpr float kNeutral = F == Fold::kProd  ? 1.0f
                           : F == Fold::kMax ? -kInfinity
                           : F == Fold::kMin ? kInfinity
                                             : 0.0f;
/// An input whose image is neutral, to fill the unused lanes of a tail.
template <Fold F>
constexpr float kFill = F == Fold::kSumExp ? -kInfinity : kNeutral<F>;

template <Fold F>
Vf step(Vf acc, Vf x, [[maybe_unused]] Vf shift) {
  if constexpr (F == Fold::kSum) return acc + x;
  if constexpr (F == Fold::kSumAbs) return acc + abs(x);
  if constexpr (F == Fold::kSumSquare) return acc + x * x;
  if constexpr (F == Fold::kSumExp) return acc + exp(x - shift);
  if constexpr (F == Fold::kProd) return acc * x;
  if constexpr (F == Fold::kMax) return max(acc, x);
  if constexpr (F == Fold::kMin) return min(acc, x);
}

template <Fold F>
Vf join(Vf a, Vf b) {
  if constexpr (F == Fold::kProd) return a * b;
  if constexpr (F == Fold::kMax) return max(a, b);
  if constexpr (F == Fold::kMin) return min(a, b);
  return a + b;
}

template <Fold F>
Vf run(const float* x, int64_t n, Vf shift) {
  Vf acc[4] = {splat(kNeutral<F>), splat(kNeutral<F>), splat(kNeutral<F>), splat(kNeutral<F>)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) acc[k] = step<F>(acc[k], load(x + i + k * kLanes), shift);
  }
  for (; i + kLanes <= n; i += kLanes) acc[0] = step<F>(acc[0], load(x + i), shift);
  if (i < n) acc[1] = step<F>(acc[1], load_part(x + i, n - i, kFill<F>), shift);
  return join<F>(join<F>(acc[0], acc[1]), join<F>(acc[2], acc[3]));
}

template <Fold F>
double row(const float* x, int64_t n, float shift) {
  const Vf by = splat(shift);
  if constexpr (F == Fold::kMax || F == Fold::kMin) return fold_lanes(run<F>(x, n, by), join<F>);
  double total = kNeutral<F>;
  for (int64_t start = 0; start < n; start += kRun) {
    const Vf part = run<F>(x + start, std::min(kRun, n - start), by);
    if constexpr (F == Fold::kProd) {
      for (int k = 0; k < kLanes; ++k) total *= part[k];
    } else {
      total += sum_lanes(part);
    }
  }
  return total;
}

/// Adds Rows rows to acc at once. Rows are read side by side in address order, as prefetchers like
/// it, and acc stays in the first-level cache.
template <Fold F, int Rows>
void add_rows(const float* x, int64_t stride, int64_t columns, const float* shift, float* acc) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    const Vf by = F == Fold::kSumExp ? load(shift + j) : Vf{};
    Vf sum = load(acc + j);
    for (int r = 0; r < Rows; ++r) sum = step<F>(sum, load(x + r * stride + j), by);
    store(acc + j, sum);
  }
  if (j == columns) return;
  const int64_t rest = columns - j;
  const Vf by = F == Fold::kSumExp ? load_part(shift + j, rest) : Vf{};
  Vf sum = load_part(acc + j, rest);
  for (int r = 0; r < Rows; ++r) {
    sum = step<F>(sum, load_part(x + r * stride + j, rest, kFill<F>), by);
  }
  store_part(acc + j, sum, rest);
}

template <Fold F>
void columns_of(const float* x, int64_t rows, int64_t stride, int64_t columns, const float* shift,
                float* acc) {
  std::fill(acc, acc + columns, kNeutral<F>);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) add_rows<F, 4>(x + r * stride, stride, columns, shift, acc);
  for (; r < rows; ++r) add_rows<F, 1>(x + r * stride, stride, columns, shift, acc);
}

}  // namespace

double fold_row(Fold fold, const float* x, int64_t n, float shift) {
  switch (fold) {
    case Fold::kSum:
      return row<Fold::kSum>(x, n, shift);
    case Fold::kSumAbs:
      return row<Fold::kSumAbs>(x, n, shift);
    case Fold::kSumSquare:
      return row<Fold::kSumSquare>(x, n, shift);
    case Fold::kSumExp:
      return row<Fold::kSumExp>(x, n, shift);
    case Fold::kProd:
      return row<Fold::kProd>(x, n, shift);
    case Fold::kMax:
      return row<Fold::kMax>(x, n, shift);
    default:
      return row<Fold::kMin>(x, n, shift);
  }
}

void fold_columns(Fold fold, const float* x, int64_t rows, int64_t stride, int64_t columns,
                  const float* shift, float* acc) {
  switch (fold) {
    case Fold::kSum:
      return columns_of<Fold::kSum>(x, rows, stride, columns, shift, acc);
    case Fold::kSumAbs:
      return columns_of<Fold::kSumAbs>(x, rows, stride, columns, shift, acc);
    case Fold::kSumSquare:
      return columns_of<Fold::kSumSquare>(x, rows, stride, columns, shift, acc);
    case Fold::kSumExp:
      return columns_of<Fold::kSumExp>(x, rows, stride, columns, shift, acc);
    case Fold::kProd:
      return columns_of<Fold::kProd>(x, rows, stride, columns, shift, acc);
    case Fold::kMax:
      return columns_of<Fold::kMax>(x, rows, stride, columns, shift, acc);
    default:
      return columns_of<Fold::kMin>(x, rows, stride, columns, shift, acc);
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
