// SPDX-License-Identifier: Apache-2.0
// What normalisations share: parameters of any float dtype as floats, and rows of any float dtype
// run through float code. float64 is computed in float64, half types are rounded once.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_NORMALIZATION_ROWS_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_NORMALIZATION_ROWS_HPP_

#include <cmath>

#include "ops/numeric.hpp"
#include "simd/norm.hpp"

namespace chipdock::plugin::cpu {

/// Elements of `x` as T (float or double): x's own memory if it has that dtype, else `storage`.
template <class T>
const T* elements_as(const Tensor& x, std::vector<T>& storage) {
  if (is(x.dtype, dtype_of<T>())) return x.as<T>();
  const auto n = static_cast<size_t>(x.size());
  storage.resize(n);
  if (const HalfCodec half = half_codec(x.dtype)) {
    std::vector<float> wide(n);
    half.widen(x.as<uint16_t>(), wide.data(), x.size());
    std::copy(wide.begin(), wide.end(), storage.begin());
  } else if (is(x.dtype, kit::kFloat32)) {
    std::copy(x.as<float>(), x.as<float>() + n, storage.begin());
  } else {
    for (size_t i = 0; i < n; ++i) storage[i] = static_cast<T>(x.as<double>()[i]);
  }
  return storage.data();
}

/// Stores `value` as element i of `y`, whatever its float dtype.
inline void put_element(const Tensor& y, int64_t i, double value) {
  if (is(y.dtype, kit::kFloat64)) {
    y.mut<double>()[i] = value;
    return;
  }
  const float single = static_cast<float>(value);
  if (is(y.dtype, kit::kFloat32)) {
    y.mut<float>()[i] = single;
  } else {
    // Only the two half types get here, and both have a codec.
    half_codec(y.dtype).narrow(  // NOLINT(clang-analyzer-core.CallAndMessage)
        &single, y.mut<uint16_t>() + i, 1);
  }
}

/// Calls row(x, y, index) for rows [0, count) of n elements as float; a half type goes through a
/// buffer for each slice. Not for float64.
template <class Row>
void over_rows(const Context& context, const Tensor& x, const Tensor& y, int64_t count, int64_t n,
               const Row& row) {
  const HalfCodec from = half_codec(x.dtype);
  const HalfCodec to = half_codec(y.dtype);
  over(context, count, row_grain(n, kGrain / 2), [&](int64_t begin, int64_t end) {
    std::vector<float> buffer(from || to ? static_cast<size_t>(n) : 0);
    for (int64_t i = begin; i < end; ++i) {
      const float* source = from ? buffer.data() : x.as<float>() + i * n;
      float* target = to ? buffer.data() : y.mut<float>() + i * n;
      if (from) from.widen(x.as<uint16_t>() + i * n, buffer.data(), n);
      row(source, target, i);
      if (to) to.narrow(buffer.data(), y.mut<uint16_t>() + i * n, n);
    }
  });
}

struct DoubleMoments {
  double mean;
  double inverse;
};

inline DoubleMoments moments_double(const double* x, int64_t n, double epsilon, bool centred) {
  double mean = 0;
  for (int64_t i = 0; centred && i < n; ++i) mean += x[i];
  mean /= static_cast<double>(n);
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(square / static_cast<double>(n) + epsilon)};
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_NORMALIZATION_ROWS_HPP_
