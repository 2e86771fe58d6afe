// SPDX-License-Identifier: Apache-2.0
// Stable softmax: largest element, exponentials with their sum, scale. Sums keep four vectors a
// pass, and the long ones are cut into runs so that the error stays small.
// build: fp-contract=fast
#include "simd/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/math.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float largest(const float* x, int64_t n) {
  Vf a = splat(-kInfinity);
  Vf b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = max(a, load(x + i));
    b = max(b, load(x + i + kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) a = max(a, load(x + i));
  if (i < n) b = max(b, load_part(x + i, n - i, -kInfinity));
  return fold_lanes(max(a, b), max);
}

/// y[i] = exp(x[i] - top), or nothing written if y is NULL; returns their sum.
float exponentials(const float* x, float* y, int64_t n, float top) {
  constexpr int64_t kRun = 2048;
  double total = 0;
  for (int64_t start = 0; start < n; start += kRun) {
    const int64_t stop = std::min(n, start + kRun);
    Vf a{};
    Vf b{};
    int64_t i = start;
    for (; i + 2 * kLanes <= stop; i += 2 * kLanes) {
      const Vf first = exp(load(x + i) - top);
      const Vf second = exp(load(x + i + kLanes) - top);
      if (y != nullptr) store(y + i, first);
      if (y != nullptr) store(y + i + kLanes, second);
      a += first;
      b += second;
    }
    for (; i < stop; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, stop - i);
      const Vf some = exp(load_part(x + i, count, -kInfinity) - top);
      if (y != nullptr) store_part(y + i, some, count);
      a += some;
    }
    total += sum_lanes(a + b);
  }
  return static_cast<float>(total);
}

}  // namespace

void softmax_row(const float* x, float* y, int64_t n, bool logarithm) {
  const float top = largest(x, n);
  const float shift = std::isinf(top) && top < 0 ? std::nanf("") : top;  // All -inf: 0/0, as numpy.
  if (logarithm) {
    const float rest = std::log(exponentials(x, nullptr, n, shift));
    return map(x, y, n, [shift, rest](Vf v) { return (v - shift) - rest; });
  }
  const float scale = 1.0f / exponentials(x, y, n, shift);
  map(y, y, n, [scale](Vf v) { return v * scale; });
}

void softmax_columns(const float* x, float* y, int64_t n, int64_t columns, int64_t stride,
                     bool logarithm) {
  float top[kSoftmaxColumns];
  float sum[kSoftmaxColumns];
  std::copy(x, x + columns, top);
  std::fill(sum, sum + columns, 0.0f);
  for (int64_t k = 1; k < n; ++k) {
    map(top, x + k * stride, top, columns, [](Vf a, Vf b) { return max(a, b); });
  }
  map(top, top, columns, [](Vf v) { return v == -kInfinity ? splat(std::nanf("")) : v; });
  float powers[kSoftmaxColumns];
  for (int64_t k = 0; k < n; ++k) {
    float* to = logarithm ? powers : y + k * stride;
    map(x + k * stride, top, to, columns, [](Vf v, Vf t) { return exp(v - t); });
    map(sum, to, sum, columns, [](Vf a, Vf b) { return a + b; });
  }
  if (logarithm) {
    map(sum, sum, columns, [](Vf v) { return log(v); });
    for (int64_t k = 0; k < n; ++k) {
      map(x + k * stride, top, y + k * stride, columns, [](Vf v, Vf t) { return v - t; });
      map(y + k * stride, sum, y + k * stride, columns, [](Vf v, Vf s) { return v - s; });
    }
    return;
  }
  map(sum, sum, columns, [](Vf v) { return 1.0f / v; });
  for (int64_t k = 0; k < n; ++k) {
    map(y + k * stride, sum, y + k * stride, columns, [](Vf v, Vf s) { return v * s; });
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
