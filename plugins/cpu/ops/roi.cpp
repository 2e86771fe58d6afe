// SPDX-License-Identifier: Apache-2.0
// RoiAlign and MaxRoiPool: cells of regions of an image that another tensor gives. Computed in
// float, or in double where the dtype asks for it.
#include <cmath>

#include "ops/conversion/values.hpp"
#include "ops/taps.hpp"

namespace chipdock::plugin::cpu {
namespace {

class RoiAlign final : public Kernel {
 public:
  explicit RoiAlign(const kit::NodeView& node)
      : scale_(node.number("spatial_scale", 1)),
        samples_(node.integer("sampling_ratio", 0)),
        max_(node.text("mode", "avg") == "max") {
    const char* usual = node.since_version() < 16 ? "output_half_pixel" : "half_pixel";
    half_pixel_ = node.text("coordinate_transformation_mode", usual) == "half_pixel";
  }

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  /// Bilinear taps within the image; none if the place is more than a pixel outside.
  template <class T>
  static Taps<T> taps(T x, int64_t extent) {
    Taps<T> out;
    if (!(x >= -1 && x <= static_cast<T>(extent))) return out;
    x = std::max(x, T{0});
    auto low = static_cast<int64_t>(x);
    if (low >= extent - 1) {
      low = extent - 1;
      x = static_cast<T>(low);
    }
    out.count = 2;
    out.pixel[0] = low;
    out.pixel[1] = std::min(low + 1, extent - 1);
    out.weight[1] = x - static_cast<T>(low);
    out.weight[0] = 1 - out.weight[1];
    return out;
  }

  template <class T>
  void compute(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const std::vector<T> image = load<T>(x);
    const std::vector<T> rois = load<T>(context.input(1));
    const std::vector<double> batches = load<double>(context.input(2));
    std::vector<T> out(static_cast<size_t>(y.size()));
    const int64_t height = x.shape[2], width = x.shape[3];
    const int64_t cells = y.shape[1] * y.shape[2] * y.shape[3];
    over(context, y.size(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t roi = at / cells, w = at % y.shape[3];
        const int64_t h = at / y.shape[3] % y.shape[2];
        const int64_t c = at / y.shape[3] / y.shape[2] % y.shape[1];
        const auto n = static_cast<int64_t>(batches[roi]);
        kit::require(n >= 0 && n < x.shape[0], "RoiAlign: batch_indices has ", n, ", X has ",
                     x.shape[0], " images");
        const T* plane = image.data() + (n * x.shape[1] + c) * height * width;
        out[at] = cell(plane, &rois[roi * 4], {h, w}, {height, width}, {y.shape[2], y.shape[3]});
      }
    });
    store(out, y);
  }

  struct Pair {
    int64_t h, w;
  };

  template <class T>
  T cell(const T* plane, const T* roi, Pair at, Pair extent, Pair cells) const {
    const T scale = static_cast<T>(scale_), offset = half_pixel_ ? T{0.5} : T{0};
    const T left = roi[0] * scale - offset, top = roi[1] * scale - offset;
    T width = roi[2] * scale - offset - left, height = roi[3] * scale - offset - top;
    if (!half_pixel_) {
      width = std::max(width, T{1});
      height = std::max(height, T{1});
    }
    const T step_h = height / static_cast<T>(cells.h), step_w = width / static_cast<T>(cells.w);
    const auto count = [this](T step) {
      const T wanted = std::min(std::max(std::ceil(step), T{0}), T{1 << 20});
      return samples_ > 0 ? samples_ : static_cast<int64_t>(wanted);
    };
    const int64_t rows = count(step_h), columns = count(step_w);
    T sum = 0, largest = 0;
    bool any = false;
    for (int64_t i = 0; i < rows; ++i) {
      const T y = top + static_cast<T>(at.h) * step_h +
                  (static_cast<T>(i) + T{0.5}) * step_h / static_cast<T>(rows);
      const Taps<T> down = taps(y, extent.h);
      for (int64_t j = 0; j < columns; ++j) {
        const T x = left + static_cast<T>(at.w) * step_w +
                    (static_cast<T>(j) + T{0.5}) * step_w / static_cast<T>(columns);
        const Taps<T> across = taps(x, extent.w);
        if (down.count == 0 || across.count == 0) {
          largest = any ? std::max(largest, T{0}) : T{0};
          any = true;
          continue;
        }
        for (int k = 0; k < 4; ++k) {
          const T value = down.weight[k / 2] * across.weight[k % 2] *
                          plane[down.pixel[k / 2] * extent.w + across.pixel[k % 2]];
          sum += value;
          largest = any ? std::max(largest, value) : value;
          any = true;
        }
      }
    }
    if (max_) return largest;  // of the weighted pixels, as ONNX defines it
    return sum / static_cast<T>(std::max<int64_t>(rows * columns, 1));
  }

  double scale_;
  int64_t samples_;
  bool max_;
  bool half_pixel_ = false;
};

/// Source: ONNX MaxRoiPool-1: corners rounded to pixels, each cell at least the pixels it touches.
class MaxRoiPool final : public Kernel {
 public:
  explicit MaxRoiPool(const kit::NodeView& node) : scale_(node.number("spatial_scale", 1)) {}

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  struct Range {
    int64_t begin, end;
  };

  /// Pixels of one cell out of `cells` over [first, last].
  static Range cell(double first, double last, int64_t at, int64_t cells, int64_t extent) {
    const double size = std::max(last - first + 1, 1.0) / static_cast<double>(cells);
    const auto held = [&](double pixel) {
      return static_cast<int64_t>(std::clamp(pixel, 0.0, static_cast<double>(extent)));
    };
    const auto place = static_cast<double>(at);
    return {held(std::floor(place * size) + first), held(std::ceil((place + 1) * size) + first)};
  }

  template <class T>
  void compute(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const std::vector<T> image = load<T>(x);
    const std::vector<double> rois = load<double>(context.input(1));
    std::vector<T> out(static_cast<size_t>(y.size()));
    const int64_t height = x.shape[2], width = x.shape[3];
    over(context, y.size(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t c = at / y.shape[3] / y.shape[2] % y.shape[1];
        const double* roi = &rois[at / (y.shape[1] * y.shape[2] * y.shape[3]) * 5];
        kit::require(roi[0] >= 0 && roi[0] < static_cast<double>(x.shape[0]),
                     "MaxRoiPool: a roi is of image ", roi[0], ", X has ", x.shape[0]);
        const Range rows = cell(std::round(roi[2] * scale_), std::round(roi[4] * scale_),
                                at / y.shape[3] % y.shape[2], y.shape[2], height);
        const Range columns = cell(std::round(roi[1] * scale_), std::round(roi[3] * scale_),
                                   at % y.shape[3], y.shape[3], width);
        const auto n = static_cast<int64_t>(roi[0]);
        const T* plane = image.data() + (n * x.shape[1] + c) * height * width;
        const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
        T largest = empty ? T{0} : plane[rows.begin * width + columns.begin];
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          for (int64_t w = columns.begin; w < columns.end; ++w)
            largest = std::max(largest, plane[h * width + w]);
        }
        out[at] = largest;
      }
    });
    store(out, y);
  }

  double scale_;
};

}  // namespace

KernelSpan roi_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  KernelSpan kernels;
  kernels.push_back({"RoiAlign", 10, 0, make<RoiAlign>});
  kernels.back().dtypes = {{0, floats}, {1, floats}, {2, {kit::kInt64}}, {-1, floats}};
  kernels.push_back({"MaxRoiPool", 1, 0, make<MaxRoiPool>});
  kernels.back().dtypes = {{0, floats}, {-1, floats}};
  return kernels;
}

}  // namespace chipdock::plugin::cpu
