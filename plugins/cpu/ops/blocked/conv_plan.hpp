// SPDX-License-Identifier: Apache-2.0
// How a convolution over blocks of channels is cut: into images and groups, bands of output, and
// runs of output blocks. A depthwise convolution is one with as many groups as there are blocks.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_BLOCKED_CONV_PLAN_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_BLOCKED_CONV_PLAN_HPP_

#include <algorithm>

#include "ops/window.hpp"

namespace chipdock::plugin::cpu {

/// What the filters say, that is all that does not depend on the image. Extents are of one group.
struct ConvFilters {
  int64_t block = 0;   ///< Channels of a block.
  int64_t inner = 0;   ///< Floats of an input pixel: a block, or 1 where the input is plain.
  int64_t groups = 1;  ///< Depthwise: blocks.
  int64_t in_channels = 0;
  int64_t in_blocks = 0;
  int64_t out_blocks = 0;
  int64_t taps = 0;
  bool depthwise = false;

  /// Floats of the packed filters: of one output block, and of all.
  int64_t per_block() const { return (depthwise ? 1 : in_channels) * taps * block; }
  int64_t total() const { return groups * out_blocks * per_block(); }
};

/// One call, for `threads` threads.
struct ConvPlan {
  ConvPlan(const ConvFilters& f, const Space& space, int64_t batch, int64_t threads)
      : s(space), images(batch * f.groups), pairs((f.out_blocks + 1) / 2) {
    if (s.in[2] == 1) s.merge_flat_width();
    if (s.pointwise()) {
      s.in[2] *= s.in[1], s.out[2] *= s.out[1];
      s.in[1] = s.out[1] = 1;
    }
    along_width = s.out[1] == 1;
    bool border = false;
    for (int i = 1; i < 3; ++i) {
      border |= s.pad[i] != 0 || (s.out[i] - 1) * s.stride[i] + s.span(i) > s.in[i];
    }
    // Depthwise windows may leave the image, which costs most where it is narrow.
    copied = f.depthwise ? border && s.out[2] < 28 : border || s.stride[2] != 1;
    gather = f.depthwise ? 1 : s.stride[2];
    skips_rows = !f.depthwise && s.kernel[1] == 1;
    cut(f, threads);
    lay_out(f);
  }

  int64_t positions() const { return along_width ? s.out[2] : s.out[1]; }
  int64_t tasks() const { return images * bands * runs; }
  /// Rows that windows over `rows` output rows reach over.
  int64_t rows_in(int64_t rows) const {
    return skips_rows ? rows : (rows - 1) * s.stride[1] + s.span(1);
  }
  int64_t row_gap() const { return skips_rows ? s.stride[1] : 1; }
  /// Floats that a thread needs for its copy of a band's input.
  int64_t scratch(const ConvFilters& f) const { return copied ? f.in_blocks * plane : 0; }

  /// Where each position of a window starts, from the first element of its band's input.
  void fill_steps(const ConvFilters& f, int64_t* steps) const {
    for (int64_t x = 0; x < s.kernel[2]; ++x) {
      const int64_t column = x * s.dilation[2];
      const int64_t at = copied ? column % gather * phase_width + column / gather : column;
      for (int64_t y = 0; y < s.kernel[1]; ++y) {
        steps[y * s.kernel[2] + x] = y * s.dilation[1] * pitch + at * f.inner;
      }
    }
    for (int64_t i = f.taps; i < f.in_blocks * f.taps; ++i) steps[i] = steps[i - f.taps] + plane;
  }

  Space s;
  int64_t images;      ///< Of the batch, times groups.
  int64_t pairs;       ///< Of output blocks.
  bool along_width;    ///< Bands are columns of the one row, else rows.
  bool copied;         ///< The input of a band is copied, with its border; else used in place.
  bool skips_rows;     ///< Filters of one row: a copy leaves out the rows between.
  int64_t gather;      ///< Columns that far apart become neighbours in a copy.
  int64_t bands = 1;   ///< Of an image.
  int64_t runs = 1;    ///< Of output blocks.
  int64_t phases = 1;  ///< See BlockedPad.
  int64_t phase_width = 0;
  int64_t pitch = 0;  ///< Floats of an input row,
  int64_t plane = 0;  ///< and of an input block.
  int64_t x_row = 0;  ///< Floats from one output row's input to the next one's.

 private:
  /// Bands whose input fits the second-level cache, then parts enough for all threads. Where filters
  /// are larger than images, each thread has filters of its own first.
  void cut(const ConvFilters& f, int64_t threads) {
    const int64_t room = int64_t{1} << (f.depthwise ? 15 : 16);  // Floats.
    const int64_t count = std::max<int64_t>(positions(), 1);
    const int64_t line =
        f.in_blocks * f.inner *
        (along_width ? rows_in(1) * s.stride[2] : s.in[2] + s.pad[2] + s.pad_end[2]);
    const int64_t inside = room / std::max<int64_t>(line, 1);
    const int64_t most = along_width ? std::max<int64_t>(inside, 56)
                                     : std::max<int64_t>((inside - s.span(1)) / s.stride[1] + 1, 4);
    bands = (count + most - 1) / most;
    const int64_t sums =
        images * f.out_blocks * s.out[1] * s.out[2] * f.taps * (f.depthwise ? 1 : f.in_channels);
    if (threads <= 1 || sums < (int64_t{1} << 15)) return;  // A few microseconds.
    const int64_t wanted = (copied ? 2 : 4) * threads;      // Each part has a copy of its own.
    const auto more = [&](int64_t& parts, int64_t limit) {
      const int64_t others = std::max<int64_t>(tasks() / parts, 1);
      parts = std::clamp((wanted + others - 1) / others, parts, std::max(limit, parts));
    };
    const bool filters_first = f.total() > images * f.in_blocks * f.inner * s.in[1] * s.in[2];
    if (filters_first) more(runs, pairs);
    more(bands, along_width ? (count + 13) / 14 : count);
    if (!filters_first) more(runs, pairs);
  }

  void lay_out(const ConvFilters& f) {
    if (!copied) {
      pitch = s.in[2] * f.inner;
      plane = s.in[1] * pitch;
      x_row = s.stride[1] * pitch;
      return;
    }
    const int64_t most = (positions() + bands - 1) / bands;
    const int64_t cols = along_width ? most : s.out[2];
    phases = std::min(gather, s.span(2));
    phase_width = ((cols - 1) * s.stride[2] + s.span(2) - 1) / gather + 1;
    pitch = phases * phase_width * f.inner;
    plane = rows_in(along_width ? 1 : most) * pitch;
    x_row = (skips_rows ? 1 : s.stride[1]) * pitch;
  }
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_BLOCKED_CONV_PLAN_HPP_
