// SPDX-License-Identifier: Apache-2.0
// The product that MatMul, FusedMatMul and Gemm of floats share: operands made ready, what is done
// to the sums, halves narrowed. Half types are summed in float: bfloat16 by words where the level
// multiplies them, else widened (gemm_half.hpp).
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_MATMUL_PRODUCT_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_MATMUL_PRODUCT_HPP_

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "gemm.hpp"
#include "gemm_half.hpp"
#include "ops/fused/activation.hpp"
#include "ops/matmul_sizes.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {

/// What is done to a product beside multiplying; computed in T.
template <class T>
struct Extras {
  T scale = 1;                     ///< Of the product alone.
  const T* start = nullptr;        ///< Added, laid out as Y; may be Y. NULL: nothing.
  const T* column_bias = nullptr;  ///< Added, one element for each column of Y.
  const FusedActivation* last = nullptr;
  bool unfinished = false;         ///< More is done to the sums afterwards.
  const Tensor* halves = nullptr;  ///< Y, if sums are narrowed into it while in the cache.
};

/// `B` is one of the ways that gemm.hpp and gemm_half.hpp know to read the right operand; `steps`
/// is how many elements of A and B a sum takes, k or the words that hold it.
template <class T, class B>
class StridedWork final : public GemmWork<T> {
 public:
  const T* packed_a;  ///< Or as it is, see a_row.

  StridedWork(const Sizes& sizes, int64_t steps, const T* a, const B& b, T* c,
              const Extras<T>& extras)
      : packed_a(a), sizes_(sizes), b_(b), c_(c), extras_(extras) {
    this->m = sizes.m;
    this->n = sizes.n;
    this->k = steps;
    this->batch = sizes.batch;
    this->c_row = sizes.n;
    if (extras.last != nullptr) this->clamp = extras.last->template clamp<T>();
    member_b_ = b.packed != nullptr ? gemm_packed_b_size<T>(steps, sizes.n) : sizes.k * sizes.n;
  }
  const T* a(int64_t member) const override {
    return packed_a + sizes_.member(sizes_.step_a, member) * sizes_.m * this->k;
  }
  T* c(int64_t member) const override { return c_ + member * sizes_.m * sizes_.n; }
  const T* start(int64_t member) const override {
    return extras_.start != nullptr ? extras_.start + member * sizes_.m * sizes_.n : nullptr;
  }
  const T* column_bias() const override { return extras_.column_bias; }
  void finish(T* c, int64_t rows, int64_t cols) const override {
    if (extras_.last != nullptr && this->clamp == nullptr) {
      extras_.last->apply(c, rows, cols, sizes_.n);
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (extras_.halves == nullptr) return;
      const Tensor& y = *extras_.halves;
      for (const T* from = c; from < c + rows * sizes_.n; from += sizes_.n) {
        narrow(y.dtype, from, cols, y.mut<uint16_t>() + (from - c_));
      }
    }
  }
  GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    B b = b_;
    const int64_t offset = sizes_.member(sizes_.step_b, member) * member_b_;
    if (b.packed != nullptr) b.packed += offset;
    if constexpr (!std::is_same_v<B, HalfB>) b.data += b.packed == nullptr ? offset : 0;
    return b.panel(sizes_.m, this->k, k_begin, k_end, column, cols, scratch);
  }

 private:
  const Sizes& sizes_;
  B b_;
  T* c_;
  const Extras<T>& extras_;
  int64_t member_b_;
};

/// pack(member, first, end) for all blocks of rows of all members of A, m by k each.
template <class T, class Pack>
void pack_blocks(const Context& context, int64_t members, int64_t m, int64_t k, const Pack& pack) {
  const int64_t count = gemm_row_blocks<T>(m).count;
  const int64_t grain = std::max<int64_t>(1, 32768 / (m * k / count + 1));
  context.parallel_for(members * count, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % count;
      const int64_t blocks = std::min(count - first, end - begin);
      pack(begin / count, first, first + blocks);
      begin += blocks;
    }
  });
}

/// `scale` A as the tiles read it: itself if it is one contiguous row, else packed into `scratch`.
template <class T>
const T* pack_a(const Context& context, const Sizes& s, const T* a, int64_t row, int64_t column,
                T scale, T* scratch) {
  if (s.m == 1 && column == 1 && scale == T(1)) return a;
  gemm_pack_a(context, a, s.batch_a, s.m * s.k, row, column, s.m, s.k, scale, scratch);
  return scratch;
}

template <class T>
class Product : public Kernel {
 public:
  /// `scaled`: A is multiplied by a number first, which bfloat16 would round.
  explicit Product(bool scaled) : scaled_(scaled) {}
  uint64_t workspace(const Context& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    const Tensor& y = context.output(0);
    uint64_t bytes = gemm_scratch_bytes<T>(context) + padded_bytes(a.size(), sizeof(T));
    if (is_half(a.dtype)) {
      bytes += padded_bytes(y.size(), sizeof(T));
      if (!by_words(a.dtype)) {
        bytes += padded_bytes(a.size(), sizeof(T)) + padded_bytes(b.size(), sizeof(T));
      }
      for (uint32_t i = 2; i < context.input_count; ++i) {
        if (context.has_input(i)) bytes += padded_bytes(context.input(i).size(), sizeof(T));
      }
    }
    return bytes;
  }

 protected:
  struct Operands {
    int64_t a_row, a_column, b_row, b_column;
  };
  /// `before` gives the extras, knowing where the sums will be; `after` works on the sums.
  template <class Before, class After>
  void multiply(const Context& context, const Sizes& s, const Operands& at, const Before& before,
                const After& after) const {
    const Tensor& y = context.output(0);
    Carver carver(context.workspace);
    T* scratch = carver.take<T>(static_cast<int64_t>(gemm_scratch_bytes<T>(context) / sizeof(T)));
    T* packed = carver.take<T>(context.input(0).size());
    if constexpr (sizeof(T) == sizeof(float)) {
      if (is_half(y.dtype)) {
        T* sums = carver.take<T>(y.size());
        Extras<T> extras = before(carver, sums);
        if (!extras.unfinished) extras.halves = &y;
        if (const GemmIsa<T>* isa = by_words(y.dtype)) {
          multiply_words(context, s, at, *isa, {packed, sums, scratch}, extras);
        } else {
          multiply_widened(context, s, at, carver, {packed, sums, scratch}, extras);
        }
        if (!extras.unfinished) return;
        after(sums);
        return narrow(y.dtype, sums, y.size(), y.data);
      }
    }
    const GemmB<T> b = {context.input(1).as<T>(), at.b_row, at.b_column,
                        static_cast<const T*>(context.packed_input(1))};
    const Extras<T> extras = before(carver, y.mut<T>());
    const T* a = context.input(0).as<T>();
    StridedWork<T, GemmB<T>> work(s, s.k, a, b, y.mut<T>(), extras);
    if (b.packed != nullptr && at.a_column == 1 && extras.scale == T(1) && s.m > 1 && s.k > 0 &&
        gemm_packs_late(context, work)) {
      work.a_row = at.a_row;
    } else {
      work.packed_a = pack_a(context, s, a, at.a_row, at.a_column, extras.scale, packed);
    }
    gemm_run<T>(context, work, scratch);
    after(y.mut<T>());
  }

  /// Elements of an input beyond A and B.
  static const T* extra(const Tensor& tensor, Carver& carver) {
    return widened(tensor, is_half(tensor.dtype) ? carver.take<T>(tensor.size()) : nullptr);
  }
  void ask_for_packing(chipdock_dtype dtype, int64_t batch, int64_t k, int64_t n, bool transposed,
                       chipdock_prepack_info& info) const {
    const bool half = is_half(dtype);
    const HalfForm form = half_form(dtype, scaled_);
    info.size = static_cast<uint64_t>(batch) *
                (half ? half_packed_bytes(form, k, n)
                      : static_cast<uint64_t>(gemm_packed_b_size<T>(k, n)) * sizeof(T));
    // The same bytes read as B and as its transpose are two forms.
    const std::string layout = (half ? half_layout(form, dtype) : gemm_layout<T>("b")) + "_" +
                               std::to_string(k) + "x" + std::to_string(n) +
                               (transposed ? "t" : "");
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void pack(const Tensor& source, int64_t batch, int64_t k, int64_t n, bool transposed,
            void* target) const {
    const int64_t row = transposed ? 1 : n;
    const int64_t column = transposed ? k : 1;
    const HalfForm form = half_form(source.dtype, scaled_);
    for (int64_t i = 0; i < batch; ++i) {
      if (is_half(source.dtype)) {
        const uint64_t offset = static_cast<uint64_t>(i) * half_packed_bytes(form, k, n);
        half_pack_b(form, source.dtype, source.as<uint16_t>() + i * k * n, row, column, k, n,
                    static_cast<char*>(target) + offset);
      } else {
        gemm_pack_b(source.as<T>() + i * k * n, row, column, k, n,
                    static_cast<T*>(target) + i * gemm_packed_b_size<T>(k, n));
      }
    }
  }

 private:
  /// Parts of the workspace.
  struct Room {
    T* packed_a;
    T* sums;
    T* scratch;
  };
  /// NULL: operands of this type are widened.
  const GemmIsa<float>* by_words(chipdock_dtype dtype) const {
    return scaled_ ? nullptr : pair_isa(dtype);
  }
  void multiply_words(const Context& context, const Sizes& s, const Operands& at,
                      const GemmIsa<T>& isa, const Room& room, const Extras<T>& extras) const {
    const int64_t words = pair_words(s.k);
    const auto* a = context.input(0).as<uint16_t>();
    pack_blocks<T>(context, s.batch_a, s.m, words, [&](int64_t i, int64_t first, int64_t end) {
      pair_pack_a(a + i * s.m * s.k, at.a_row, at.a_column, s.m, s.k,
                  room.packed_a + i * s.m * words, first, end);
    });
    const PairB b = {context.input(1).as<uint16_t>(), at.b_row, at.b_column,
                     static_cast<const float*>(context.packed_input(1)), s.k};
    StridedWork<T, PairB> work(s, words, room.packed_a, b, room.sums, extras);
    work.isa = &isa;
    gemm_run<T>(context, work, room.scratch);
  }
  void multiply_widened(const Context& context, const Sizes& s, const Operands& at, Carver& carver,
                        const Room& room, const Extras<T>& extras) const {
    const T* wide = widened(context.input(0), carver.take<T>(context.input(0).size()));
    const T* a = pack_a(context, s, wide, at.a_row, at.a_column, extras.scale, room.packed_a);
    const void* packed = context.packed_input(1);
    const chipdock_dtype dtype = context.input(1).dtype;
    if (packed != nullptr && half_form(dtype, scaled_) == HalfForm::kHalves) {
      const HalfB b(dtype, packed, s.m);
      StridedWork<T, HalfB> work(s, s.k, a, b, room.sums, extras);
      work.isa = b.isa();
      return gemm_run<T>(context, work, room.scratch);
    }
    GemmB<T> b = {nullptr, at.b_row, at.b_column, static_cast<const T*>(packed)};
    if (packed == nullptr) {
      b.data = widened(context.input(1), carver.take<T>(context.input(1).size()));
    }
    gemm_run<T>(context, StridedWork<T, GemmB<T>>(s, s.k, a, b, room.sums, extras), room.scratch);
  }

  bool scaled_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_MATMUL_PRODUCT_HPP_
