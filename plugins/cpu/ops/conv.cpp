// SPDX-License-Identifier: Apache-2.0
// Conv by our own means: a product with panels of patches made on the fly, and a vectorised plane
// filter where each filter sees one channel. Half types are computed in float.
#include <algorithm>
#include <cstring>

#include "gemm.hpp"
#include "ops/window.hpp"
#include "simd/depthwise.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

template <class T>
class PatchWork final : public GemmWork<T> {
 public:
  PatchWork(const Space& space, int64_t batch, int64_t groups, int64_t in_channels,
            int64_t out_channels, const T* x, const T* filters, const T* start, T* y)
      : space_(space),
        groups_(groups),
        channels_(in_channels / groups),
        x_(x),
        filters_(filters),
        start_(start),
        y_(y),
        direct_(space.pointwise()) {
    this->m = out_channels / groups;
    this->n = space.out_size();
    this->k = channels_ * space.kernel_size();
    this->batch = batch * groups;
    this->c_row = this->n;
  }
  const T* a(int64_t member) const override {
    return filters_ + member % groups_ * this->m * this->k;
  }
  T* c(int64_t member) const override { return y_ + member * this->m * this->n; }
  const T* bias(int64_t member) const override {
    return start_ != nullptr ? start_ + member % groups_ * this->m : nullptr;
  }
  GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    const T* image = x_ + member * channels_ * space_.in_size();
    if (direct_) {
      GemmB<T> b;
      b.data = image;
      b.row = this->n;
      return b.panel(this->m, this->k, k_begin, k_end, column, cols, scratch);
    }
    const int width = gemm_isa<T>().cols;
    const PatchPanel<T> patches = {image, k_begin, k_end, column, cols, width, scratch};
    if constexpr (sizeof(T) == sizeof(float)) {
      CHIPDOCK_CPU_DISPATCH(fill_patches_f32)(space_, patches);
    } else {
      CHIPDOCK_CPU_DISPATCH(fill_patches_f64)(space_, patches);
    }
    return {scratch, width};
  }

 private:
  const Space& space_;
  int64_t groups_;
  int64_t channels_;
  const T* x_;
  const T* filters_;
  const T* start_;
  T* y_;
  bool direct_;
};

/// Each filter sees one channel, in at most two dimensions.
bool is_depthwise(int64_t groups, int64_t channels_per_group, const Space& s) {
  return groups > 1 && channels_per_group == 1 && s.kernel[0] == 1 && s.in[0] == 1;
}

/// How a depthwise call is cut: a plane in bands of output rows, whose padded input fits the cache.
struct Bands {
  explicit Bands(const Space& s)
      : row(std::max<int64_t>(s.in[2] + s.pad[2] + s.pad_end[2] + (s.stride[2] - 1), 1)),
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
  }
  int64_t row;           ///< Elements of a padded input row.
  int64_t rows;          ///< Output rows of a band.
  int64_t count;         ///< Bands of a plane.
  int64_t elements = 0;  ///< Padded input of a band.
};

void depthwise(const Context& context, const Space& s, int64_t planes, int64_t out_channels,
               int64_t multiplier, const float* x, const float* filters, const float* start,
               float* y, float* scratch) {
  const Bands bands(s);
  const int64_t stride = static_cast<int64_t>(padded_bytes(bands.elements, sizeof(float)) / 4);
  const auto band_of = [&](int64_t chunk, int64_t slot, bool zeroed) {
    const int64_t plane = chunk / bands.count;  // Of the output.
    const int64_t channel = plane % out_channels;
    const int64_t first = chunk % bands.count * bands.rows;
    const int64_t rows = std::min(bands.rows, s.out[1] - first);
    float* padded = scratch + slot * stride;
    DepthwisePad pad;
    pad.plane = x + plane / multiplier * s.in_size();
    pad.height = s.in[1], pad.width = s.in[2];
    pad.first = first * s.stride[1] - s.pad[1];
    pad.rows = (rows - 1) * s.stride[1] + s.span(1);
    pad.pad = s.pad[2];
    pad.row = bands.row;
    pad.zeroed = zeroed;
    pad.target = padded;
    CHIPDOCK_CPU_DISPATCH(depthwise_pad)(pad);
    DepthwisePlane p;
    p.plane = padded;
    p.row = bands.row;
    p.filter = filters + channel * s.kernel_size();
    p.bias = start != nullptr ? start[channel] : 0.0f;
    p.out = y + plane * s.out_size() + first * s.out[2];
    p.out_row = s.out[2];
    p.height = rows;
    p.width = s.out[2];
    p.kernel_y = s.kernel[1], p.kernel_x = s.kernel[2];
    p.stride_y = s.stride[1], p.stride_x = s.stride[2];
    p.dilation_y = s.dilation[1], p.dilation_x = s.dilation[2];
    CHIPDOCK_CPU_DISPATCH(depthwise_plane)(p);
  };
  const int64_t chunks = planes * bands.count;
  const int64_t work = bands.rows * s.out[2] * s.kernel_size();
  const int64_t merge =
      std::clamp<int64_t>(int64_t{64} * 1024 / (work + 1), 1, std::max<int64_t>(chunks, 1));
  parallel_slots(context, (chunks + merge - 1) / merge, slot_count(context),
                 [&](int64_t group, int64_t slot) {
                   const int64_t end = std::min(chunks, (group + 1) * merge);
                   const int64_t first = group * merge;
                   for (int64_t c = first; c < end; ++c) {
                     band_of(c, slot, bands.count == 1 && c > first);  // Same zeros as before.
                   }
                 });
}

template <class T>
class Conv final : public Kernel {
 public:
  explicit Conv(const kit::NodeView& node) : window_(node), groups_(node.integer("group", 1)) {
    kit::require(groups_ > 0, "Conv: group ", groups_, " must be 1 or more");
  }

  uint64_t workspace(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Space s = space(context);
    uint64_t bytes = gemm_scratch_bytes<T>(context);
    if (by_plane(w, s)) {
      bytes = static_cast<uint64_t>(slot_capacity(context)) *
              padded_bytes(Bands(s).elements, sizeof(T));
    }
    bytes += padded_bytes(w.size(), sizeof(T));
    if (is_half(x.dtype)) {
      bytes += padded_bytes(x.size(), sizeof(T)) + padded_bytes(w.size(), sizeof(T)) +
               padded_bytes(context.output(0).size(), sizeof(T));
      if (context.has_input(2)) bytes += padded_bytes(context.input(2).size(), sizeof(T));
    }
    return bytes;
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Space s = space(context);
    kit::require(x.dim(1) == w.dim(1) * groups_ && w.dim(0) % groups_ == 0, "Conv: X has ",
                 x.dim(1), " channels, W ", w.dim(0), "x", w.dim(1), ", group is ", groups_);
    const bool half = is_half(x.dtype);
    const bool planes = by_plane(w, s);
    Carver carver(context.workspace);
    const uint64_t part = planes ? static_cast<uint64_t>(slot_capacity(context)) *
                                       padded_bytes(Bands(s).elements, sizeof(T))
                                 : gemm_scratch_bytes<T>(context);
    T* scratch = carver.take<T>(static_cast<int64_t>(part / sizeof(T)));
    T* packed = carver.take<T>(w.size());
    const T* from = widened(x, half ? carver.take<T>(x.size()) : nullptr);
    const auto* filters = static_cast<const T*>(context.packed_input(1));
    if (filters == nullptr) {
      filters = pack(widened(w, half ? carver.take<T>(w.size()) : nullptr), w, planes, packed);
    }
    const T* start = nullptr;
    if (context.has_input(2)) {
      const Tensor& bias = context.input(2);
      kit::require(bias.size() == w.dim(0), "Conv: B has ", bias.size(), " elements, W ", w.dim(0),
                   " filters");
      start = widened(bias, half ? carver.take<T>(bias.size()) : nullptr);
    }
    T* to = half ? carver.take<T>(y.size()) : y.mut<T>();
    if constexpr (sizeof(T) == sizeof(float)) {
      if (planes) {
        depthwise(context, s, y.dim(0) * y.dim(1), y.dim(1), y.dim(1) / x.dim(1), from, filters,
                  start, to, scratch);
      }
    }
    if (!planes) {
      const PatchWork<T> work(s, x.dim(0), groups_, x.dim(1), y.dim(1), from, filters, start, to);
      gemm_run<T>(context, work, scratch);
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (half) narrow(y.dtype, to, y.size(), y.data);
    }
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1 || value.rank < 3 || value.rank > 5) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    const bool planes = depthwise_filters(w);
    if (planes && !is_half(w.dtype)) return;  // Used as they are.
    info.size = static_cast<uint64_t>(w.size()) * sizeof(T);
    const std::string layout = planes ? "float"
                                      : gemm_layout<T>("a") + "_" +
                                            std::to_string(w.dim(0) / groups_) + "x" +
                                            std::to_string(w.size(1, w.rank));
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }

  void prepack(uint32_t, const Tensor& source, void* target) const override {
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
    kit::require(w.rank == context.input(0).rank, "Conv: X of rank ", context.input(0).rank,
                 " and W of rank ", w.rank, " must have one rank");
    Space s = window_.resolve(context.input(0), context.output(0), w.shape + 2, false);
    // A plane filter has its vectors along the width already, unless there is none.
    if (!by_plane(w, s) || s.in[2] == 1) s.merge_flat_width();
    return s;
  }
  /// Known from W alone, so that packing and running agree.
  bool depthwise_filters(const Tensor& w) const {
    return sizeof(T) == sizeof(float) && w.rank <= 4 && groups_ > 1 && w.dim(1) == 1;
  }
  bool by_plane(const Tensor& w, const Space& s) const {
    return depthwise_filters(w) && is_depthwise(groups_, w.dim(1), s);
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

  WindowAttributes window_;
  int64_t groups_;
};

}  // namespace

KernelSpan conv_kernels() {
  using kit::kBfloat16, kit::kFloat16, kit::kFloat32, kit::kFloat64;
  KernelSpan span(2);
  span[0].op = span[1].op = "Conv";
  span[0].since = span[1].since = 1;
  span[0].name = "conv_f32";
  span[0].create = make<Conv<float>>;
  span[0].dtypes = {{0, {kFloat32, kFloat16, kBfloat16}}, {-1, {kFloat32, kFloat16, kBfloat16}}};
  span[1].name = "conv_f64";
  span[1].create = make<Conv<double>>;
  span[1].dtypes = {{0, {kFloat64}}, {-1, {kFloat64}}};
  return span;
}

}  // namespace chipdock::plugin::cpu
