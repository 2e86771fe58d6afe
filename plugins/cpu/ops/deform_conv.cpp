// SPDX-License-Identifier: Apache-2.0
// DeformConv over two spatial axes: a convolution whose taps are moved by an input, and weighed by
// another. Source: ONNX DeformConv-22; pixels outside are zero.
#include <cmath>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

class DeformConv final : public Kernel {
 public:
  explicit DeformConv(const kit::NodeView& node)
      : group_(node.integer("group", 1)),
        offset_group_(node.integer("offset_group", 1)),
        dilations_(filled(node, "dilations", 2, 1)),
        pads_(filled(node, "pads", 4, 0)),
        strides_(filled(node, "strides", 2, 1)) {}

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  static std::vector<int64_t> filled(const kit::NodeView& node, const char* name, size_t count,
                                     int64_t value) {
    std::vector<int64_t> out = node.integers(name);
    if (out.empty()) out.assign(count, value);
    kit::require(out.size() == count, "DeformConv: ", name, " has ", out.size(), " entries, ",
                 count, " are wanted: two spatial axes are supported");
    return out;
  }

  template <class T>
  static T pixel(const T* plane, int64_t height, int64_t width, T y, T x) {
    if (!(y > -1 && x > -1 && y < static_cast<T>(height) && x < static_cast<T>(width))) return 0;
    const auto top = static_cast<int64_t>(std::floor(y)),
               left = static_cast<int64_t>(std::floor(x));
    const T down = y - static_cast<T>(top), right = x - static_cast<T>(left);
    const auto at = [&](int64_t h, int64_t w) {
      return h < 0 || w < 0 || h >= height || w >= width ? T{0} : plane[h * width + w];
    };
    return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
           down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
  }

  template <class T>
  void compute(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    kit::require(x.rank == 4, "DeformConv: X has rank ", x.rank, ", allowed is 4");
    const std::vector<T> image = load<T>(x), weight = load<T>(w),
                         offset = load<T>(context.input(2));
    const std::vector<T> bias = context.has_input(3) ? load<T>(context.input(3)) : std::vector<T>{};
    const std::vector<T> mask = context.has_input(4) ? load<T>(context.input(4)) : std::vector<T>{};
    std::vector<T> out(static_cast<size_t>(y.size()));
    const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
    const int64_t kernel_h = w.shape[2], kernel_w = w.shape[3], taps = kernel_h * kernel_w;
    const int64_t maps = y.shape[1], places = y.shape[2] * y.shape[3];
    const int64_t per_group = channels / group_, maps_per_group = maps / group_;
    const int64_t per_offset = channels / offset_group_;
    over(context, y.shape[0] * places, 16, [&](int64_t begin, int64_t end) {
      std::vector<T> column(static_cast<size_t>(channels * taps));
      for (int64_t at = begin; at < end; ++at) {
        const int64_t n = at / places, place = at % places;
        const int64_t oh = place / y.shape[3], ow = place % y.shape[3];
        for (int64_t c = 0; c < channels; ++c) {
          const T* plane = image.data() + (n * channels + c) * height * width;
          for (int64_t k = 0; k < taps; ++k) {
            const int64_t entry = (n * offset_group_ + c / per_offset) * taps + k;
            const int64_t tap_row = k / kernel_w, tap_column = k % kernel_w;
            const T row = static_cast<T>(oh * strides_[0] - pads_[0] + tap_row * dilations_[0]);
            const T line = static_cast<T>(ow * strides_[1] - pads_[1] + tap_column * dilations_[1]);
            const T value = pixel(plane, height, width, row + offset[entry * 2 * places + place],
                                  line + offset[(entry * 2 + 1) * places + place]);
            column[c * taps + k] = mask.empty() ? value : value * mask[entry * places + place];
          }
        }
        for (int64_t m = 0; m < maps; ++m) {
          const T* from = column.data() + m / maps_per_group * per_group * taps;
          const T* by = weight.data() + m * per_group * taps;
          T sum = bias.empty() ? T{0} : bias[m];
          for (int64_t i = 0; i < per_group * taps; ++i) sum += from[i] * by[i];
          out[(n * maps + m) * places + place] = sum;
        }
      }
    });
    store(out, y);
  }

  int64_t group_, offset_group_;
  std::vector<int64_t> dilations_, pads_, strides_;
};

}  // namespace

KernelSpan deform_conv_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  return {{"DeformConv", 19, 0, make<DeformConv>, {{0, floats}, {-1, floats}}}};
}

}  // namespace chipdock::plugin::cpu
