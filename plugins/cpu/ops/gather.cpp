// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND: copies picked by indices that are checked before each read.
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Index i, made positive.
inline int64_t checked_index(const Integers& indices, int64_t i, int64_t extent, const Tensor& data,
                             const char* op) {
  const int64_t given = indices[i];
  const int64_t index = given < 0 ? given + extent : given;
  if (index < 0 || index >= extent) fail_index(op, given, i, extent, data);
  return index;
}

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const kit::NodeView& node) : axis_(node.integer("axis", 0)) {}
  void run(const Context& context) const override {
    const Tensor& data = context.input(0);
    const Tensor& to = context.output(0);
    const Integers indices(context.input(1), "Gather");
    const int width = width_of(data, "Gather");
    const int64_t axis = kit::normalize_axis(axis_, data.rank, "Gather");
    const int64_t extent = data.shape[axis];
    const int64_t outer = data.size(0, axis);
    const int64_t run = data.size(axis + 1, data.rank) * width;
    const int64_t count = indices.size();
    kit::require(to.size() * width == outer * count * run, "Gather: output has ", to.size(),
                 " elements, the indices pick ", outer * count * run / width);
    const char* in = data.as<char>();
    char* out = to.mut<char>();
    for_units(context, outer * count, run + 8, [&](int64_t begin, int64_t end) {
      int64_t row = begin / count, i = begin % count;
      for (int64_t n = begin; n < end; ++n) {
        const int64_t index = checked_index(indices, i, extent, data, "Gather");
        copy(out + n * run, in + (row * extent + index) * run, run);
        if (++i == count) {
          i = 0;
          ++row;
        }
      }
    });
  }

 private:
  static void copy(char* to, const char* from, int64_t run) {
    if (run == 8) {
      move_one<8>(to, from);
    } else if (run == 4) {
      move_one<4>(to, from);
    } else if (run > 0) {
      std::memcpy(to, from, static_cast<size_t>(run));
    }
  }
  int64_t axis_;
};

class GatherElementsKernel : public Kernel {
 public:
  explicit GatherElementsKernel(const kit::NodeView& node) : axis_(node.integer("axis", 0)) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "GatherElements";
    const Tensor& data = context.input(0);
    const Tensor& to = context.output(0);
    const Tensor& where = context.input(1);
    const Integers indices(where, kOp);
    const int64_t axis = kit::normalize_axis(axis_, data.rank, kOp);
    require_same_shape(to, where, kOp, "output");
    bool fits = where.rank == data.rank;
    for (int32_t i = 0; fits && i < data.rank; ++i) {
      fits = i == axis || where.shape[i] <= data.shape[i];
    }
    if (!fits) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, kOp, ": indices of shape ", shape_text(where),
                " reach beyond data ", shape_text(data), " on an axis other than ", axis);
    }
    int64_t strides[kMaxRank];
    strides_of(data, strides);
    const int64_t last = where.rank - 1;
    const int64_t row = where.shape[last];
    if (indices.size() == 0) return;
    const int64_t rows = where.size(0, last);
    const int64_t extent = data.shape[axis];
    const int64_t jump = strides[axis], step = axis == last ? 0 : 1;
    const auto gather = [&](auto bytes, const auto* index_of) {
      constexpr int kWidth = decltype(bytes)::value;
      for_units(context, rows, row * (kWidth + 8), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t rest = r, base = 0;
          for (int64_t d = last - 1; d >= 0; --d) {
            if (d != axis) base += rest % where.shape[d] * strides[d];
            rest /= where.shape[d];
          }
          const char* in = data.as<char>() + base * kWidth;
          char* out = to.mut<char>() + r * row * kWidth;
          const auto* wanted = index_of + r * row;
          for (int64_t i = 0; i < row; ++i) {
            const int64_t given = wanted[i];
            const int64_t index = given < 0 ? given + extent : given;
            if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent)) {
              fail_index(kOp, given, r * row + i, extent, data);
            }
            move_one<kWidth>(out + i * kWidth, in + index * jump * kWidth);
            in += step * kWidth;
          }
        }
      });
    };
    by_width(width_of(data, kOp), [&](auto bytes) {
      indices.visit([&](const auto* index_of) { gather(bytes, index_of); });
    });
  }

 private:
  int64_t axis_;
};

class GatherNdKernel : public Kernel {
 public:
  explicit GatherNdKernel(const kit::NodeView& node) : batch_dims_(node.integer("batch_dims", 0)) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "GatherND";
    const Tensor& data = context.input(0);
    const Tensor& to = context.output(0);
    const Tensor& where = context.input(1);
    const Integers indices(where, kOp);
    const int width = width_of(data, kOp);
    kit::require(where.rank > 0 && batch_dims_ >= 0 && batch_dims_ < where.rank, kOp,
                 ": batch_dims ", batch_dims_, " with indices of rank ", where.rank);
    const int64_t depth = where.shape[where.rank - 1];
    kit::require(batch_dims_ + depth <= data.rank, kOp, ": index tuples of ", depth,
                 " entries behind ", batch_dims_, " batch dims, data has rank ", data.rank);
    const int64_t batches = where.size(0, batch_dims_);
    const int64_t tuples = where.size(batch_dims_, where.rank - 1);
    const int64_t run = data.size(batch_dims_ + depth, data.rank) * width;
    const int64_t batch = data.size(batch_dims_, data.rank) * width;
    kit::require(
        batches == data.size(0, batch_dims_) && to.size() * width == batches * tuples * run, kOp,
        ": data, indices and output do not fit each other");
    const int64_t* extents = data.shape + batch_dims_;
    for_units(context, batches * tuples, run + 8 * depth, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; ++k) {
          at = at * extents[k] + checked_index(indices, n * depth + k, extents[k], data, kOp);
        }
        if (run == 0) continue;
        std::memcpy(to.mut<char>() + n * run, data.as<char>() + n / tuples * batch + at * run,
                    static_cast<size_t>(run));
      }
    });
  }

 private:
  int64_t batch_dims_;
};

}  // namespace

KernelSpan gather_kernels() {
  KernelDef gather{"Gather", 1, 0, make<GatherKernel>};
  KernelDef elements{"GatherElements", 11, 0, make<GatherElementsKernel>};
  KernelDef nd{"GatherND", 11, 0, make<GatherNdKernel>};
  gather.supports = elements.supports = nd.supports = moves_bytes;
  return {gather, elements, nd};
}

}  // namespace chipdock::plugin::cpu
