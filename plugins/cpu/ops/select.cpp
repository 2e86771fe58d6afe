// SPDX-License-Identifier: Apache-2.0
// NonZero and Compress: how much comes out depends on the data. The output is given at its upper
// bound and written densely for the true extents, which go into Context::extents.
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Records the true extents; without a place for them the bound has to be exact.
void set_extents(const Context& context, const char* op, int32_t axis, int64_t count) {
  const Tensor& to = context.output(0);
  if (context.extents != nullptr && context.extents[0] != nullptr) {
    for (int32_t i = 0; i < to.rank; ++i) context.extents[0][i] = to.shape[i];
    context.extents[0][axis] = count;
  } else if (to.shape[axis] != count) {
    kit::fail(CHIPDOCK_FAILED_PRECONDITION, op, ": ", count, " entries came out, the output has ",
              to.shape[axis], " and there is no place for the true extents");
  }
}

/// Bits that make an element nonzero: all but the sign bit of floats.
uint64_t significant_bits(chipdock_dtype type) {
  switch (type.code) {
    case CHIPDOCK_DTYPE_FLOAT:
    case CHIPDOCK_DTYPE_BFLOAT:
      return ~(uint64_t{1} << (type.bits - 1));
    case CHIPDOCK_DTYPE_COMPLEX:
      return type.bits == 64 ? 0x7fffffff7fffffffu : ~(uint64_t{1} << 63);
    default:
      return ~uint64_t{0};
  }
}

template <int kWidth>
inline bool is_nonzero(const char* at, uint64_t mask) {
  uint64_t low = 0, high = 0;
  std::memcpy(&low, at, kWidth < 8 ? kWidth : 8);
  if constexpr (kWidth == 16) std::memcpy(&high, at + 8, 8);
  return ((low | high) & mask) != 0;
}

class NonZeroKernel : public Kernel {
 public:
  explicit NonZeroKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(to.rank == 2 && to.shape[0] == from.rank, "NonZero: output ", shape_text(to),
                 " does not fit input ", shape_text(from));
    const uint64_t mask = significant_bits(from.dtype);
    const int64_t size = from.size();
    by_width(width_of(from, "NonZero"), [&](auto bytes) {
      constexpr int kWidth = decltype(bytes)::value;
      const char* data = from.as<char>();
      int64_t count = 0;
      for (int64_t i = 0; i < size; ++i)
        count += is_nonzero<kWidth>(data + i * kWidth, mask) ? 1 : 0;
      kit::require(count <= to.shape[1], "NonZero: ", count,
                   " elements are not 0, the output holds ", to.shape[1]);
      int64_t* out = to.mut<int64_t>();
      int64_t found = 0;
      int64_t at[kMaxRank] = {};
      for (int64_t i = 0; i < size; ++i) {
        if (is_nonzero<kWidth>(data + i * kWidth, mask)) {
          for (int32_t d = 0; d < from.rank; ++d) out[d * count + found] = at[d];
          ++found;
        }
        for (int32_t d = from.rank - 1; d >= 0 && ++at[d] == from.shape[d]; --d) at[d] = 0;
      }
      set_extents(context, "NonZero", 1, count);
    });
  }
};

class CompressKernel : public Kernel {
 public:
  explicit CompressKernel(const kit::NodeView& node)
      : flat_(!node.has("axis")), axis_(node.integer("axis", 0)) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "Compress";
    const Tensor& from = context.input(0);
    const Tensor& condition = context.input(1);
    const Tensor& to = context.output(0);
    const int64_t axis = flat_ ? 0 : kit::normalize_axis(axis_, from.rank, kOp);
    kit::require(to.rank == (flat_ ? 1 : from.rank), kOp, ": output has rank ", to.rank);
    const int64_t extent = flat_ ? from.size() : from.shape[axis];
    const int64_t outer = flat_ ? 1 : from.size(0, axis);
    const int64_t run = (flat_ ? 1 : from.size(axis + 1, from.rank)) * width_of(from, kOp);
    const bool* keep = condition.as<bool>();
    const int64_t length = condition.size();
    kit::require(length <= extent, kOp, ": condition has ", length, " entries, axis ", axis,
                 " of input ", extent);
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) count += keep[i] ? 1 : 0;
    kit::require(count <= to.shape[axis], kOp, ": ", count, " entries are kept, the output holds ",
                 to.shape[axis]);
    char* out = to.mut<char>();
    for (int64_t row = 0; row < outer && run > 0; ++row) {
      for (int64_t i = 0; i < length; ++i) {
        if (!keep[i]) continue;
        std::memcpy(out, from.as<char>() + (row * extent + i) * run, static_cast<size_t>(run));
        out += run;
      }
    }
    set_extents(context, kOp, static_cast<int32_t>(axis), count);
  }

 private:
  bool flat_;
  int64_t axis_;
};

}  // namespace

KernelSpan select_kernels() {
  KernelDef nonzero{"NonZero", 9, 0, make<NonZeroKernel>};
  KernelDef compress{"Compress", 9, 0, make<CompressKernel>};
  nonzero.supports = compress.supports = moves_bytes;
  compress.dtypes = {{1, {kit::kBool}}};
  return {nonzero, compress};
}

}  // namespace chipdock::plugin::cpu
