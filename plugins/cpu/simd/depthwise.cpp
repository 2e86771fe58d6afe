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

/// kWidth elements, `kStride` apart; 0 means the stride of the argument.
template <int kWidth, int kStride>
typename Vector<kWidth>::Type gather(const float* from, int64_t stride) {
  using Loose = typename Vector<kWidth>::Loose;
  if constexpr (kStride == 1) return *reinterpret_cast<const Loose*>(from);
  if constexpr (kStride == 2) {
    typename Vector<kWidth>::Index even;
    for (int i = 0; i < kWidth; ++i) even[i] = 2 * i;
    const typename Vector<kWidth>::Type low = *reinterpret_cast<const Loose*>(from);
    const typename Vector<kWidth>::Type high = *reinterpret_cast<const Loose*>(from + kWidth);
    return __builtin_shuffle(low, high, even);
  }
  typename Vector<kWidth>::Type out;
  for (int i = 0; i < kWidth; ++i) out[i] = from[i * stride];
  return out;
}

/// kRows rows of kVectors vectors of output from (y, x) on; the last vector may be cut to `cols`.
template <int kWidth, int kStride, int kRows, int kVectors>
void block(const DepthwisePlane& p, int64_t y, int64_t x, int64_t cols) {
  using V = typename Vector<kWidth>::Type;
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = p.bias - V{};
  }
  const float* filter = p.filter;
  const int64_t row_step = p.stride_y * p.row;
  for (int64_t i = 0; i < p.kernel_y; ++i) {
    const float* line = p.plane + (y * p.stride_y + i * p.dilation_y) * p.row + x * p.stride_x;
    for (int64_t j = 0; j < p.kernel_x; ++j, line += p.dilation_x) {
      const V weight = *filter++ - V{};
      const float* from = line;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r, from += row_step) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sum[r][v] += weight * gather<kWidth, kStride>(from + v * kWidth * p.stride_x, p.stride_x);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* to = p.out + (y + r) * p.out_row + x;
    if (cols == kVectors * kWidth) {
      for (int v = 0; v < kVectors; ++v) {
        *reinterpret_cast<typename Vector<kWidth>::Loose*>(to + v * kWidth) = sum[r][v];
      }
    } else {
      std::memcpy(to, sum[r], static_cast<size_t>(cols) * sizeof(float));
    }
  }
}

using BlockFunction = void (*)(const DepthwisePlane&, int64_t, int64_t, int64_t);

template <int kWidth, int kStride, size_t... kSizes>
BlockFunction pick(int64_t rows, std::index_sequence<kSizes...>) {
  static constexpr BlockFunction kTable[] = {
      block<kWidth, kStride, static_cast<int>(kSizes) + 1, 1>...};
  return kTable[rows - 1];
}

/// One column of vectors, rows in blocks; a last block that would be short overlaps the one before.
template <int kWidth, int kStride>
void column(const DepthwisePlane& p, int64_t x) {
  const int64_t cols = p.width - x < kWidth ? p.width - x : kWidth;
  constexpr auto kSizes = std::make_index_sequence<kMostRows>();
  const int64_t rows = p.height < kMostRows ? p.height : kMostRows;
  const BlockFunction run = pick<kWidth, kStride>(rows, kSizes);
  int64_t y = 0;
  for (; y + rows <= p.height; y += rows) run(p, y, x, cols);
  if (y < p.height) run(p, p.height - rows, x, cols);
}

template <int kStride>
void plane(const DepthwisePlane& p) {
  int64_t x = 0;
  for (; x + 4 * kWidest <= p.width; x += 4 * kWidest) {
    int64_t y = 0;
    for (; y + 2 <= p.height; y += 2) block<kWidest, kStride, 2, 4>(p, y, x, 4 * kWidest);
    if (y < p.height) block<kWidest, kStride, 1, 4>(p, y, x, 4 * kWidest);
  }
  for (; p.width - x > kWidest / 2; x += kWidest) column<kWidest, kStride>(p, x);
  for (; x < p.width; x += kWidest / 2) column<kWidest / 2, kStride>(p, x);
}

}  // namespace

void depthwise_plane(const DepthwisePlane& x) {
  if (x.stride_x == 1) {
    plane<1>(x);
  } else if (x.stride_x == 2) {
    plane<2>(x);
  } else {
    plane<0>(x);
  }
}

int depthwise_vector_bytes() { return kWidest * static_cast<int>(sizeof(float)); }

void depthwise_pad(const DepthwisePad& x) {
  if (!x.zeroed) {
    std::memset(x.target, 0, static_cast<size_t>(x.rows * x.row) * sizeof(float));
  }
  const int64_t begin = x.first < 0 ? 0 : x.first;
  const int64_t end = x.first + x.rows < x.height ? x.first + x.rows : x.height;
  for (int64_t y = begin; y < end; ++y) {
    const float* from = x.plane + y * x.width;
    float* __restrict to = x.target + (y - x.first) * x.row + x.pad;
    for (int64_t i = 0; i < x.width; ++i) to[i] = from[i];
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
