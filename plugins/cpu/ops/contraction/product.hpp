// SPDX-License-Identifier: Apache-2.0
// Einsum of two operands as a batch of matrix products. Labels fall into four kinds: of both
// operands and the result (batch), of both alone (summed), of one operand and the result (rows,
// columns). Operands whose labels of a kind lie evenly are read where they are, others are copied
// first. ops/einsum.cpp has loops for what does not fit.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PRODUCT_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PRODUCT_HPP_

#include <algorithm>
#include <map>
#include <vector>

#include "gemm.hpp"
#include "ops/movement/strided_copy.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {

using Labels = std::vector<int>;

/// The strides of one tensor by label; axes of extent 1 are left out.
struct LabelStrides {
  std::map<int, int64_t> strides;
  bool repeated = false;  ///< A label twice: a diagonal.

  LabelStrides(const Tensor& tensor, const Labels& labels) {
    int64_t step = 1;
    for (int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
      if (tensor.shape[axis] != 1) {
        repeated = !strides.emplace(labels[static_cast<size_t>(axis)], step).second || repeated;
      }
      step *= tensor.shape[axis];
    }
  }
  bool has(int label) const { return strides.count(label) != 0; }
};

/// How a tensor is read or written as a matrix.
struct MatrixView {
  int64_t row = 0, column = 0;
  bool copied = false;  ///< Else in its own memory.
};

class ProductPlan {
 public:
  /// `fits()` says whether there is such a plan. The labels are one for each axis.
  ProductPlan(const Tensor& a, const Labels& of_a, const Tensor& b, const Labels& of_b,
              const Tensor& y, const Labels& of_y)
      : a_(a, of_a), b_(b, of_b), y_(y, of_y) {
    if (a_.repeated || b_.repeated || y_.repeated || a.size() == 0 || b.size() == 0) return;
    read(a, of_a);
    read(b, of_b);
    // Columns come from the operand that has the last label of the result.
    for (size_t i = of_y.size(); i-- > 0;) {
      if (!y_.has(of_y[i])) continue;
      swapped_ = a_.has(of_y[i]) && !b_.has(of_y[i]);
      if (a_.has(of_y[i]) != b_.has(of_y[i])) break;
    }
    if (swapped_) std::swap(a_, b_);
    for (const int label : of_y) {
      if (!y_.has(label)) continue;
      if (!a_.has(label) && !b_.has(label)) return;
      (a_.has(label) ? b_.has(label) ? batch_ : rows_ : columns_).push_back(label);
    }
    for (const Labels* labels : {&of_b, &of_a}) {
      Labels summed;
      for (const int label : *labels) {
        if ((!a_.has(label) && !b_.has(label)) || y_.has(label)) continue;
        if (!a_.has(label) || !b_.has(label)) return;  // Summed in one operand alone.
        if (std::find(summed.begin(), summed.end(), label) == summed.end()) summed.push_back(label);
      }
      // The order of one operand, or of the other if that spares a copy.
      if (labels == &of_b || copies(summed) < copies(summed_)) summed_ = std::move(summed);
    }
    m = count(rows_);
    n = count(columns_);
    k = count(summed_);
    batch = count(batch_);
    view_a = view(a_, rows_, summed_);
    view_b = view(b_, summed_, columns_);
    view_y = view(y_, rows_, columns_);
    if (view_y.column != 1) view_y = {n, 1, true};
    // Below this the preparation of a product costs more than the loops.
    fits_ = m * n * k >= kLeast;
  }

  bool fits() const { return fits_; }
  bool swapped() const { return swapped_; }
  int64_t m = 1, n = 1, k = 1, batch = 1;
  MatrixView view_a, view_b, view_y;

  int64_t size_a() const { return batch * m * k; }
  int64_t size_b() const { return batch * k * n; }
  int64_t size_y() const { return batch * m * n; }
  /// Where member `index` begins, in elements.
  int64_t offset_a(int64_t index) const { return offset(a_, view_a, m * k, index); }
  int64_t offset_b(int64_t index) const { return offset(b_, view_b, k * n, index); }
  int64_t offset_y(int64_t index) const { return offset(y_, view_y, m * n, index); }
  /// Copies between the tensors as they are and dense [batch, row, column].
  Box gather_a() const { return box(a_, {&batch_, &rows_, &summed_}, false); }
  Box gather_b() const { return box(b_, {&batch_, &summed_, &columns_}, false); }
  Box scatter_y() const { return box(y_, {&batch_, &rows_, &columns_}, true); }

 private:
  static constexpr int64_t kLeast = 64;

  void read(const Tensor& tensor, const Labels& labels) {
    for (int32_t axis = 0; axis < tensor.rank; ++axis) {
      if (tensor.shape[axis] != 1) extents_[labels[static_cast<size_t>(axis)]] = tensor.shape[axis];
    }
  }
  int64_t count(const Labels& labels) const {
    int64_t n = 1;
    for (const int label : labels) n *= extents_.at(label);
    return n;
  }
  /// Whether the labels, the last one innermost, are one stride.
  bool evenly(const LabelStrides& tensor, const Labels& labels) const {
    for (size_t i = 1; i < labels.size(); ++i) {
      if (tensor.strides.at(labels[i - 1]) !=
          tensor.strides.at(labels[i]) * extents_.at(labels[i])) {
        return false;
      }
    }
    return true;
  }
  int copies(const Labels& summed) const {
    return (evenly(a_, summed) ? 0 : 1) + (evenly(b_, summed) ? 0 : 1);
  }
  MatrixView view(const LabelStrides& tensor, const Labels& rows, const Labels& columns) const {
    if (!evenly(tensor, rows) || !evenly(tensor, columns)) return {count(columns), 1, true};
    const int64_t column = columns.empty() ? 1 : tensor.strides.at(columns.back());
    return {rows.empty() ? count(columns) : tensor.strides.at(rows.back()), column, false};
  }
  int64_t offset(const LabelStrides& tensor, const MatrixView& view, int64_t size,
                 int64_t index) const {
    if (view.copied) return index * size;
    int64_t at = 0;
    for (size_t i = batch_.size(); i-- > 0;) {
      const int64_t extent = extents_.at(batch_[i]);
      at += index % extent * tensor.strides.at(batch_[i]);
      index /= extent;
    }
    return at;
  }
  Box box(const LabelStrides& tensor, std::initializer_list<const Labels*> order,
          bool to_tensor) const {
    struct Dim {
      int64_t extent, strided, dense;
    };
    std::vector<Dim> dims;
    for (const Labels* labels : order) {
      for (const int label : *labels) {
        dims.push_back({extents_.at(label), tensor.strides.at(label), 1});
      }
    }
    for (size_t i = dims.size(); i-- > 1;) dims[i - 1].dense = dims[i].dense * dims[i].extent;
    if (to_tensor) {  // A box is given in the order of its target.
      std::sort(dims.begin(), dims.end(),
                [](const Dim& x, const Dim& y) { return x.strided > y.strided; });
    }
    Box box;
    for (const Dim& dim : dims) {
      box.add(dim.extent, to_tensor ? dim.dense : dim.strided, to_tensor ? dim.strided : dim.dense);
    }
    return box;
  }

  LabelStrides a_, b_, y_;
  std::map<int, int64_t> extents_;
  Labels batch_, rows_, summed_, columns_;
  bool swapped_ = false;
  bool fits_ = false;
};

template <class T>
class EinsumWork final : public GemmWork<T> {
 public:
  EinsumWork(const ProductPlan& plan, const T* packed_a, const T* b, T* c)
      : plan_(plan), packed_a_(packed_a), c_(c) {
    this->m = plan.m;
    this->n = plan.n;
    this->k = plan.k;
    this->batch = plan.batch;
    this->c_row = plan.view_y.row;
    b_.data = b;
    b_.row = plan.view_b.row;
    b_.column = plan.view_b.column;
  }
  const T* a(int64_t member) const override { return packed_a_ + member * this->m * this->k; }
  T* c(int64_t member) const override { return c_ + plan_.offset_y(member); }
  GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    GemmB<T> b = b_;
    b.data += plan_.offset_b(member);
    return b.panel(this->m, this->k, k_begin, k_end, column, cols, scratch);
  }

 private:
  const ProductPlan& plan_;
  const T* packed_a_;
  GemmB<T> b_;
  T* c_;
};

/// Scratch bytes of run_product.
template <class T>
uint64_t product_bytes(const Context& context, const ProductPlan& plan) {
  const bool half = is_half(context.output(0).dtype);
  uint64_t bytes = gemm_scratch_bytes<T>(context) + padded_bytes(plan.size_a(), sizeof(T));
  if (plan.view_a.copied) bytes += padded_bytes(plan.size_a(), sizeof(T));
  if (plan.view_b.copied) bytes += padded_bytes(plan.size_b(), sizeof(T));
  if (plan.view_y.copied) bytes += padded_bytes(plan.size_y(), sizeof(T));
  if (half) {
    bytes += padded_bytes(plan.size_a(), sizeof(T)) + padded_bytes(plan.size_b(), sizeof(T)) +
             padded_bytes(plan.size_y(), sizeof(T));
  }
  return bytes;
}

template <class T>
void run_product(const Context& context, const ProductPlan& plan) {
  const Tensor& y = context.output(0);
  const bool half = is_half(y.dtype);
  Carver carver(context.workspace);
  T* scratch = carver.take<T>(static_cast<int64_t>(gemm_scratch_bytes<T>(context) / sizeof(T)));
  T* packed = carver.take<T>(plan.size_a());
  const auto operand = [&](uint32_t input, int64_t size, const MatrixView& view, const Box& box) {
    const T* from = widened(context.input(input), half ? carver.take<T>(size) : nullptr);
    if (!view.copied) return from;
    T* dense = carver.take<T>(size);
    copy_box(context, box, from, dense, sizeof(T));
    return static_cast<const T*>(dense);
  };
  const T* a = operand(plan.swapped() ? 1 : 0, plan.size_a(), plan.view_a, plan.gather_a());
  const T* b = operand(plan.swapped() ? 0 : 1, plan.size_b(), plan.view_b, plan.gather_b());
  T* wide = half ? carver.take<T>(plan.size_y()) : y.mut<T>();
  T* c = plan.view_y.copied ? carver.take<T>(plan.size_y()) : wide;
  const int64_t size = plan.m * plan.k;
  const auto pack = [&](int64_t i) {
    gemm_pack_a(context, a + plan.offset_a(i), 1, 0, plan.view_a.row, plan.view_a.column, plan.m,
                plan.k, T(1), packed + i * size);
  };
  if (plan.batch == 1) {
    pack(0);
  } else {
    over(context, plan.batch, std::max<int64_t>(1, 32768 / (size + 1)),
         [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) pack(i);
         });
  }
  gemm_run<T>(context, EinsumWork<T>(plan, packed, b, c), scratch);
  if (plan.view_y.copied) copy_box(context, plan.scatter_y(), c, wide, sizeof(T));
  if constexpr (sizeof(T) == sizeof(float)) {
    if (half) narrow(y.dtype, wide, y.size(), y.data);
  }
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PRODUCT_HPP_
