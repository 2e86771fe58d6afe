// SPDX-License-Identifier: Apache-2.0
// ScatterElements, its elder Scatter, and ScatterND. Updates of one place are applied in row-major
// order, so repeated indices give the same result on any number of threads.
#include <cmath>
#include <cstring>
#include <string>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"
#include "ops/numeric.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

/// target[i] = target[i] (op) source[i].
using Combine = void (*)(char* target, const char* source, int64_t count);

template <Reduction kOp, class T>
T combined(T a, T b) {
  using W = Wrapping<T>;
  if constexpr (kOp == Reduction::kAdd)
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  if constexpr (kOp == Reduction::kMul)
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  // A NaN on either side stays.
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  if constexpr (kOp == Reduction::kMin) return b < a ? b : a;
  return a < b ? b : a;
}

template <Reduction kOp, class T>
void combine_run(char* target, const char* source, int64_t count) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    for (int64_t i = 0; i < count; ++i) {
      float a = 0, b = 0;
      widen(dtype_of<T>(), target + 2 * i, 1, &a);
      widen(dtype_of<T>(), source + 2 * i, 1, &b);
      a = combined<kOp>(a, b);
      narrow(dtype_of<T>(), &a, 1, target + 2 * i);
    }
  } else {
    T* to = reinterpret_cast<T*>(target);
    const T* from = reinterpret_cast<const T*>(source);
    for (int64_t i = 0; i < count; ++i) to[i] = combined<kOp>(to[i], from[i]);
  }
}

template <int kWidth>
void replace_run(char* target, const char* source, int64_t count) {
  if (count == 1) {
    move_one<kWidth>(target, source);
  } else {
    std::memcpy(target, source, static_cast<size_t>(count * kWidth));
  }
}

Combine combine_of(Reduction reduction, chipdock_dtype type, int width, const char* op) {
  Combine out = nullptr;
  if (reduction == Reduction::kNone) {
    by_width(width, [&](auto bytes) { out = replace_run<decltype(bytes)::value>; });
    return out;
  }
  dispatch(NumberTypes{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (reduction) {
      case Reduction::kAdd:
        out = combine_run<Reduction::kAdd, T>;
        break;
      case Reduction::kMul:
        out = combine_run<Reduction::kMul, T>;
        break;
      case Reduction::kMin:
        out = combine_run<Reduction::kMin, T>;
        break;
      default:
        out = combine_run<Reduction::kMax, T>;
        break;
    }
  });
  if (out == nullptr) no_dtype(std::string(op) + " with a reduction", type);
  return out;
}

class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const kit::NodeView& node) {
    const std::string reduction = node.text("reduction", "none");
    static constexpr const char* kNames[] = {"none", "add", "mul", "min", "max"};
    for (int i = 0; i < 5; ++i) {
      if (reduction == kNames[i]) {
        reduction_ = static_cast<Reduction>(i);
        return;
      }
    }
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, node.op(), ": reduction is ", reduction,
              ", none, add, mul, min and max are allowed");
  }

 protected:
  Reduction reduction_ = Reduction::kNone;
};

class ScatterElementsKernel : public ScatterKernel {
 public:
  explicit ScatterElementsKernel(const kit::NodeView& node)
      : ScatterKernel(node), axis_(node.integer("axis", 0)) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "ScatterElements";
    const Tensor& data = context.input(0);
    const Tensor& where = context.input(1);
    const Tensor& updates = context.input(2);
    const Tensor& to = context.output(0);
    const Integers indices(where, kOp);
    const int width = width_of(data, kOp);
    const int64_t axis = kit::normalize_axis(axis_, data.rank, kOp);
    require_same_shape(to, data, kOp, "output");
    require_same_shape(updates, where, kOp, "updates");
    require_same_dtype(updates, data, kOp);
    bool fits = where.rank == data.rank;
    for (int32_t i = 0; fits && i < data.rank; ++i) {
      fits = i == axis || where.shape[i] <= data.shape[i];
    }
    if (!fits) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, kOp, ": indices of shape ", shape_text(where),
                " reach beyond data ", shape_text(data), " on an axis other than ", axis);
    }
    copy_bytes(context, data.data, to.data, data.bytes());
    if (indices.size() == 0) return;
    int64_t strides[kMaxRank];
    strides_of(data, strides);
    const Combine combine = combine_of(reduction_, data.dtype, width, kOp);
    const int64_t last = where.rank - 1, row = where.shape[last];
    const int64_t extent = data.shape[axis];
    const int64_t step = axis == last ? 0 : 1;
    // Rows that share all indices before the axis may meet in one place: they stay on one thread.
    const int64_t slices = where.size(0, axis);
    const int64_t rows = where.size(0, last) / slices;
    for_units(context, slices, rows * row * (width + 8), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * rows; r < end * rows; ++r) {
        int64_t rest = r, base = 0;
        for (int64_t d = last - 1; d >= 0; --d) {
          if (d != axis) base += rest % where.shape[d] * strides[d];
          rest /= where.shape[d];
        }
        for (int64_t i = 0; i < row; ++i) {
          const int64_t given = indices[r * row + i];
          const int64_t index = given < 0 ? given + extent : given;
          if (index < 0 || index >= extent) fail_index(kOp, given, r * row + i, extent, data);
          combine(to.mut<char>() + (base + i * step + index * strides[axis]) * width,
                  updates.as<char>() + (r * row + i) * width, 1);
        }
      }
    });
  }

 private:
  int64_t axis_;
};

class ScatterNdKernel : public ScatterKernel {
 public:
  using ScatterKernel::ScatterKernel;
  void run(const Context& context) const override {
    constexpr const char* kOp = "ScatterND";
    const Tensor& data = context.input(0);
    const Tensor& where = context.input(1);
    const Tensor& updates = context.input(2);
    const Tensor& to = context.output(0);
    const Integers indices(where, kOp);
    const int width = width_of(data, kOp);
    require_same_shape(to, data, kOp, "output");
    require_same_dtype(updates, data, kOp);
    kit::require(where.rank > 0 && where.shape[where.rank - 1] <= data.rank, kOp, ": indices ",
                 shape_text(where), " do not fit data ", shape_text(data));
    const int64_t depth = where.shape[where.rank - 1];
    const int64_t tuples = where.size(0, where.rank - 1);
    const int64_t run = data.size(depth, data.rank);
    kit::require(updates.size() == tuples * run, kOp, ": updates has ", updates.size(),
                 " elements, the indices name ", tuples * run);
    copy_bytes(context, data.data, to.data, data.bytes());
    const Combine combine = combine_of(reduction_, data.dtype, width, kOp);
    for (int64_t n = 0; n < tuples; ++n) {
      int64_t at = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t given = indices[n * depth + k];
        const int64_t index = given < 0 ? given + data.shape[k] : given;
        if (index < 0 || index >= data.shape[k])
          fail_index(kOp, given, n * depth + k, data.shape[k], data);
        at = at * data.shape[k] + index;
      }
      if (run > 0) {
        combine(to.mut<char>() + at * run * width, updates.as<char>() + n * run * width, run);
      }
    }
  }
};

}  // namespace

KernelSpan scatter_kernels() {
  KernelSpan out;
  out.push_back({"Scatter", 9, 0, make<ScatterElementsKernel>});
  out.push_back({"ScatterElements", 11, 0, make<ScatterElementsKernel>});
  out.push_back({"ScatterND", 11, 0, make<ScatterNdKernel>});
  for (KernelDef& def : out) {
    def.supports = moves_bytes;
    def.aliases = {{0, 0}};
  }
  return out;
}

}  // namespace chipdock::plugin::cpu
