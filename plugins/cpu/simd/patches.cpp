// SPDX-License-Identifier: Apache-2.0
// Filling panels of patches. Where a kernel position falls is worked out once for all channels.
#include "simd/patches.hpp"

#include <cstring>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int kMostRuns = 64;  // No panel is wider.

/// Columns of a panel that lie in one output row.
struct Run {
  int64_t z, y, x;
  int begin, count;
};

/// What one kernel position reads for one run: elements [low, high) exist, the others are padding.
struct Reach {
  int64_t offset;  ///< Of the first column's element from the channel's start; may lie outside.
  int begin, low, high, count;
};

int cut_runs(const SpaceFields& s, int64_t column, int cols, Run* runs) {
  int count = 0;
  for (int at = 0; at < cols;) {
    const int64_t position = column + at;
    const int64_t x = position % s.out[2];
    const int64_t line = position / s.out[2];
    const int length = static_cast<int>(cols - at < s.out[2] - x ? cols - at : s.out[2] - x);
    runs[count++] = {line / s.out[1], line % s.out[1], x, at, length};
    at += length;
  }
  return count;
}

Reach reach_of(const SpaceFields& s, const Run& run, int64_t tap) {
  const int64_t stride = s.stride[2];
  const int64_t z =
      run.z * s.stride[0] + tap / s.kernel[2] / s.kernel[1] * s.dilation[0] - s.pad[0];
  const int64_t y =
      run.y * s.stride[1] + tap / s.kernel[2] % s.kernel[1] * s.dilation[1] - s.pad[1];
  const int64_t x = run.x * stride + tap % s.kernel[2] * s.dilation[2] - s.pad[2];
  Reach reach = {(z * s.in[1] + y) * s.in[2] + x, run.begin, 0, 0, run.count};
  if (z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1]) return reach;
  const int64_t low = x < 0 ? (-x + stride - 1) / stride : 0;
  const int64_t high = x >= s.in[2] ? 0 : (s.in[2] - 1 - x) / stride + 1;
  reach.low = static_cast<int>(low < run.count ? low : run.count);
  reach.high = static_cast<int>(high < run.count ? high : run.count);
  if (reach.high < reach.low) reach.high = reach.low;
  return reach;
}

template <int kStride, class T>
void copy_run(const Reach& r, const T* channel, int64_t stride, T pad, T* __restrict row) {
  const T* from = channel + r.offset;
  T* to = row + r.begin;
  for (int i = 0; i < r.low; ++i) to[i] = pad;
  for (int i = r.low; i < r.high; ++i) to[i] = from[i * (kStride > 0 ? kStride : stride)];
  for (int i = r.high; i < r.count; ++i) to[i] = pad;
}

/// kWhole > 0: the one run fills a panel of that width and all its elements exist.
template <int kStride, int kWhole, class T>
void fill_tap(const Reach* reach, int runs, const T* channel, int64_t channel_step,
              int64_t channels, int64_t stride, int64_t row_step, T pad, T* __restrict row) {
  for (int64_t c = 0; c < channels; ++c, channel += channel_step, row += row_step) {
    if constexpr (kWhole > 0) {
      const T* from = channel + reach[0].offset;
      for (int i = 0; i < kWhole; ++i) row[i] = from[i * kStride];
    } else {
      for (int r = 0; r < runs; ++r) copy_run<kStride>(reach[r], channel, stride, pad, row);
    }
  }
}

#if defined(__AVX512F__)

/// What one run gives to one vector of a panel's row: lanes of `mask`, from `offset` elements after
/// the channel's start. Other lanes are not read.
struct Piece {
  int64_t offset;
  uint16_t mask;
};

/// A row of a panel as two vectors, each loaded from the runs that touch it and stored once: rows of
/// an image seldom end where panels do.
template <class T>
class MaskedRow {
 public:
  MaskedRow(const Reach* reach, int runs) {
    for (int v = 0; v < 2; ++v) {
      for (int r = 0; r < runs; ++r) add(reach[r], v);
    }
  }
  void fill(const T* channel, int64_t channel_step, int64_t channels, int64_t row_step, T pad,
            T* row) const {
    for (int64_t c = 0; c < channels; ++c, channel += channel_step, row += row_step) {
      for (int v = 0; v < 2; ++v) _mm512_storeu_si512(row + v * kStep, loaded(v, channel, pad));
    }
  }

 private:
  static constexpr int kStep = 64 / static_cast<int>(sizeof(T));

  void add(const Reach& r, int v) {
    const int low = r.begin + r.low - v * kStep;
    const int high = r.begin + r.high - v * kStep;
    const int first = low < 0 ? 0 : low;
    const int last = high > kStep ? kStep : high;
    if (first >= last) return;
    const uint32_t mask = ((1u << last) - 1) & ~((1u << first) - 1);
    pieces_[v][count_[v]++] = {r.offset - r.begin + v * kStep, static_cast<uint16_t>(mask)};
  }
  __m512i loaded(int v, const T* channel, T pad) const {
    __m512i all;
    if constexpr (sizeof(T) == sizeof(double)) {
      int64_t bits;
      std::memcpy(&bits, &pad, sizeof(bits));
      all = _mm512_set1_epi64(bits);
      for (int i = 0; i < count_[v]; ++i) {
        const Piece& piece = pieces_[v][i];
        all =
            _mm512_mask_loadu_epi64(all, static_cast<__mmask8>(piece.mask), channel + piece.offset);
      }
    } else {
      int32_t bits;
      std::memcpy(&bits, &pad, sizeof(bits));
      all = _mm512_set1_epi32(bits);
      for (int i = 0; i < count_[v]; ++i) {
        const Piece& piece = pieces_[v][i];
        all = _mm512_mask_loadu_epi32(all, piece.mask, channel + piece.offset);
      }
    }
    return all;
  }

  Piece pieces_[2][kStep];
  int count_[2] = {};
};

#endif

template <int kWidth, class T>
void fill(const SpaceFields& s, const PatchPanel<T>& p) {
  Run runs[kMostRuns];
  Reach reach[kMostRuns];
  const int count = cut_runs(s, p.column, p.cols, runs);
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t size = s.in[0] * s.in[1] * s.in[2];
  const int64_t stride = s.stride[2];
  if (p.cols < p.width) {
    std::memset(p.target, 0, static_cast<size_t>((p.k_end - p.k_begin) * p.width) * sizeof(T));
  }
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t first = (p.k_begin - tap + taps - 1) / taps;  // Channels with this tap in range.
    const int64_t end = (p.k_end - tap + taps - 1) / taps;
    if (first >= end) continue;
    bool whole = count == 1 && p.cols == kWidth;
    for (int r = 0; r < count; ++r) {
      reach[r] = reach_of(s, runs[r], tap);
      whole = whole && reach[r].low == 0 && reach[r].high == kWidth;
    }
    const T* channel = p.image + first * size;
    T* row = p.target + (first * taps + tap - p.k_begin) * p.width;
    const int64_t step = taps * p.width;
    const int64_t channels = end - first;
#if defined(__AVX512F__)
    if (stride == 1 && !whole && (p.cols == p.width || p.pad == T(0))) {
      MaskedRow<T>(reach, count).fill(channel, size, channels, step, p.pad, row);
      continue;
    }
#endif
    if (stride == 1) {
      (whole ? fill_tap<1, kWidth, T> : fill_tap<1, 0, T>)(reach, count, channel, size, channels,
                                                           stride, step, p.pad, row);
    } else if (stride == 2) {
      (whole ? fill_tap<2, kWidth, T> : fill_tap<2, 0, T>)(reach, count, channel, size, channels,
                                                           stride, step, p.pad, row);
    } else {
      fill_tap<0, 0, T>(reach, count, channel, size, channels, stride, step, p.pad, row);
    }
  }
}

constexpr int kPanel = 2 * kLanes;  // As wide as the register tile of simd/gemm.cpp.

}  // namespace

void fill_patches_f32(const SpaceFields& s, const PatchPanel<float>& panel) {
  fill<kPanel>(s, panel);
}
void fill_patches_f64(const SpaceFields& s, const PatchPanel<double>& panel) {
  fill<kPanel / 2>(s, panel);
}
void fill_patches_i32(const SpaceFields& s, const PatchPanel<int32_t>& panel) {
  fill<kPanel>(s, panel);
}
int patch_panel_bytes() { return kPanel * static_cast<int>(sizeof(float)); }

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
