// SPDX-License-Identifier: Apache-2.0
// A reduction cut into tasks. Neighbouring dims of the same kind are merged; then either the
// innermost dims are reduced (a task folds contiguous rows into one element) or kept (a task folds
// rows of up to kColumns columns). What a task folds is bounded, and cut in the same places
// whatever the thread count, so the result does not depend on it.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_PLAN_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_PLAN_HPP_

#include <algorithm>
#include <cstdint>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

class ReducePlan {
 public:
  static constexpr int64_t kColumns = 512;
  /// Elements that one task folds at most, about.
  static constexpr int64_t kPiece = 1 << 16;

  /// `reduced[d]` says whether dim d of x goes away. x has elements.
  ReducePlan(const Tensor& x, const bool* reduced) {
    bool last = false;
    int64_t step = 1;
    bool first = true;
    for (int32_t d = x.rank - 1; d >= 0; --d) {
      const int64_t extent = x.shape[d];
      if (extent == 1) continue;
      if (first) {
        rows_ = reduced[d];
        inner_ = extent;
        first = false;
      } else if (reduced[d] == last) {
        (reduced[d] == rows_ && kept_.rank + folded_.rank == 0 ? inner_
                                                               : side(reduced[d]).back()) *= extent;
      } else {
        side(reduced[d]).push(extent, step);
      }
      last = reduced[d];
      step *= extent;
    }
    lines_ = folded_.count();
    const int64_t line = rows_ ? inner_ : std::min(inner_, kColumns);
    blocks_ = rows_ ? 1 : (inner_ + kColumns - 1) / kColumns;
    // Of rows, elements are cut into pieces; of columns, whole lines are.
    length_ = rows_ ? lines_ * inner_ : lines_;
    piece_ = rows_ ? kPiece : std::max<int64_t>(1, kPiece / line);
    pieces_ = (length_ + piece_ - 1) / piece_;
  }

  /// True: contiguous runs are folded. False: columns are.
  bool rows() const { return rows_; }
  /// Elements of the rows if they are short and each gives one output element, else 0.
  int64_t short_row() const {
    constexpr int64_t kShort = 16;
    return rows_ && folded_.rank == 0 && inner_ <= kShort ? inner_ : 0;
  }
  /// Where such a row starts.
  int64_t row_at(int64_t output) const { return kept_.offset(output); }
  int64_t pieces() const { return pieces_; }
  int64_t outputs() const { return kept_.count() * blocks_; }
  int64_t tasks() const { return outputs() * pieces_; }
  /// Elements folded by a task, for the grain.
  int64_t cost() const {
    return std::min(piece_, length_) * (rows_ ? 1 : std::min(inner_, kColumns));
  }
  /// First output element of group `output` and how many it holds.
  int64_t output_at(int64_t output) const {
    return rows_ ? output : output / blocks_ * inner_ + output % blocks_ * kColumns;
  }
  int64_t output_count(int64_t output) const {
    return rows_ ? 1 : std::min(kColumns, inner_ - output % blocks_ * kColumns);
  }

  /// Calls run(offset, lines, stride, n) for what `task` folds: `lines` runs of n contiguous
  /// elements, `stride` apart.
  template <class Run>
  void walk(int64_t task, const Run& run) const {
    const int64_t output = task / pieces_;
    const int64_t begin = task % pieces_ * piece_;
    const int64_t end = std::min(length_, begin + piece_);
    const int64_t base = kept_.offset(output / blocks_) + output % blocks_ * kColumns;
    if (rows_) {
      for (int64_t at = begin; at < end;) {
        const int64_t column = at % inner_;
        const int64_t n = std::min(inner_ - column, end - at);
        run(base + folded_.offset(at / inner_) + column, 1, 0, n);
        at += n;
      }
      return;
    }
    const int64_t n = output_count(output);
    const int64_t extent = folded_.rank > 0 ? folded_.extent[0] : 1;
    const int64_t stride = folded_.rank > 0 ? folded_.stride[0] : 0;
    for (int64_t at = begin; at < end;) {
      const int64_t lines = std::min(extent - at % extent, end - at);
      run(base + folded_.offset(at), lines, stride, n);
      at += lines;
    }
  }

 private:
  /// Dims of one kind beyond the inner run, innermost first.
  struct Side {
    int rank = 0;
    int64_t extent[CHIPDOCK_MAX_RANK];
    int64_t stride[CHIPDOCK_MAX_RANK];

    int64_t count() const {
      int64_t n = 1;
      for (int d = 0; d < rank; ++d) n *= extent[d];
      return n;
    }
    int64_t offset(int64_t index) const {
      if (rank == 0) return 0;
      int64_t at = 0;
      for (int d = 0; d + 1 < rank; ++d) {
        at += index % extent[d] * stride[d];
        index /= extent[d];
      }
      return at + index * stride[rank - 1];
    }
    int64_t& back() { return extent[rank - 1]; }
    void push(int64_t n, int64_t by) {
      extent[rank] = n;
      stride[rank++] = by;
    }
  };
  Side& side(bool reduced) { return reduced ? folded_ : kept_; }

  bool rows_ = true;
  int64_t inner_ = 1;
  Side kept_;
  Side folded_;
  int64_t lines_ = 1;
  int64_t blocks_ = 1;
  int64_t length_ = 1;
  int64_t piece_ = kPiece;
  int64_t pieces_ = 1;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_REDUCTION_PLAN_HPP_
