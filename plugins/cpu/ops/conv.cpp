// SPDX-License-Identifier: Apache-2.0
// Conv and FusedConv by our own means: a product with panels of patches made on the fly, and a
// vectorised plane filter where each filter sees one channel. Half types are summed in float. A
// residual is where the sums start, an activation is applied while a block is in the cache.
#include <algorithm>
#include <cstring>

#include "ops/contraction/patch_work.hpp"
#include "simd/binary.hpp"
#include "simd/depthwise.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Each filter sees one channel, in at most two dimensions.
bool is_depthwise(int64_t groups, int64_t channels_per_group, const Space& s) {
  return groups > 1 && channels_per_group == 1 && s.kernel[0] == 1 && s.in[0] == 1;
}

/// How a depthwise call is cut: a plane in bands of output rows, whose padded input fits the cache.
struct Bands {
  Bands(const Space& s, bool residual)
      : row(even_if(depthwise_splits(s.stride[2]),
                    std::max<int64_t>(s.in[2] + s.pad[2] + s.pad_end[2] + (s.stride[2] - 1), 1))),
        rows(std::clamp<int64_t>((8192 / row - s.span(1)) / s.stride[1] + 1, 4,
                                 std::max<int64_t>(s.out[1], 4))),
        count((s.out[1] + rows - 1) / rows) {
    constexpr int64_t kLimit = int64_t{1} << 40;  // Far beyond memory, and products fit.
    const int64_t high = std::max((rows - 1) * s.stride[1], s.span(1));
    if (high > kLimit / row || s.stride[2] > kLimit) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Conv: strides ", s.stride[1], "x", s.stride[2],
                ", dilations ", s.dilation[1], "x", s.dilation[2], " and padded rows of ", row,
                " elements make a padded input of more than 2^40 elements");
    }
    elements = ((rows - 1) * s.stride[1] + s.span(1)) * row + kDepthwiseSlack * s.stride[2];
    if (residual) sums = rows * s.out[2];
    batch = std::clamp<int64_t>(4096 / part(), 1, 8);
  }
  static int64_t even_if(bool wanted, int64_t row) { return wanted ? row + row % 2 : row; }
  /// A slot's scratch, in elements: for each band of a batch the padded input, then the sums.
  int64_t sums_at() const { return (elements + 15) / 16 * 16; }
  int64_t part() const { return sums_at() + (sums + 15) / 16 * 16; }
  int64_t scratch() const { return batch * part(); }
  int64_t row;           ///< Elements of a padded input row.
  int64_t rows;          ///< Output rows of a band.
  int64_t count;         ///< Bands of a plane.
  int64_t elements = 0;  ///< Padded input of a band.
  int64_t batch = 1;     ///< Bands that a thread has in hand at once.
  int64_t sums = 0;      ///< Output of a band, where it cannot be made in place: the plane filter
                         ///< makes some rows twice, and the residual may be Y.
};

void depthwise(const Context& context, const Space& s, int64_t planes, int64_t out_channels,
               int64_t multiplier, const ConvData<float>& data, const FusedActivation& activation,
               float* scratch) {
  const float* residual = data.residual;
  const Bands bands(s, residual != nullptr);
  const float* clamp = residual == nullptr ? activation.clamp<float>() : nullptr;
  const BinaryF32 add = CHIPDOCK_CPU_DISPATCH(binary_f32)(Binary::kAdd);
  struct Band {
    int64_t plane, first, rows;  // Of the output.
  };
  const auto band_of = [&](int64_t chunk) {
    const int64_t plane = bands.count == 1 ? chunk : chunk / bands.count;
    const int64_t first = (chunk - plane * bands.count) * bands.rows;
    return Band{plane, first, std::min(bands.rows, s.out[1] - first)};
  };
  auto* const pad_rows = CHIPDOCK_CPU_DISPATCH(depthwise_pad);
  auto* const sum_rows = CHIPDOCK_CPU_DISPATCH(depthwise_plane);
  DepthwisePad each_pad = {};
  each_pad.height = s.in[1], each_pad.width = s.in[2];
  each_pad.pad = s.pad[2];
  each_pad.row = bands.row;
  each_pad.split = depthwise_splits(s.stride[2]);
  DepthwisePlane each_plane = {};
  each_plane.row = bands.row;
  each_plane.clamp = clamp;
  each_plane.width = s.out[2];
  each_plane.kernel_y = s.kernel[1], each_plane.kernel_x = s.kernel[2];
  each_plane.stride_y = s.stride[1], each_plane.stride_x = s.stride[2];
  each_plane.dilation_y = s.dilation[1], each_plane.dilation_x = s.dilation[2];
  const auto pad_band = [&](const Band& band, bool zeroed, float* target) {
    DepthwisePad pad = each_pad;
    pad.plane = data.x + (multiplier == 1 ? band.plane : band.plane / multiplier) * s.in_size();
    pad.first = band.first * s.stride[1] - s.pad[1];
    pad.rows = (band.rows - 1) * s.stride[1] + s.span(1);
    pad.zeroed = zeroed;
    pad.target = target;
    pad_rows(pad);
  };
  const auto sum_band = [&](const Band& band, float* padded) {
    const int64_t channel = band.plane < out_channels ? band.plane : band.plane % out_channels;
    const int64_t at = band.plane * s.out_size() + band.first * s.out[2];
    const int64_t size = band.rows * s.out[2];
    float* to = data.y + at;
    DepthwisePlane p = each_plane;
    p.plane = padded;
    p.filter = data.filters + channel * s.kernel_size();
    p.bias = data.bias != nullptr ? data.bias[channel] : 0.0f;
    p.out = residual != nullptr ? padded + bands.sums_at() : to;
    p.height = band.rows;
    sum_rows(p);
    if (residual != nullptr) add(p.out, residual + at, to, size, Operands::kBoth);
    if (clamp == nullptr) activation.apply(to, size);
  };
  const int64_t chunks = planes * bands.count;
  const int64_t work = bands.rows * s.out[2] * s.kernel_size();
  const int64_t merge =
      std::clamp<int64_t>(int64_t{64} * 1024 / (work + 1), 1, std::max<int64_t>(chunks, 1));
  parallel_slots(context, (chunks + merge - 1) / merge, slot_count(context),
                 [&](int64_t group, int64_t slot) {
                   float* own = scratch + slot * bands.scratch();
                   const int64_t end = std::min(chunks, (group + 1) * merge);
                   const int64_t first = group * merge;
                   // Several small planes are padded before they are read, when their stores have settled.
                   for (int64_t c = first; c < end; c += bands.batch) {
                     const int64_t count = std::min(bands.batch, end - c);
                     const bool zeroed = bands.count == 1 && c > first;  // Same zeros as before.
                     for (int64_t i = 0; i < count; ++i) {
                       pad_band(band_of(c + i), zeroed, own + i * bands.part());
                     }
                     for (int64_t i = 0; i < count; ++i) {
                       sum_band(band_of(c + i), own + i * bands.part());
                     }
                   }
                 });
}

template <class T>
class Conv final : public Kernel {
 public:
  explicit Conv(const kit::NodeView& node)
      : op_(node.op()), window_(node), groups_(node.integer("group", 1)), activation_(node) {
    kit::require(groups_ > 0, op_, ": group ", groups_, " must be 1 or more");
  }

  uint64_t workspace(const Context& context) const override {
    const Tensor& w = context.input(1);
    uint64_t bytes = slot_bytes(context, space(context)) + padded_bytes(w.size(), sizeof(T));
    if (is_half(w.dtype)) {
      bytes += padded_bytes(context.output(0).size(), sizeof(T));
      for (uint32_t i = 0; i < context.input_count; ++i) {
        if (context.has_input(i)) bytes += padded_bytes(context.input(i).size(), sizeof(T));
      }
    }
    return bytes;
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Space s = space(context);
    kit::require(x.dim(1) == w.dim(1) * groups_ && w.dim(0) % groups_ == 0, op_, ": X has ",
                 x.dim(1), " channels, W ", w.dim(0), "x", w.dim(1), ", group is ", groups_);
    const bool half = is_half(x.dtype);
    const bool planes = by_plane(w, s);
    Carver carver(context.workspace);
    T* scratch = carver.take<T>(static_cast<int64_t>(slot_bytes(context, s) / sizeof(T)));
    T* packed = carver.take<T>(w.size());
    const auto elements = [&](const Tensor& tensor) {
      return widened(tensor, half ? carver.take<T>(tensor.size()) : nullptr);
    };
    ConvData<T> data = {};
    const bool words = !planes && by_words(w);
    if (words) {
      data.words = pair_isa(x.dtype);
      data.x_halves = x.as<uint16_t>();
    }
    if (!words || !s.pointwise()) data.x = elements(x);
    data.filters = static_cast<const T*>(context.packed_input(1));
    if (data.filters == nullptr && words) {
      pack_words(w, packed);
      data.filters = packed;
    } else if (data.filters == nullptr) {
      data.filters = pack(elements(w), w, planes, packed);
    }
    if (context.has_input(2)) {
      const Tensor& bias = context.input(2);
      kit::require(bias.size() == w.dim(0), op_, ": B has ", bias.size(), " elements, W ", w.dim(0),
                   " filters");
      data.bias = elements(bias);
    }
    if (const Tensor* residual = residual_input(context, op_)) {
      data.residual = elements(*residual);
    }
    data.y = half ? carver.take<T>(y.size()) : y.mut<T>();
    if (half && !planes) data.halves = &y;
    if constexpr (sizeof(T) == sizeof(float)) {
      if (planes) {
        depthwise(context, s, y.dim(0) * y.dim(1), y.dim(1), y.dim(1) / x.dim(1), data, activation_,
                  scratch);
      }
    }
    if (!planes) {
      const PatchWork<T> work(s, x.dim(0), groups_, x.dim(1), y.dim(1), data, activation_);
      gemm_run<T>(context, work, scratch);
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (half && planes) narrow(y.dtype, data.y, y.size(), y.data);
    }
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1 || value.rank < 3 || value.rank > 5) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    const bool planes = depthwise_filters(w);
    if (planes && !is_half(w.dtype)) return;  // Used as they are.
    const int64_t k = w.size(1, w.rank);
    const bool words = !planes && by_words(w);
    info.size = static_cast<uint64_t>(words ? w.dim(0) * pair_words(k) : w.size()) * sizeof(T);
    const std::string layout = planes ? "float"
                                      : gemm_layout<T>(words ? "a_words" : "a") + "_" +
                                            std::to_string(w.dim(0) / groups_) + "x" +
                                            std::to_string(k);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }

  void prepack(uint32_t, const Tensor& source, void* target) const override {
    if (!depthwise_filters(source) && by_words(source)) {
      return pack_words(source, static_cast<float*>(target));
    }
    std::vector<float> wide(is_half(source.dtype) ? static_cast<size_t>(source.size()) : 0);
    const T* from = widened(source, reinterpret_cast<T*>(wide.data()));
    if (depthwise_filters(source)) {
      std::copy_n(from, source.size(), static_cast<T*>(target));
    } else {
      pack(from, source, false, static_cast<T*>(target));
    }
  }

 private:
  Space space(const Context& context) const {
    const Tensor& w = context.input(1);
    kit::require(w.rank == context.input(0).rank, op_, ": X of rank ", context.input(0).rank,
                 " and W of rank ", w.rank, " must have one rank");
    Space s = window_.resolve(context.input(0), context.output(0), w.shape + 2, false);
    // A plane filter has its vectors along the width already, unless there is none.
    if (!by_plane(w, s) || s.in[2] == 1) s.merge_flat_width();
    return s;
  }
  /// Scratch of the threads.
  uint64_t slot_bytes(const Context& context, const Space& s) const {
    if (!by_plane(context.input(1), s)) return gemm_scratch_bytes<T>(context);
    const int64_t slot = Bands(s, context.has_input(3)).scratch();
    return static_cast<uint64_t>(slot_capacity(context)) * padded_bytes(slot, sizeof(T));
  }
  /// Known from W alone, so that packing and running agree.
  bool depthwise_filters(const Tensor& w) const {
    return sizeof(T) == sizeof(float) && w.rank <= 4 && groups_ > 1 && w.dim(1) == 1;
  }
  bool by_plane(const Tensor& w, const Space& s) const {
    return depthwise_filters(w) && is_depthwise(groups_, w.dim(1), s);
  }
  static bool by_words(const Tensor& w) { return is_half(w.dtype) && pair_isa(w.dtype) != nullptr; }
  template <class Word>
  void pack_words(const Tensor& w, Word* target) const {
    if constexpr (sizeof(Word) == sizeof(float)) {
      const int64_t m = w.dim(0) / groups_;
      const int64_t k = w.size(1, w.rank);
      for (int64_t g = 0; g < groups_; ++g) {
        pair_pack_a(w.as<uint16_t>() + g * m * k, k, 1, m, k, target + g * m * pair_words(k));
      }
    }
  }
  /// Packs each group's filters, or gives back `w` where it is read as it is.
  const T* pack(const T* from, const Tensor& w, bool planes, T* target) const {
    if (planes) return from;
    const int64_t m = w.dim(0) / groups_;
    const int64_t k = w.size(1, w.rank);
    for (int64_t g = 0; g < groups_; ++g) {
      gemm_pack_a(from + g * m * k, k, 1, m, k, target + g * m * k);
    }
    return target;
  }

  std::string op_;
  WindowAttributes window_;
  int64_t groups_;
  FusedActivation activation_;
};

}  // namespace

KernelSpan conv_kernels() {
  using kit::kBfloat16, kit::kFloat16, kit::kFloat32, kit::kFloat64;
  KernelDef single{"Conv", 1};
  single.supports = supports_fused;
  KernelDef wide = single;
  single.name = "conv_f32";
  single.create = make<Conv<float>>;
  single.dtypes = {{0, {kFloat32, kFloat16, kBfloat16}}, {-1, {kFloat32, kFloat16, kBfloat16}}};
  wide.name = "conv_f64";
  wide.create = make<Conv<double>>;
  wide.dtypes = {{0, {kFloat64}}, {-1, {kFloat64}}};
  return {single, wide, fused(single, "FusedConv", "fused_conv_f32"),
          fused(wide, "FusedConv", "fused_conv_f64")};
}

}  // namespace chipdock::plugin::cpu
