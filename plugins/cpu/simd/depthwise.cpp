// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Depthwise convolution of a padded plane, vectorised over output columns; see depthwise.hpp.
#include "simd/depthwise.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int kWidest = kLanes;
// Rows that are summed side by side, so that one sum's latency hides behind the others.
constexpr int kMostRows = 8;

template <int kWidth>
struct Vector {
  typedef float Type __attribute__((vector_size(kWidth * 4)));
  typedef int32_t Index __attribute__((vector_size(kWidth * 4)));
  typedef float Loose __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));
};
template <int kWidth>
typename Vector<kWidth>::Type load_wide(const float* from) {
  return *reinterpret_cast<const typename Vector<kWidth>::Loose*>(from);
}
template <int kWidth>
void store_wide(float* to, typename Vector<kWidth>::Type value) {
  *reinterpret_cast<typename Vector<kWidth>::Loose*>(to) = value;
}

/// A plane with what follows from it.
struct Plane : DepthwisePlane {
  int64_t step = stride_y * row;  ///< Elements from the input of an output row to that of the next.
  /// Where the inputs of column j of the filter begin, beside those of output column 0.
  int64_t tap(int64_t j) const {
    const int64_t at = j * dilation_x;
    return depthwise_splits(stride_x) ? at % 2 * (row / 2) + at / 2 : at;
  }
};

/// kRows sums of output rows from (y, x) on are written, `cols` columns of each. Inlined, since the
/// sums are in registers.
template <int kWidth, int kRows>
[[gnu::always_inline]] inline void finish(const Plane& p, int64_t y, int64_t x, int64_t cols,
                                          typename Vector<kWidth>::Type (&sum)[kRows]) {
  using V = typename Vector<kWidth>::Type;
  if (p.clamp != nullptr) {
    const V low = p.clamp[0] - V{};
    const V high = p.clamp[1] - V{};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V raised = low > sum[r] ? low : sum[r];
      sum[r] = high < raised ? high : raised;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float* to = p.out + (y + r) * p.width + x;
    // What a whole vector writes too much, the rows after it put right if they are all of this
    // block and begin at column 0.
    const bool mended = x == 0 && (kRows - 1 - r) * p.width >= kWidth - cols;
    if (cols == kWidth || mended) {
      store_wide<kWidth>(to, sum[r]);
    } else {
      const V value = sum[r];
      std::memcpy(to, &value, static_cast<size_t>(cols) * sizeof(float));
    }
  }
}

/// kRows rows of a vector of output from (y, x) on; the vector may be cut to `cols`. Any filter and
/// stride; kApart: inputs of neighbouring outputs are stride_x elements apart.
template <int kWidth, bool kApart>
struct AnyFilter {
  template <int kRows>
  static void run(const Plane& p, int64_t y, int64_t x, int64_t cols) {
    using V = typename Vector<kWidth>::Type;
    V sum[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] = p.bias - V{};
    const float* filter = p.filter;
    const float* corner = p.plane + y * p.step + (kApart ? x * p.stride_x : x);
    for (int64_t i = 0; i < p.kernel_y; ++i) {
      for (int64_t j = 0; j < p.kernel_x; ++j) {
        const V weight = *filter++ - V{};
        const float* from = corner + i * p.dilation_y * p.row + p.tap(j);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r, from += p.step) {
          V value;
          if constexpr (kApart) {
            for (int lane = 0; lane < kWidth; ++lane) value[lane] = from[lane * p.stride_x];
          } else {
            value = load_wide<kWidth>(from);
          }
          sum[r] += weight * value;
        }
      }
    }
    finish<kWidth, kRows>(p, y, x, cols, sum);
  }
};

/// The same for filters of kTaps rows, kStep input rows apart from output row to output row: each
/// vector of input is read once for all the sums it goes into.
template <int kWidth, int kTaps, int kStep>
struct TallFilter {
  template <int kRows>
  static void run(const Plane& p, int64_t y, int64_t x, int64_t cols) {
    using V = typename Vector<kWidth>::Type;
    constexpr int kInputRows = (kRows - 1) * kStep + kTaps;
    V sum[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] = p.bias - V{};
    const float* corner = p.plane + y * p.step + x;
    for (int64_t j = 0; j < p.kernel_x; ++j) {
      V weight[kTaps];
#pragma GCC unroll 8
      for (int i = 0; i < kTaps; ++i) weight[i] = p.filter[i * p.kernel_x + j] - V{};
      const float* from = corner + p.tap(j);
#pragma GCC unroll 32
      for (int t = 0; t < kInputRows; ++t, from += p.row) {
        const V value = load_wide<kWidth>(from);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const int i = t - r * kStep;
          if (i >= 0 && i < kTaps) sum[r] += weight[i] * value;
        }
      }
    }
    finish<kWidth, kRows>(p, y, x, cols, sum);
  }
};

using BlockFunction = void (*)(const Plane&, int64_t, int64_t, int64_t);

template <class Filter, size_t... kSizes>
BlockFunction of_rows(int64_t rows, std::index_sequence<kSizes...>) {
  static constexpr BlockFunction kTable[] = {Filter::template run<static_cast<int>(kSizes) + 1>...};
  return kTable[rows - 1];
}

/// The function for blocks of `rows` rows.
template <int kWidth>
BlockFunction pick(const Plane& p, int64_t rows) {
  constexpr auto kSizes = std::make_index_sequence<kMostRows>();
  if (p.stride_x > 2) return of_rows<AnyFilter<kWidth, true>>(rows, kSizes);
  const bool dense = p.dilation_y == 1 && (p.step == p.row || p.step == 2 * p.row);
  const bool near = p.step == p.row;
  if (dense && p.kernel_y == 3) {
    return near ? of_rows<TallFilter<kWidth, 3, 1>>(rows, kSizes)
                : of_rows<TallFilter<kWidth, 3, 2>>(rows, kSizes);
  }
  if (dense && p.kernel_y == 5) {
    return near ? of_rows<TallFilter<kWidth, 5, 1>>(rows, kSizes)
                : of_rows<TallFilter<kWidth, 5, 2>>(rows, kSizes);
  }
  if (dense && near && p.kernel_y == 7) return of_rows<TallFilter<kWidth, 7, 1>>(rows, kSizes);
  return of_rows<AnyFilter<kWidth, false>>(rows, kSizes);
}

/// Blocks of rows one after the other, so that their input stays in the first-level cache; a last
/// block that would be short overlaps the one before. The last columns go in half vectors if that is
/// less work.
void all_blocks(const Plane& p) {
  const int64_t count = (p.height + kMostRows - 1) / kMostRows;
  if (count == 0) return;
  const int64_t rows = count == 1 ? p.height : (p.height + count - 1) / count;
  const int64_t rest = p.width % kWidest;
  const int64_t whole = rest > kWidest / 2 ? p.width : p.width - rest;
  const BlockFunction wide = whole > 0 ? pick<kWidest>(p, rows) : nullptr;
  const BlockFunction half = whole < p.width ? pick<kWidest / 2>(p, rows) : nullptr;
  for (int64_t next = 0; next < p.height; next += rows) {
    const int64_t y = next + rows <= p.height ? next : p.height - rows;
    int64_t x = 0;
    for (; x < whole; x += kWidest) wide(p, y, x, p.width - x < kWidest ? p.width - x : kWidest);
    if (x < p.width) half(p, y, x, p.width - x);
  }
}

/// Rows copied in vectors, of which the last may overlap the one before; width >= kWidth.
template <int kWidth>
void copy_rows(const DepthwisePad& x, int64_t begin, int64_t end) {
  for (int64_t y = begin; y < end; ++y) {
    const float* from = x.plane + y * x.width;
    float* to = x.target + (y - x.first) * x.row + x.pad;
    for (int64_t i = 0; i < x.width - kWidth; i += kWidth) {
      store_wide<kWidth>(to + i, load_wide<kWidth>(from + i));
    }
    store_wide<kWidth>(to + x.width - kWidth, load_wide<kWidth>(from + x.width - kWidth));
  }
}

/// Columns of even and of odd numbers apart, in the two halves of a row; width >= 2 * kWidth.
template <int kWidth>
void split_rows(const DepthwisePad& x, int64_t begin, int64_t end) {
  typename Vector<kWidth>::Index even;
  for (int i = 0; i < kWidth; ++i) even[i] = 2 * i;
  const typename Vector<kWidth>::Index odd = even + 1;
  const int64_t half = x.row / 2;
  for (int64_t y = begin; y < end; ++y) {
    const float* from = x.plane + y * x.width;
    float* row = x.target + (y - x.first) * x.row;
    float* first = row + x.pad % 2 * half + x.pad / 2;  // Takes elements 0, 2, 4…
    float* second = row + (x.pad + 1) % 2 * half + (x.pad + 1) / 2;
    const auto pair = [&](int64_t i) {
      const auto low = load_wide<kWidth>(from + i);
      const auto high = load_wide<kWidth>(from + i + kWidth);
      store_wide<kWidth>(first + i / 2, __builtin_shuffle(low, high, even));
      store_wide<kWidth>(second + i / 2, __builtin_shuffle(low, high, odd));
    };
    const int64_t last = (x.width - 2 * kWidth) / 2 * 2;
    for (int64_t i = 0; i < last; i += 2 * kWidth) pair(i);
    pair(last);
    if (x.width % 2 != 0) first[x.width / 2] = from[x.width - 1];
  }
}

/// Any width.
void rows_by_element(const DepthwisePad& x, int64_t begin, int64_t end) {
  const int64_t half = x.row / 2;
  for (int64_t y = begin; y < end; ++y) {
    float* row = x.target + (y - x.first) * x.row;
    for (int64_t i = 0; i < x.width; ++i) {
      const int64_t c = x.pad + i;
      row[x.split ? c % 2 * half + c / 2 : c] = x.plane[y * x.width + i];
    }
  }
}

}  // namespace

void depthwise_plane(const DepthwisePlane& x) {
  Plane p = {x};
  if (p.height != 1 || p.width < 2 * kWidest) return all_blocks(p);
  // One long row is done as rows of one vector each, side by side.
  Plane rows = p;
  rows.height = p.width / kWidest;
  rows.width = kWidest;
  const int64_t apart = p.stride_x > 2 ? p.stride_x : 1;
  rows.step = kWidest * apart;
  all_blocks(rows);
  const int64_t done = rows.height * kWidest;
  p.plane += done * apart;
  p.out += done;
  p.width -= done;
  if (p.width > 0) all_blocks(p);
}

int depthwise_vector_bytes() { return kWidest * static_cast<int>(sizeof(float)); }

void depthwise_pad(const DepthwisePad& x) {
  if (!x.zeroed) {
    std::memset(x.target, 0, static_cast<size_t>(x.rows * x.row) * sizeof(float));
  }
  const int64_t begin = x.first < 0 ? 0 : x.first;
  const int64_t end = x.first + x.rows < x.height ? x.first + x.rows : x.height;
  using Copy = void (*)(const DepthwisePad&, int64_t, int64_t);
  constexpr int kSmall = kLanes > 8 ? kLanes / 4 : kLanes / 2;
  constexpr Copy kCopies[] = {copy_rows<kLanes>, copy_rows<kLanes / 2>, copy_rows<kSmall>};
  constexpr Copy kSplits[] = {split_rows<kLanes>, split_rows<kLanes / 2>, split_rows<kSmall>};
  const int64_t unit = x.split ? x.width / 2 : x.width;
  const int size = unit >= kLanes ? 0 : unit >= kLanes / 2 ? 1 : 2;
  const Copy copy = unit < kSmall ? rows_by_element : x.split ? kSplits[size] : kCopies[size];
  copy(x, begin, end);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
