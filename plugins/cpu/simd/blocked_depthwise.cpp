// SPDX-License-Identifier: Apache-2.0
// build: fp-contract=fast
// Convolution where each channel has its own filter; see blocked_conv.hpp. Each sum is one chain of
// fused multiply-adds in the order of the window, so a result does not depend on how work was cut.
#include <cstddef>
#include <utility>

#include "simd/blocked_tile.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int kPixels = kLanes == 16 ? 14 : 12;

/// The window of one tile: what of it lies in the image.
struct Taps {
  const float* x;        ///< The first tap of the first pixel.
  const float* filters;  ///< Likewise.
  int64_t rows, cols;
  int64_t x_row, x_col;  ///< Floats from tap to tap.
  int64_t filter_row;
};

/// Pixels kPixelStep (0: `pixel_step`) floats apart in x, and `y_step` in y.
template <int kPixelStep, int kTile>
void tile(const BlockedBand& band, const Taps& taps, int64_t pixel_step, int64_t at,
          int64_t y_step) {
  const int64_t step = kPixelStep != 0 ? kPixelStep : pixel_step;
  Vf sum[kTile];
  begin(band, at, y_step, 0, sum);
  for (int64_t i = 0; i < taps.rows; ++i) {
    const float* from = taps.x + i * taps.x_row;
    const float* filters = taps.filters + i * taps.filter_row;
    for (int64_t j = 0; j < taps.cols; ++j) {
      const Vf weights = load(filters);
      CHIPDOCK_UNROLLED for (int r = 0; r < kTile; ++r) sum[r] += load(from + r * step) * weights;
      from += taps.x_col;
      filters += kLanes;
    }
  }
  end<Vi>(band, at, y_step, 0, sum);
}

using Tile = void (*)(const BlockedBand& band, const Taps& taps, int64_t pixel_step, int64_t at,
                      int64_t y_step);

template <int kPixelStep, size_t... kSizes>
Tile pick(int64_t pixels, std::index_sequence<kSizes...>) {
  static constexpr Tile kTiles[] = {tile<kPixelStep, static_cast<int>(kSizes) + 1>...};
  return kTiles[pixels - 1];
}

/// `count` pixels in a line, cut into equal tiles.
template <int kPixelStep>
void line(const BlockedBand& band, Taps taps, int64_t count, int64_t pixel_step, int64_t at,
          int64_t y_step) {
  if (count <= 0) return;
  const int64_t tiles = (count + kPixels - 1) / kPixels;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t pixels = count / tiles + (i < count % tiles ? 1 : 0);
    pick<kPixelStep>(pixels, std::make_index_sequence<kPixels>())(band, taps, pixel_step, at,
                                                                  y_step);
    taps.x += pixels * (kPixelStep != 0 ? kPixelStep : pixel_step);
    at += pixels * y_step;
  }
}

int64_t bounded(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/// Of one axis: which taps of a window that starts from `from` lie in the image, and which windows
/// do so whole.
struct Axis {
  const DepthwiseImage& image;
  int axis;
  int64_t first(int64_t from) const {
    const int64_t step = image.dilation[axis];
    return from < 0 ? bounded((-from + step - 1) / step, 0, image.kernel[axis]) : 0;
  }
  int64_t last(int64_t from) const {
    const int64_t left = image.in[axis] - from;
    const int64_t step = image.dilation[axis];
    return left <= 0 ? 0 : bounded((left - 1) / step + 1, 0, image.kernel[axis]);
  }
  int64_t start_of(int64_t out) const { return out * image.stride[axis] - image.pad[axis]; }
  int64_t whole_begin() const {
    return (image.pad[axis] + image.stride[axis] - 1) / image.stride[axis];
  }
  int64_t whole_end() const {
    const int64_t span = (image.kernel[axis] - 1) * image.dilation[axis] + 1;
    const int64_t room = image.in[axis] + image.pad[axis] - span;
    return room < 0 ? 0 : room / image.stride[axis] + 1;
  }
};

class Image {
 public:
  explicit Image(const DepthwiseImage& image)
      : image_(image), down_{image, 0}, across_{image, 1}, x_line_(image.in[1] * kLanes) {}

  void run() const {
    const int64_t cols = image_.cols;
    const int64_t left = bounded(across_.whole_begin(), 0, cols);
    const int64_t right = bounded(across_.whole_end(), left, cols);
    const int64_t top = bounded(down_.whole_begin() - image_.first, 0, image_.rows);
    const int64_t bottom = bounded(down_.whole_end() - image_.first, top, image_.rows);
    for (int64_t row = 0; row < image_.rows; ++row) {
      along(row, left, right - left);
      if (row >= top && row < bottom) continue;
      for (int64_t col = 0; col < left; ++col) along(row, col, 1);
      for (int64_t col = right; col < cols; ++col) along(row, col, 1);
    }
    // Columns at the border go down, so that they are tiles too.
    for (int64_t col = 0; col < left; ++col) down(top, col, bottom - top);
    for (int64_t col = right; col < cols; ++col) down(top, col, bottom - top);
  }

 private:
  /// The window of one pixel, counted from the band's first row.
  Taps taps(int64_t row, int64_t col) const {
    const int64_t y = down_.start_of(image_.first + row);
    const int64_t x = across_.start_of(col);
    const int64_t i = down_.first(y), j = across_.first(x);
    Taps t;
    t.rows = down_.last(y) - i;
    t.cols = across_.last(x) - j;
    t.x_row = image_.dilation[0] * x_line_;
    t.x_col = image_.dilation[1] * kLanes;
    t.filter_row = image_.kernel[1] * kLanes;
    const bool any = t.rows > 0 && t.cols > 0;
    if (!any) t.rows = t.cols = 0;
    t.x = any ? image_.x + y * x_line_ + i * t.x_row + x * kLanes + j * t.x_col : image_.x;
    t.filters = image_.filters + i * t.filter_row + j * kLanes;
    return t;
  }
  void along(int64_t row, int64_t col, int64_t count) const {
    const int64_t at = row * image_.y_row + col * kLanes;
    if (count <= 0) return;
    if (image_.stride[1] == 1) {
      line<kLanes>(image_, taps(row, col), count, 0, at, kLanes);
    } else if (image_.stride[1] == 2) {
      line<2 * kLanes>(image_, taps(row, col), count, 0, at, kLanes);
    } else {
      line<0>(image_, taps(row, col), count, image_.stride[1] * kLanes, at, kLanes);
    }
  }
  void down(int64_t row, int64_t col, int64_t count) const {
    if (count <= 0) return;
    const int64_t at = row * image_.y_row + col * kLanes;
    line<0>(image_, taps(row, col), count, image_.stride[0] * x_line_, at, image_.y_row);
  }

  const DepthwiseImage& image_;
  Axis down_, across_;
  int64_t x_line_;
};

}  // namespace

void blocked_depthwise(const DepthwiseImage& image) { Image(image).run(); }

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
