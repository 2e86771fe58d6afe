// SPDX-License-Identifier: Apache-2.0
// Numpy broadcasting of N dense inputs onto one output: neighbouring dims with the same pattern are
// merged, and the rest is walked row by row, where along a row each input moves by 0 or 1.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_BROADCAST_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_BROADCAST_HPP_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

template <int N>
class Broadcast {
 public:
  /// Fails with INVALID_ARGUMENT if an input does not broadcast to the output.
  Broadcast(const Tensor& output, const std::array<const Tensor*, N>& inputs, std::string_view op) {
    int64_t step[N];
    for (int k = 0; k < N; ++k) {
      step[k] = 1;
      kit::require(inputs[k]->rank <= output.rank, op, ": input ", k, " has rank ", inputs[k]->rank,
                   ", the output ", output.rank);
    }
    uint32_t last_pattern = ~0u;
    for (int32_t d = output.rank - 1; d >= 0; --d) {
      const int64_t extent = output.shape[d];
      uint32_t pattern = 0;
      int64_t own[N];
      for (int k = 0; k < N; ++k) {
        const int32_t axis = d - (output.rank - inputs[k]->rank);
        own[k] = axis >= 0 ? inputs[k]->shape[axis] : 1;
        kit::require(own[k] == extent || own[k] == 1, op, ": dim ", axis, " of input ", k, " is ",
                     own[k], ", the output has ", extent, " there; only that or 1 broadcasts");
        if (own[k] != 1) pattern |= 1u << k;
      }
      size_ *= extent;
      if (extent == 1) continue;
      if (pattern == last_pattern) {
        extent_[rank_ - 1] *= extent;
      } else {
        for (int k = 0; k < N; ++k) stride_[k][rank_] = own[k] != 1 ? step[k] : 0;
        extent_[rank_++] = extent;
        last_pattern = pattern;
      }
      for (int k = 0; k < N; ++k) step[k] *= own[k];
    }
    if (rank_ == 0) {
      extent_[rank_++] = 1;
      for (int k = 0; k < N; ++k) stride_[k][0] = 0;
    }
  }

  int64_t size() const { return size_; }
  int64_t row_size() const { return extent_[0]; }
  /// Does input k stand still along a row?
  bool still(int k) const { return stride_[k][0] == 0; }

  /// Calls row(offsets, out, n) for the pieces of rows that make up output elements [begin, end),
  /// none longer than `limit`. `offsets` holds N element offsets of inputs.
  template <class Row>
  void walk(int64_t begin, int64_t end, int64_t limit, const Row& row) const {
    int64_t index[CHIPDOCK_MAX_RANK] = {};
    int64_t offset[N] = {};
    int64_t rest = begin;
    for (int d = 0; d < rank_; ++d) {
      index[d] = rest % extent_[d];
      rest /= extent_[d];
      for (int k = 0; k < N; ++k) offset[k] += index[d] * stride_[k][d];
    }
    int64_t at = begin;
    while (at < end) {
      const int64_t n = std::min({extent_[0] - index[0], end - at, limit});
      row(offset, at, n);
      at += n;
      index[0] += n;
      for (int k = 0; k < N; ++k) offset[k] += n * stride_[k][0];
      for (int d = 0; index[d] == extent_[d] && d + 1 < rank_; ++d) {
        for (int k = 0; k < N; ++k) offset[k] += stride_[k][d + 1] - index[d] * stride_[k][d];
        index[d] = 0;
        ++index[d + 1];
      }
    }
  }

 private:
  int rank_ = 0;  // Dims are kept innermost first.
  int64_t size_ = 1;
  int64_t extent_[CHIPDOCK_MAX_RANK + 1];
  int64_t stride_[N][CHIPDOCK_MAX_RANK + 1];
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_ELEMENTWISE_BROADCAST_HPP_
