// SPDX-License-Identifier: Apache-2.0
// ConvTranspose: one product gives every (filter position, input position) pair, which is then
// added to where it falls in the output. Half types are computed in float.
#include <algorithm>
#include <cstring>

#include "gemm.hpp"
#include "ops/window.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Filters transposed (out channels * positions, in channels) times the image (in channels,
/// positions).
template <class T>
class SpreadWork final : public GemmWork<T> {
 public:
  SpreadWork(int64_t groups, int64_t rows, int64_t channels, int64_t size, const T* filters,
             const T* image, T* columns)
      : filters_(filters), image_(image), columns_(columns) {
    this->m = rows;
    this->n = this->c_row = size;
    this->k = channels;
    this->batch = groups;
  }
  const T* a(int64_t member) const override { return filters_ + member * this->m * this->k; }
  T* c(int64_t member) const override { return columns_ + member * this->m * this->n; }
  GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    GemmB<T> b;
    b.data = image_ + member * this->k * this->n;
    b.row = this->n;
    return b.panel(this->m, this->k, k_begin, k_end, column, cols, scratch);
  }

 private:
  const T* filters_;
  const T* image_;
  T* columns_;
};

/// Adds the products of one output channel (positions of the filter, positions of the input) to its
/// plane.
template <class T>
void add_plane(const Space& s, const T* columns, T* plane) {
  for (int64_t tap = 0; tap < s.kernel_size(); ++tap) {
    const int64_t j = tap % s.kernel[2] * s.dilation[2] - s.pad[2];
    const int64_t i = tap / s.kernel[2] % s.kernel[1] * s.dilation[1] - s.pad[1];
    const int64_t h = tap / s.kernel[2] / s.kernel[1] * s.dilation[0] - s.pad[0];
    const int64_t stride = s.stride[2];
    const int64_t begin = j < 0 ? (-j + stride - 1) / stride : 0;
    const int64_t last = s.out[2] - 1 - j;
    const int64_t end = last < 0 ? 0 : std::min(s.in[2], last / stride + 1);
    const T* from = columns + tap * s.in_size();
    for (int64_t line = 0; line < s.in[0] * s.in[1]; ++line, from += s.in[2]) {
      const int64_t z = line / s.in[1] * s.stride[0] + h;
      const int64_t y = line % s.in[1] * s.stride[1] + i;
      if (z < 0 || z >= s.out[0] || y < 0 || y >= s.out[1]) continue;
      T* to = plane + (z * s.out[1] + y) * s.out[2] + j;
      for (int64_t x = begin; x < end; ++x) to[x * stride] += from[x];
    }
  }
}

template <class T>
class ConvTranspose final : public Kernel {
 public:
  explicit ConvTranspose(const kit::NodeView& node)
      : window_(node),
        groups_(node.integer("group", 1)),
        extra_(node.integers("output_padding")),
        auto_pad_(node.text("auto_pad", "NOTSET")),
        fixed_output_(!node.integers("output_shape").empty()) {
    kit::require(groups_ > 0, "ConvTranspose: group ", groups_, " must be 1 or more");
  }

  uint64_t workspace(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    uint64_t bytes = gemm_scratch_bytes<T>(context) + padded_bytes(w.size(), sizeof(T)) +
                     padded_bytes(columns(x, w), sizeof(T));
    if (is_half(x.dtype)) {
      bytes += padded_bytes(x.size(), sizeof(T)) + padded_bytes(w.size(), sizeof(T)) +
               padded_bytes(y.size(), sizeof(T));
      if (context.has_input(2)) bytes += padded_bytes(context.input(2).size(), sizeof(T));
    }
    return bytes;
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Space s = space(x, w, y);
    const bool half = is_half(x.dtype);
    Carver carver(context.workspace);
    T* scratch = carver.take<T>(static_cast<int64_t>(gemm_scratch_bytes<T>(context) / sizeof(T)));
    T* packed = carver.take<T>(w.size());
    T* products = carver.take<T>(columns(x, w));
    const T* from = widened(x, half ? carver.take<T>(x.size()) : nullptr);
    const auto* filters = static_cast<const T*>(context.packed_input(1));
    if (filters == nullptr) {
      pack(widened(w, half ? carver.take<T>(w.size()) : nullptr), w, packed);
      filters = packed;
    }
    const T* start = nullptr;
    if (context.has_input(2)) {
      const Tensor& bias = context.input(2);
      kit::require(bias.size() == y.dim(1), "ConvTranspose: B has ", bias.size(), " elements, Y ",
                   y.dim(1), " channels");
      start = widened(bias, half ? carver.take<T>(bias.size()) : nullptr);
    }
    T* to = half ? carver.take<T>(y.size()) : y.mut<T>();
    const int64_t rows = w.dim(1) * s.kernel_size();
    for (int64_t n = 0; n < x.dim(0); ++n) {
      const SpreadWork<T> work(groups_, rows, x.dim(1) / groups_, s.in_size(), filters,
                               from + n * x.dim(1) * s.in_size(), products);
      gemm_run<T>(context, work, scratch);
      const int64_t grain = std::max<int64_t>(1, 16384 / (s.in_size() * s.kernel_size() + 1));
      context.parallel_for(y.dim(1), grain, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          T* plane = to + (n * y.dim(1) + c) * s.out_size();
          std::fill_n(plane, s.out_size(), start != nullptr ? start[c] : T(0));
          add_plane(s, products + c * s.kernel_size() * s.in_size(), plane);
        }
      });
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (half) narrow(y.dtype, to, y.size(), y.data);
    }
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1 || value.rank < 3 || value.rank > 5) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    info.size = static_cast<uint64_t>(w.size()) * sizeof(T);
    const std::string layout = gemm_layout<T>("at") + "_" + std::to_string(groups_) + "x" +
                               std::to_string(w.dim(0)) + "x" + std::to_string(w.size(1, w.rank));
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    std::vector<float> wide(is_half(source.dtype) ? static_cast<size_t>(source.size()) : 0);
    pack(widened(source, reinterpret_cast<T*>(wide.data())), source, static_cast<T*>(target));
  }

 private:
  /// Products of one batch member.
  int64_t columns(const Tensor& x, const Tensor& w) const {
    return groups_ * w.size(1, w.rank) * x.size(2, x.rank);
  }
  void pack(const T* from, const Tensor& w, T* target) const {
    const int64_t channels = w.dim(0) / groups_;
    const int64_t rows = w.size(1, w.rank);
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t offset = g * channels * rows;
      gemm_pack_a(from + offset, 1, rows, rows, channels, target + offset);
    }
  }
  Space space(const Tensor& x, const Tensor& w, const Tensor& y) const {
    kit::require(w.rank == x.rank && w.dim(0) == x.dim(1) && x.dim(1) % groups_ == 0 &&
                     y.dim(1) == w.dim(1) * groups_,
                 "ConvTranspose: X has ", x.dim(1), " channels, W ", w.dim(0), "x", w.dim(1),
                 ", group is ", groups_);
    Space s = window_.resolve(x, y, w.shape + 2, true);
    const bool same = auto_pad_ == "SAME_UPPER" || auto_pad_ == "SAME_LOWER";
    if (!fixed_output_ && !same) return s;
    // The output size is given, so the padding follows from it; the odd element goes to the begin
    // unless SAME_UPPER asks otherwise.
    for (int i = 0; i < x.rank - 2; ++i) {
      const int at = 3 - (x.rank - 2) + i;
      const int64_t extra = extra_.empty() ? 0 : extra_[static_cast<size_t>(i)];
      const int64_t full = s.stride[at] * (s.in[at] - 1) + extra + s.span(at);
      const int64_t total = std::max<int64_t>(full - s.out[at], 0);
      s.pad[at] = auto_pad_ == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    return s;
  }

  WindowAttributes window_;
  int64_t groups_;
  std::vector<int64_t> extra_;
  std::string auto_pad_;
  bool fixed_output_;
};

}  // namespace

KernelSpan conv_transpose_kernels() {
  using kit::kBfloat16, kit::kFloat16, kit::kFloat32, kit::kFloat64;
  KernelSpan span(2);
  span[0].op = span[1].op = "ConvTranspose";
  span[0].since = span[1].since = 1;
  span[0].name = "conv_transpose_f32";
  span[0].create = make<ConvTranspose<float>>;
  span[0].dtypes = {{0, {kFloat32, kFloat16, kBfloat16}}, {-1, {kFloat32, kFloat16, kBfloat16}}};
  span[1].name = "conv_transpose_f64";
  span[1].create = make<ConvTranspose<double>>;
  span[1].dtypes = {{0, {kFloat64}}, {-1, {kFloat64}}};
  return span;
}

}  // namespace chipdock::plugin::cpu
