// SPDX-License-Identifier: Apache-2.0
// Running sums and products. float32 and the half types accumulate in double and are rounded at each
// element. A row of sums is added up within a vector; products, and sums of float64, keep the order
// of the elements, as another one could overflow, and several rows run side by side instead.
#include "simd/cumulative.hpp"

#include <algorithm>
#include <type_traits>

#include "simd/convert.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

/// `kReordered`: a row of sums may be added in any order.
template <class Stored, class Accumulated, bool kReordered>
struct Kind {
  using T = Stored;
  using Sum = Accumulated;
  static constexpr bool kVectors = kReordered;
};

template <class S>
S combine(S a, S b, bool product) {
  return product ? a * b : a + b;
}

template <class K, bool kProduct, bool kExclusive>
void columns_of(const typename K::T* x, typename K::T* y, int64_t length, int64_t stride, int64_t n,
                typename K::Sum* sums) {
  using Sum = typename K::Sum;
  for (int64_t k = 0; k < length; ++k) {
    const typename K::T* from = x + k * stride;
    typename K::T* to = y + k * stride;
    // In place, an element is read before it is written and never again.
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const Sum next = combine(sums[j], static_cast<Sum>(from[j]), kProduct);
      to[j] = static_cast<typename K::T>(kExclusive ? sums[j] : next);
      sums[j] = next;
    }
  }
}

/// `stride` is negative for the reverse. `sums` holds what came before, and then all.
template <class K>
void columns_by(const typename K::T* x, typename K::T* y, int64_t length, int64_t stride, int64_t n,
                CumulativeRule rule, typename K::Sum* sums) {
  if (rule.product) {
    (rule.exclusive ? columns_of<K, true, true> : columns_of<K, true, false>)(x, y, length, stride,
                                                                              n, sums);
  } else {
    (rule.exclusive ? columns_of<K, false, true> : columns_of<K, false, false>)(x, y, length,
                                                                                stride, n, sums);
  }
}

/// Rows side by side, `pitch` elements apart: their chains of additions overlap.
template <class K, int kRows>
void side_by_side(const typename K::T* x, typename K::T* y, int64_t length, int64_t pitch,
                  CumulativeRule rule, typename K::Sum* sums) {
  using Sum = typename K::Sum;
  Sum running[kRows];
  for (int r = 0; r < kRows; ++r) running[r] = sums[r];
  for (int64_t k = 0; k < length; ++k) {
    const int64_t at = rule.reverse ? length - 1 - k : k;
    for (int r = 0; r < kRows; ++r) {
      const Sum next = combine(running[r], static_cast<Sum>(x[r * pitch + at]), rule.product);
      y[r * pitch + at] = static_cast<typename K::T>(rule.exclusive ? running[r] : next);
      running[r] = next;
    }
  }
  for (int r = 0; r < kRows; ++r) sums[r] = running[r];
}

template <class K>
struct InVector {
  using T = typename K::T;
  using Sum = typename K::Sum;
  static constexpr int kWidth = kLanes * 4 / sizeof(Sum);
  typedef Sum V __attribute__((vector_size(kLanes * 4)));
  typedef T Narrow __attribute__((vector_size(kWidth * sizeof(T))));
  using Index = std::conditional_t<sizeof(Sum) == 8, int64_t, int32_t>;
  typedef Index M __attribute__((vector_size(kLanes * 4)));

  /// v moved by kBy lanes, those that become free from `fill`.
  template <int kBy>
  static V moved(V v, V fill, bool reverse) {
    M forward, backward;
    for (int i = 0; i < kWidth; ++i) {
      forward[i] = i < kBy ? kWidth : i - kBy;
      backward[i] = i + kBy < kWidth ? i + kBy : kWidth;
    }
    return reverse ? __builtin_shuffle(v, fill, backward) : __builtin_shuffle(v, fill, forward);
  }

  template <bool kReverse>
  static Sum row(const T* x, T* y, int64_t length, bool exclusive, Sum before) {
    V carry = before - V{};  // x - 0 is x, also of a zero, and costs nothing.
    const int64_t whole = length / kWidth * kWidth;
    for (int64_t k = 0; k < whole; k += kWidth) {
      const int64_t at = kReverse ? length - kWidth - k : k;
      Narrow raw;
      std::memcpy(&raw, x + at, sizeof(raw));
      V v = __builtin_convertvector(raw, V);
      v = v + moved<1>(v, V{}, kReverse);
      if constexpr (kWidth > 2) v = v + moved<2>(v, V{}, kReverse);
      if constexpr (kWidth > 4) v = v + moved<4>(v, V{}, kReverse);
      if constexpr (kWidth > 8) v = v + moved<8>(v, V{}, kReverse);
      v = v + carry;
      const Narrow out =
          __builtin_convertvector(exclusive ? moved<1>(v, carry, kReverse) : v, Narrow);
      std::memcpy(y + at, &out, sizeof(out));
      carry = v[kReverse ? 0 : kWidth - 1] - V{};
    }
    Sum sum = carry[0];
    for (int64_t k = whole; k < length; ++k) {
      const int64_t at = kReverse ? length - 1 - k : k;
      const Sum next = sum + static_cast<Sum>(x[at]);
      y[at] = static_cast<T>(exclusive ? sum : next);
      sum = next;
    }
    return sum;
  }
};

/// One row, or the part of it that follows what `sum` holds.
template <class K>
void row_by(const typename K::T* x, typename K::T* y, int64_t length, CumulativeRule rule,
            typename K::Sum* sum) {
  if constexpr (K::kVectors) {
    if (!rule.product) {
      const auto row =
          rule.reverse ? InVector<K>::template row<true> : InVector<K>::template row<false>;
      *sum = row(x, y, length, rule.exclusive, *sum);
      return;
    }
  }
  side_by_side<K, 1>(x, y, length, 0, rule, sum);
}

template <class K>
void rows(const void* from, void* to, int64_t count, int64_t length, CumulativeRule rule) {
  const auto* x = static_cast<const typename K::T*>(from);
  auto* y = static_cast<typename K::T*>(to);
  constexpr int kRows = 4;
  int64_t row = 0;
  if (!K::kVectors || rule.product) {
    for (; row + kRows <= count; row += kRows) {
      typename K::Sum sums[kRows];
      std::fill_n(sums, kRows, rule.product ? 1 : 0);
      side_by_side<K, kRows>(x + row * length, y + row * length, length, length, rule, sums);
    }
  }
  for (; row < count; ++row) {
    typename K::Sum sum = rule.product ? 1 : 0;
    row_by<K>(x + row * length, y + row * length, length, rule, &sum);
  }
}

template <class K>
void columns(const void* from, void* to, int64_t length, int64_t stride, int64_t n,
             CumulativeRule rule) {
  typename K::Sum sums[kCumulativeColumns];
  std::fill_n(sums, n, rule.product ? 1 : 0);
  const int64_t first = rule.reverse ? (length - 1) * stride : 0;
  columns_by<K>(static_cast<const typename K::T*>(from) + first,
                static_cast<typename K::T*>(to) + first, length, rule.reverse ? -stride : stride, n,
                rule, sums);
}

using Singles = Kind<float, double, true>;

template <void (*Widen)(const uint16_t*, float*, int64_t),
          void (*Narrow)(const float*, uint16_t*, int64_t)>
struct Halves {
  static constexpr int64_t kBlock = 512;

  static void rows(const void* from, void* to, int64_t count, int64_t length, CumulativeRule rule) {
    float block[kBlock];
    for (int64_t row = 0; row < count; ++row) {
      double sum = rule.product ? 1 : 0;
      for (int64_t k = 0; k < length; k += kBlock) {
        const int64_t n = std::min(kBlock, length - k);
        const int64_t at = row * length + (rule.reverse ? length - k - n : k);
        Widen(static_cast<const uint16_t*>(from) + at, block, n);
        row_by<Singles>(block, block, n, rule, &sum);
        Narrow(block, static_cast<uint16_t*>(to) + at, n);
      }
    }
  }
  static void columns(const void* from, void* to, int64_t length, int64_t stride, int64_t n,
                      CumulativeRule rule) {
    float line[kCumulativeColumns];
    double sums[kCumulativeColumns];
    std::fill_n(sums, n, rule.product ? 1 : 0);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = (rule.reverse ? length - 1 - k : k) * stride;
      Widen(static_cast<const uint16_t*>(from) + at, line, n);
      columns_by<Singles>(line, line, 1, 0, n, rule, sums);
      Narrow(line, static_cast<uint16_t*>(to) + at, n);
    }
  }
};

}  // namespace

CumulativeFunctions cumulative_functions(CumulativeType type) {
  using Doubles = Kind<double, double, false>;
  using Words = Kind<uint32_t, uint32_t, true>;
  using Longs = Kind<uint64_t, uint64_t, true>;
  switch (type) {
    case CumulativeType::kF32:
      return {rows<Singles>, columns<Singles>};
    case CumulativeType::kF64:
      return {rows<Doubles>, columns<Doubles>};
    case CumulativeType::kF16:
      return {Halves<widen_f16, narrow_f16>::rows, Halves<widen_f16, narrow_f16>::columns};
    case CumulativeType::kBf16:
      return {Halves<widen_bf16, narrow_bf16>::rows, Halves<widen_bf16, narrow_bf16>::columns};
    case CumulativeType::k32:
      return {rows<Words>, columns<Words>};
    default:
      return {rows<Longs>, columns<Longs>};
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
