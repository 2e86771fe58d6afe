// SPDX-License-Identifier: Apache-2.0
// Operators that make a tensor from a rule: ConstantOfShape, Range, EyeLike, OneHot.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/number.hpp"
#include "ops/movement/strided_copy.hpp"
#include "ops/numeric.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

class ConstantOfShapeKernel : public Kernel {
 public:
  explicit ConstantOfShapeKernel(const kit::NodeView& node) {
    const chipdock_tensor* value = node.tensor("value");
    if (value == nullptr) return;
    const int bits = value->dtype.bits * value->dtype.lanes;
    kit::require(value->host != nullptr && bits <= 128,
                 "ConstantOfShape: value has no element to read");
    type_ = value->dtype;
    std::memcpy(value_, value->host, static_cast<size_t>(bits + 7) / 8);
  }
  void run(const Context& context) const override {
    const Tensor& to = context.output(0);
    if (!kit::operator==(to.dtype, type_)) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "ConstantOfShape: output is ", kit::dtype_name(to.dtype),
                ", value is ", kit::dtype_name(type_));
    }
    fill_elements(context, to.data, to.size(), value_, width_of(to, "ConstantOfShape"));
  }

 private:
  chipdock_dtype type_ = kit::kFloat32;
  char value_[16] = {};
};

class RangeKernel : public Kernel {
 public:
  explicit RangeKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& to = context.output(0);
    require_same_dtype(context.input(0), to, "Range");
    require_same_dtype(context.input(2), to, "Range");
    using Wide = Types<float, double, int16_t, int32_t, int64_t>;
    if (is_half(to.dtype)) {
      half(context, to);
      return;
    }
    const bool known = dispatch(Wide{}, to.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using W = Wrapping<T>;
      const W start = static_cast<W>(*context.input(0).as<T>());
      const W delta = static_cast<W>(*context.input(2).as<T>());
      T* out = to.mut<T>();
      for_units(context, to.size(), sizeof(T), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          out[i] = static_cast<T>(start + static_cast<W>(i) * delta);
        }
      });
    });
    if (!known) no_dtype("Range", to.dtype);
  }

 private:
  static void half(const Context& context, const Tensor& to) {
    float start = 0, delta = 0;
    widen(to.dtype, context.input(0).data, 1, &start);
    widen(to.dtype, context.input(2).data, 1, &delta);
    const int64_t count = to.size();
    float block[kBlock];
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t n = std::min(kBlock, count - first);
      for (int64_t i = 0; i < n; ++i) block[i] = start + static_cast<float>(first + i) * delta;
      narrow(to.dtype, block, n, to.mut<uint16_t>() + first);
    }
  }
};

class EyeLikeKernel : public Kernel {
 public:
  explicit EyeLikeKernel(const kit::NodeView& node) : k_(node.integer("k", 0)) {}
  void run(const Context& context) const override {
    const Tensor& to = context.output(0);
    kit::require(to.rank == 2, "EyeLike: rank is ", to.rank, ", must be 2");
    const int width = width_of(to, "EyeLike");
    const int64_t rows = to.shape[0], columns = to.shape[1];
    const int64_t k = std::clamp(k_, -rows, columns);
    if (to.size() == 0) return;
    char one[16] = {};
    encode_number(to.dtype, 1, one, "EyeLike");
    std::memset(to.data, 0, to.bytes());
    for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row) {
      std::memcpy(to.mut<char>() + (row * columns + row + k) * width, one,
                  static_cast<size_t>(width));
    }
  }

 private:
  int64_t k_;
};

class OneHotKernel : public Kernel {
 public:
  explicit OneHotKernel(const kit::NodeView& node) : axis_(node.integer("axis", -1)) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "OneHot";
    const Tensor& indices = context.input(0);
    const Tensor& values = context.input(2);
    const Tensor& to = context.output(0);
    const int width = width_of(to, kOp);
    require_same_dtype(values, to, kOp);
    kit::require(values.size() == 2, kOp, ": values has ", values.size(),
                 " elements, must be 2: off, on");
    const int64_t axis = kit::normalize_axis(axis_, to.rank, kOp);
    const int64_t depth = to.shape[axis];
    const int64_t inner = to.size(axis + 1, to.rank);
    kit::require(to.rank == indices.rank + 1 && indices.size() == to.size(0, axis) * inner, kOp,
                 ": output does not fit the indices");
    const char* on = values.as<char>() + width;
    fill_elements(context, to.data, to.size(), values.data, width);
    if (to.size() == 0) return;
    const int bytes = width_of(indices, kOp);
    const bool whole = indices.dtype.code == CHIPDOCK_DTYPE_INT && indices.dtype.bits >= 32;
    for (int64_t i = 0; i < indices.size(); ++i) {
      int64_t index = 0;
      if (whole) {
        index = bytes == 8 ? indices.as<int64_t>()[i] : indices.as<int32_t>()[i];
      } else {
        const double given = decode_number(indices.dtype, indices.as<char>() + i * bytes, kOp);
        // Beyond the bounds, or NaN: no position is on.
        if (!(std::fabs(given) <= static_cast<double>(depth))) continue;
        index = static_cast<int64_t>(given);
      }
      if (index < 0) index += depth;
      if (index < 0 || index >= depth) continue;
      const int64_t at = (i / inner * depth + index) * inner + i % inner;
      std::memcpy(to.mut<char>() + at * width, on, static_cast<size_t>(width));
    }
  }

 private:
  int64_t axis_;
};

}  // namespace

KernelSpan fill_kernels() {
  KernelDef range{"Range", 11, 0, make<RangeKernel>};
  range.host_inputs = 0b111;
  KernelDef one_hot{"OneHot", 9, 0, make<OneHotKernel>};
  one_hot.host_inputs = 1 << 1;
  KernelDef constant{"ConstantOfShape", 9, 0, make<ConstantOfShapeKernel>};
  constant.host_inputs = 1;
  return {constant, range, {"EyeLike", 9, 0, make<EyeLikeKernel>}, one_hot};
}

}  // namespace chipdock::plugin::cpu
