// SPDX-License-Identifier: Apache-2.0
// Attributes and steering inputs of Resize and Upsample, turned into one ResizeAxis for each dim.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_RESIZE_ATTRIBUTES_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_RESIZE_ATTRIBUTES_HPP_

#include <string>
#include <utility>
#include <vector>

#include "ops/resample.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {

inline double float_at(const Tensor& t, int64_t i) {
  using kit::operator==;
  if (t.dtype == kit::kFloat64) return t.as<double>()[i];
  if (t.dtype == kit::kFloat32) return static_cast<double>(t.as<float>()[i]);
  float wide = 0;
  widen(t.dtype, t.as<uint16_t>() + i, 1, &wide);
  return static_cast<double>(wide);
}

template <class E, size_t kCount>
E pick(const std::string& given, const std::pair<const char*, E> (&names)[kCount],
       const char* attribute) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (given == name) return value;
    known += std::string(known.empty() ? "" : ", ") + name;
  }
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Resize: ", attribute, " ", given,
            " is unknown, allowed are ", known);
}

inline Sampling sampling_of(const kit::NodeView& node) {
  static constexpr std::pair<const char*, ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                                                  {"linear", ResizeMode::kLinear},
                                                                  {"bilinear", ResizeMode::kLinear},
                                                                  {"cubic", ResizeMode::kCubic}};
  static constexpr std::pair<const char*, Coordinates> kCoordinates[] = {
      {"half_pixel", Coordinates::kHalfPixel},
      {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
      {"align_corners", Coordinates::kAlignCorners},
      {"asymmetric", Coordinates::kAsymmetric},
      // Opset 11 only: as half_pixel, for callers that also want TensorFlow's rounding.
      {"tf_half_pixel_for_nn", Coordinates::kHalfPixel},
      {"tf_crop_and_resize", Coordinates::kCropAndResize}};
  static constexpr std::pair<const char*, Rounding> kRounding[] = {
      {"round_prefer_floor", Rounding::kPreferFloor},
      {"round_prefer_ceil", Rounding::kPreferCeil},
      {"floor", Rounding::kFloor},
      {"ceil", Rounding::kCeil}};
  Sampling s;
  s.mode = pick(node.text("mode", "nearest"), kModes, "mode");
  if (node.since_version() < 11) {  // Upsample and Resize-10 know one way of sampling.
    s.coordinates = Coordinates::kAsymmetric;
    s.rounding = Rounding::kUpsample;
    return s;
  }
  s.coordinates = pick(node.text("coordinate_transformation_mode", "half_pixel"), kCoordinates,
                       "coordinate_transformation_mode");
  s.rounding = pick(node.text("nearest_mode", "round_prefer_floor"), kRounding, "nearest_mode");
  s.cubic_a = node.number("cubic_coeff_a", -0.75);
  s.antialias = node.integer("antialias", 0) != 0;
  s.exclude_outside = node.integer("exclude_outside", 0) != 0;
  return s;
}

class ResizeBase : public Kernel {
 public:
  explicit ResizeBase(const kit::NodeView& node)
      : sampling_(sampling_of(node)),
        since_(node.since_version()),
        scales_(node.numbers("scales")),
        axes_(node.integers("axes")),
        keeps_aspect_(false),
        extrapolation_(node.number("extrapolation_value", 0)) {
    const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    keeps_aspect_ = policy != "stretch";
    not_larger_ = policy == "not_larger";
  }

 protected:
  /// Fills one entry per dim of the input.
  void resolve(const Context& context, ResizeAxis* axes) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    kit::require(x.rank == y.rank, "Resize: X has rank ", x.rank, " and Y ", y.rank);
    for (int32_t i = 0; i < x.rank; ++i) {
      axes[i].in = x.dim(i);
      axes[i].out = y.dim(i);
    }
    const uint32_t scales_at = since_ < 11 ? 1 : 2;
    const bool given = context.has_input(scales_at) && context.input(scales_at).size() > 0;
    const bool subset = !axes_.empty();
    const auto count = subset ? static_cast<int32_t>(axes_.size()) : x.rank;
    const bool cropped = sampling_.coordinates == Coordinates::kCropAndResize &&
                         context.has_input(1) && context.input(1).size() == 2 * count;
    double common = 0;
    for (int32_t i = 0; i < count; ++i) {
      ResizeAxis& axis = axes[at(i, x.rank)];
      if (!scales_.empty()) {
        axis.scale = scales_[static_cast<size_t>(i)];
      } else if (given) {
        axis.scale = float_at(context.input(scales_at), i);
      } else {
        axis.scale = size_scale(context, i, axis);
        axis.exact_size = !keeps_aspect_;
      }
      if (cropped) {
        axis.roi_begin = float_at(context.input(1), i);
        axis.roi_end = float_at(context.input(1), count + i);
      }
      if (i == 0 || (not_larger_ ? axis.scale < common : axis.scale > common)) common = axis.scale;
    }
    if (!given && scales_.empty() && keeps_aspect_) {
      for (int32_t i = 0; i < count; ++i) axes[at(i, x.rank)].scale = common;
    }
  }

  Sampling sampling_;
  int32_t since_;
  std::vector<double> scales_;
  std::vector<int64_t> axes_;
  bool keeps_aspect_;
  bool not_larger_ = false;
  double extrapolation_;

 private:
  int32_t at(int32_t i, int32_t rank) const {
    if (axes_.empty()) return i;
    return static_cast<int32_t>(kit::normalize_axis(axes_[static_cast<size_t>(i)], rank, "Resize"));
  }
  static double size_scale(const Context& context, int32_t i, const ResizeAxis& axis) {
    const double size = context.has_input(3) && context.input(3).size() > i
                            ? static_cast<double>(context.input(3).as<int64_t>()[i])
                            : static_cast<double>(axis.out);
    return axis.in == 0 ? 1 : size / static_cast<double>(axis.in);
  }
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_RESIZE_ATTRIBUTES_HPP_
