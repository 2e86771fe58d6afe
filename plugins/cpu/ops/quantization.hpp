// SPDX-License-Identifier: Apache-2.0
// What the integer products share: zero points and scales of a tensor, a row or a column, spread over
// all rows or columns of the result.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_QUANTIZATION_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_QUANTIZATION_HPP_

#include <algorithm>

#include "kernel.hpp"
#include "ops/matmul_sizes.hpp"

namespace chipdock::plugin::cpu {

inline bool is_signed(chipdock_dtype dtype) { return dtype.code == CHIPDOCK_DTYPE_INT; }

inline int32_t byte_at(const Tensor& tensor, int64_t i) {
  return is_signed(tensor.dtype) ? tensor.as<int8_t>()[i] : tensor.as<uint8_t>()[i];
}

/// float32, float16 or bfloat16.
float scale_at(const Tensor& scales, int64_t i);

/// Rows of Y, columns of B or filters, as zero points and scales see them: with their batch dims.
struct Lines {
  static constexpr int32_t kMost = CHIPDOCK_MAX_RANK + 1;
  int64_t dims[kMost] = {};
  int32_t rank = 0;

  void push(int64_t dim) {
    kit::require(rank >= 0 && rank < kMost, "more than ", kMost, " dims");
    dims[rank++] = dim;
  }

  int64_t count() const {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  static Lines of(int64_t count) {
    Lines lines;
    lines.push(count);
    return lines;
  }
  static Lines rows(const Sizes& s, const Tensor& a) {
    Lines lines;
    if (s.rank > 0) {
      for (int32_t i = 0; i < s.rank; ++i) lines.push(s.dims[i]);
      lines.push(s.m);
      return lines;
    }
    for (int32_t i = 0; i + 1 < a.rank; ++i) lines.push(a.dim(i));
    if (a.rank == 1) lines.push(1);
    return lines;
  }
  static Lines columns(const Tensor& b) {
    Lines lines;
    for (int32_t i = 0; i + 2 < b.rank; ++i) lines.push(b.dim(i));
    lines.push(b.rank > 1 ? b.dim(b.rank - 1) : 1);
    return lines;
  }
};

/// Spreads values over `lines`. A scalar serves all; a vector the last of the dims; more dims
/// broadcast as NumPy does, where the axis that is summed over has extent 1 and stands at `summed`
/// from the end (0 or 1).
/// body(line, index of the value) for every line.
template <class Body>
void spread_lines(const Tensor& values, const Lines& lines, int summed, const char* what,
                  const Body& body) {
  const int64_t count = lines.count();
  const int64_t* const dims = lines.dims;
  if (values.size() == 1) {
    for (int64_t line = 0; line < count; ++line) body(line, int64_t{0});
    return;
  }
  const int32_t rank = lines.rank < 0 ? 0 : lines.rank > Lines::kMost ? Lines::kMost : lines.rank;
  int64_t steps[Lines::kMost] = {};
  int64_t step = 1;
  int32_t to = rank - 1;
  for (int32_t from = values.rank - 1; from >= 0; --from) {
    if (values.rank > 1 && from == values.rank - 1 - summed) {
      kit::require(values.shape[from] == 1, what, " has extent ", values.shape[from],
                   " on the axis that is summed over, must be 1");
      continue;
    }
    const int64_t extent = values.shape[from];
    kit::require(extent == 1 || (to >= 0 && extent == dims[to]), what, " of ", values.size(),
                 " elements does not fit ", count,
                 " rows or columns; allowed are one, one each, or what broadcasts to them");
    if (to >= 0) steps[to--] = extent == 1 ? 0 : step;
    step *= extent;
  }
  for (int64_t line = 0; line < count; ++line) {
    int64_t index = 0;
    int64_t rest = line;
    for (int32_t i = rank - 1; i >= 0; --i) {
      index += rest % dims[i] * steps[i];
      rest /= dims[i];
    }
    body(line, index);
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_QUANTIZATION_HPP_
