// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows: statistics in vector lanes joined in double, then one pass that writes.
// build: fp-contract=fast
#include "simd/norm.hpp"

#include <algorithm>
#include <cmath>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

/// Sum of f over the row; runs of 4096 stay in float lanes.
template <class F>
double total(const float* x, int64_t n, F f, float fill) {
  constexpr int64_t kRun = 4096;
  double sum = 0;
  for (int64_t start = 0; start < n; start += kRun) {
    const int64_t stop = std::min(n, start + kRun);
    Vf acc[4] = {};
    int64_t i = start;
    for (; i + 4 * kLanes <= stop; i += 4 * kLanes) {
      for (int k = 0; k < 4; ++k) acc[k] += f(load(x + i + k * kLanes));
    }
    for (; i + kLanes <= stop; i += kLanes) acc[0] += f(load(x + i));
    if (i < stop) acc[1] += f(load_part(x + i, stop - i, fill));
    sum += sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
  }
  return sum;
}

/// y[i] = f(x[i], i), written with `write`; f gets the index of the vector's first element.
template <class F>
void emit(const float* x, float* y, int64_t n, bool past_caches, F f) {
  int64_t i = 0;
  if (past_caches && n >= 2 * kLanes) {
    constexpr uintptr_t kBytes = kLanes * sizeof(float);
    const auto misaligned = reinterpret_cast<uintptr_t>(y) % kBytes;
    if (misaligned != 0) {  // One overlapping vector up to the first aligned one.
      const Vf head = f(load(x), 0);
      i = static_cast<int64_t>((kBytes - misaligned) / sizeof(float));
      const Vf next = f(load(x + i), i);  // Before the store, which may be in place.
      store(y, head);
      stream(y + i, next);
      i += kLanes;
    }
    for (; i + kLanes <= n; i += kLanes) stream(y + i, f(load(x + i), i));
    stream_fence();
  } else {
    for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i), i));
  }
  if (i == n) return;
  float rest[kLanes] = {};
  std::copy(x + i, x + n, rest);
  store_part(y + i, f(load(rest), i), n - i);
}

}  // namespace

RowMoments row_moments(const float* x, int64_t n, float epsilon, bool centred) {
  const double count = static_cast<double>(n);
  const float mean =
      centred ? static_cast<float>(total(x, n, [](Vf v) { return v; }, 0.0f) / count) : 0.0f;
  const double square = total(x, n, [mean](Vf v) { return (v - mean) * (v - mean); }, mean);
  const double deviation = std::sqrt(square / count + static_cast<double>(epsilon));
  return {mean, static_cast<float>(1.0 / deviation)};
}

void normalize_row(const float* x, float* y, int64_t n, RowMoments m, const float* scale,
                   const float* bias, bool past_caches) {
  // Parameters end where the row does, so a tail loads them in part.
  const auto part = [n](const float* p, int64_t i) {
    return i + kLanes <= n ? load(p + i) : load_part(p + i, n - i);
  };
  if (scale != nullptr && bias != nullptr) {
    emit(x, y, n, past_caches, [&](Vf v, int64_t i) {
      return (v - m.mean) * m.inverse * part(scale, i) + part(bias, i);
    });
  } else if (scale != nullptr) {
    emit(x, y, n, past_caches,
         [&](Vf v, int64_t i) { return (v - m.mean) * m.inverse * part(scale, i); });
  } else {
    emit(x, y, n, past_caches, [&](Vf v, int64_t) { return (v - m.mean) * m.inverse; });
  }
}

void affine(const float* x, float* y, int64_t n, float mean, float scale, float bias) {
  map(x, y, n, [=](Vf v) { return (v - mean) * scale + bias; });
}

void affine_row(const float* x, float* y, int64_t n, const float* mean, const float* scale,
                const float* bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean[i]) * scale[i] + bias[i];
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
