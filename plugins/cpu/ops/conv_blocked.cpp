// SPDX-License-Identifier: Apache-2.0
// Conv and FusedConv in the blocked layout, dense, grouped and depthwise, and first layers that
// make it from a plain image. Nothing is reordered: a band of input is used in place, or copied
// with its border while it is in the cache. A residual is where the sums start.
#include <algorithm>
#include <cstring>

#include "blocked.hpp"
#include "ops/blocked/conv_plan.hpp"
#include "ops/fused/activation.hpp"
#include "simd/blocked.hpp"
#include "simd/blocked_conv.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Channels of an image that a first layer reads as they are.
constexpr int64_t kMostPlain = 4;

bool is_depthwise(int64_t groups, const int64_t* w) { return groups > 1 && w[1] == 1; }

ConvFilters filters_of(int64_t groups, bool plain, const Tensor& w) {
  ConvFilters f;
  f.block = channel_block();
  f.inner = plain ? 1 : f.block;
  f.taps = w.size(2, w.rank);
  f.in_channels = w.dim(1);
  f.depthwise = is_depthwise(groups, w.shape);
  f.groups = f.depthwise ? blocks_of(w.dim(0), f.block) : groups;
  f.in_blocks = plain ? w.dim(1) : blocks_of(w.dim(1), f.block);
  f.out_blocks = f.depthwise ? 1 : blocks_of(w.dim(0) / groups, f.block);
  return f;
}

/// [group, output block, input block, tap, input channel of the block, output channel].
void pack(const ConvFilters& f, const float* w, int64_t filters, float* to) {
  const int64_t row = (f.depthwise ? 1 : f.in_channels) * f.taps;
  for (int64_t o = 0; o < f.groups * f.out_blocks; ++o) {
    const int64_t lanes = std::min(f.block, filters - o * f.block);
    for (int64_t c = 0; c < (f.depthwise ? 1 : f.in_channels); c += f.inner) {
      const int64_t inner = f.depthwise ? 1 : std::min(f.inner, f.in_channels - c);
      for (int64_t t = 0; t < f.taps; ++t) {
        for (int64_t i = 0; i < inner; ++i) {
          const float* from = w + o * f.block * row + (c + i) * f.taps + t;
          for (int64_t k = 0; k < lanes; ++k) to[k] = from[k * row];
          std::fill(to + lanes, to + f.block, 0.0f);
          to += f.block;
        }
      }
    }
  }
}

/// The pointers of one launch.
struct Call {
  const float* x;
  const float* filters;
  const float* bias;      ///< Of all blocks, or NULL.
  const float* residual;  ///< Or NULL; may be y.
  float* y;
  const int64_t* steps;
  float* scratch;
  int64_t used;      ///< Channels of the last block.
  int32_t mask[32];  ///< Of two blocks, the last one behind; see BlockedBand.
};

class BlockedConv final : public Kernel {
 public:
  explicit BlockedConv(const kit::NodeView& node)
      : op_(node.op()),
        window_(node),
        groups_(node.integer("group", 1)),
        plain_(node.input(0)->layout == 0),
        activation_(node) {
    float zero = 0;
    activation_.apply(&zero, 1);
    zero_stays_ = zero == 0;
  }

  uint64_t workspace(const Context& context) const override {
    if (context.output(0).size() == 0) return 0;
    const ConvFilters f = filters(context);
    const ConvPlan p(f, space(context), context.input(0).dim(0), 1);
    return padded_bytes(f.in_blocks * f.taps, sizeof(int64_t)) +
           padded_bytes(f.groups * f.out_blocks * f.block, sizeof(float)) +
           padded_bytes(f.total(), sizeof(float)) +
           static_cast<uint64_t>(slot_capacity(context)) *
               padded_bytes(p.scratch(f), sizeof(float));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    kit::require(x.dim(1) == w.dim(1) * groups_, op_, ": X has ", x.dim(1), " channels, W ",
                 w.dim(0), "x", w.dim(1), ", group is ", groups_);
    const ConvFilters f = filters(context);
    const ConvPlan p(f, space(context), x.dim(0), slot_count(context));
    Carver carver(context.workspace);
    auto* steps = carver.take<int64_t>(f.in_blocks * f.taps);
    auto* bias = carver.take<float>(f.groups * f.out_blocks * f.block);
    auto* own = carver.take<float>(f.total());
    Call call = {};
    call.x = x.as<float>();
    call.y = y.mut<float>();
    call.filters = static_cast<const float*>(context.packed_input(1));
    if (call.filters == nullptr) {
      pack(f, w.as<float>(), w.dim(0), own);
      call.filters = own;
    }
    if (context.has_input(2)) {
      const Tensor& given = context.input(2);
      kit::require(given.size() == w.dim(0), op_, ": B has ", given.size(), " elements, W ",
                   w.dim(0), " filters");
      std::copy_n(given.as<float>(), w.dim(0), bias);
      std::fill(bias + w.dim(0), bias + f.groups * f.out_blocks * f.block, 0.0f);
      call.bias = bias;
    }
    if (const Tensor* residual = residual_input(context, op_)) {
      call.residual = residual->as<float>();
    }
    p.fill_steps(f, steps);
    call.steps = steps;
    call.scratch = carver.take<float>(0);
    call.used = BlockedShape(y).used();
    std::fill_n(call.mask, f.block + call.used, -1);
    parallel_slots(context, p.tasks(), slot_count(context),
                   [&](int64_t task, int64_t slot) { part(f, p, call, task, slot); });
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != 1) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    const ConvFilters f = filters_of(groups_, plain_, w);
    info.size = static_cast<uint64_t>(f.total()) * sizeof(float);
    const std::string layout = "blocked" + std::to_string(f.block) + "_" + std::to_string(f.inner) +
                               "_g" + std::to_string(groups_);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    pack(filters_of(groups_, plain_, source), source.as<float>(), source.dim(0),
         static_cast<float*>(target));
  }

 private:
  ConvFilters filters(const Context& context) const {
    return filters_of(groups_, plain_, context.input(1));
  }
  Space space(const Context& context) const {
    return window_.resolve(context.input(0), context.output(0), context.input(1).shape + 2, false);
  }

  /// One task: a band of one group of one image, for a run of output blocks.
  void part(const ConvFilters& f, const ConvPlan& p, const Call& call, int64_t task,
            int64_t slot) const {
    const int64_t run = task % p.runs;
    const int64_t band = task / p.runs % p.bands;
    const int64_t image = task / p.runs / p.bands;
    const int64_t begin = p.positions() * band / p.bands;
    const int64_t end = p.positions() * (band + 1) / p.bands;
    const Space& s = p.s;
    DenseBand b;
    b.rows = p.along_width ? 1 : end - begin;
    b.cols = p.along_width ? end - begin : s.out[2];
    b.x = call.x + image * f.in_blocks * f.inner * s.in[1] * s.in[2];
    if (p.copied) {
      float* scratch = call.scratch + slot * ((p.scratch(f) + 15) / 16 * 16);
      copy(f, p, b.x, begin, b.rows, scratch);
      b.x = scratch;
    } else if (!f.depthwise) {
      b.x += begin * (p.along_width ? f.inner : p.x_row);
    }
    b.x_row = p.x_row;
    b.y_row = s.out[2] * f.block;
    b.y_block = s.out[1] * s.out[2] * f.block;
    b.inner = f.inner;
    b.tail = f.in_channels % f.inner;
    b.plain = plain_;
    b.filter_block = f.per_block();
    const int64_t start = begin * (p.along_width ? f.block : b.y_row);
    const int64_t group = image % f.groups;
    const int64_t pairs_end = p.pairs * (run + 1) / p.runs;
    for (int64_t pair = p.pairs * run / p.runs; pair < pairs_end; ++pair) {
      const int64_t block = 2 * pair;
      const int64_t plane = image * f.out_blocks + block;
      b.blocks = static_cast<int>(std::min<int64_t>(2, f.out_blocks - block));
      b.y = call.y + plane * b.y_block + start;
      b.start = call.residual != nullptr ? call.residual + plane * b.y_block + start : nullptr;
      const int64_t filter = group * f.out_blocks + block;
      b.bias = call.bias != nullptr ? call.bias + filter * f.block : nullptr;
      b.filters = call.filters + filter * f.per_block();
      const bool last = group == f.groups - 1 && block + b.blocks == f.out_blocks;
      const bool part_used = last && call.used < f.block;
      const int64_t used = part_used ? call.used : f.block;
      b.mask = part_used ? call.mask + (2 - b.blocks) * f.block : nullptr;
      if (f.depthwise) {
        depthwise(p, b, begin, used, f.block);
        continue;
      }
      b.half = 2 * used <= f.block;
      // Filters of the next pair, if there is one, are fetched while these are used.
      b.ahead = pair + 1 < pairs_end && block + 4 <= f.out_blocks ? 2 * f.per_block() : 0;
      stretches(f, p, call, b, used);
    }
  }

  void depthwise(const ConvPlan& p, const DenseBand& band, int64_t begin, int64_t used,
                 int64_t block) const {
    const Space& s = p.s;
    DepthwiseImage image;
    static_cast<BlockedBand&>(image) = band;
    image.clamp = activation_.clamp<float>();
    for (int i = 0; i < 2; ++i) {
      image.in[i] = s.in[i + 1];
      image.kernel[i] = s.kernel[i + 1];
      image.stride[i] = s.stride[i + 1];
      image.dilation[i] = s.dilation[i + 1];
      image.pad[i] = s.pad[i + 1];
    }
    if (p.copied) {
      image.in[0] = p.rows_in(band.rows);
      image.in[1] = p.phase_width;
      image.pad[0] = image.pad[1] = 0;
    } else if (p.along_width) {
      image.pad[1] -= begin * s.stride[2];
    } else {
      image.first = begin;
    }
    CHIPDOCK_CPU_DISPATCH(blocked_depthwise)(image);
    if (activation_.clamp<float>() == nullptr) finish(band, used, block);
  }

  /// The band in parts that stay in the first-level cache from their first sum to the activation.
  void stretches(const ConvFilters& f, const ConvPlan& p, const Call& call, const DenseBand& band,
                 int64_t used) const {
    constexpr int64_t kPixels = 112;
    const int64_t most = p.along_width ? kPixels : std::max<int64_t>(1, kPixels / band.cols);
    const int64_t total = p.along_width ? band.cols : band.rows;
    const int64_t x_step = p.along_width ? f.inner : band.x_row;
    const int64_t y_step = p.along_width ? f.block : band.y_row;
    for (int64_t at = 0; at < total; at += most) {
      DenseBand b = band;
      (p.along_width ? b.cols : b.rows) = std::min(most, total - at);
      b.x += at * x_step;
      b.y += at * y_step;
      if (b.start != nullptr) b.start += at * y_step;
      sums(f, call, b);
      if (activation_.clamp<float>() == nullptr) finish(b, used, f.block);
    }
  }

  /// The input of a band that starts at position `begin`, with its border.
  void copy(const ConvFilters& f, const ConvPlan& p, const float* from, int64_t begin, int64_t rows,
            float* to) const {
    const Space& s = p.s;
    BlockedPad pad;
    pad.height = s.in[1], pad.width = s.in[2];
    pad.plain = plain_;
    pad.first = (p.along_width ? 0 : begin * s.stride[1]) - s.pad[1];
    pad.row_gap = p.row_gap();
    pad.rows = p.rows_in(rows);
    pad.left = s.pad[2] - (p.along_width ? begin * s.stride[2] : 0);
    pad.stride = p.gather;
    pad.phases = p.phases;
    pad.phase_width = p.phase_width;
    for (int64_t i = 0; i < f.in_blocks; ++i) {
      pad.image = from + i * s.in[1] * s.in[2] * f.inner;
      pad.target = to + i * p.plane;
      CHIPDOCK_CPU_DISPATCH(blocked_pad)(pad);
    }
  }

  /// All input blocks, as many at once as have filters that leave room in the second-level cache.
  void sums(const ConvFilters& f, const Call& call, DenseBand b) const {
    const float* filters = b.filters;
    const int32_t* mask = b.mask;
    const int64_t next_pair = b.ahead;
    const int64_t per_input = f.taps * f.inner * f.block;
    const int64_t full = f.in_channels / f.inner;
    const int64_t most = std::max<int64_t>(1, 32768 / (2 * per_input));
    for (int64_t i = 0; i < f.in_blocks; i += most) {
      const int64_t end = std::min(f.in_blocks, i + most);
      const bool last = end == f.in_blocks;
      b.steps = call.steps + i * f.taps;
      b.count = (end - i) * f.taps;
      b.full = std::max<int64_t>(0, std::min(full, end) - i) * f.taps;
      b.filters = filters + i * per_input;
      b.clamp = last ? activation_.clamp<float>() : nullptr;
      b.mask = last ? mask : nullptr;
      b.ahead = !last ? (end - i) * per_input : next_pair != 0 ? next_pair - i * per_input : 0;
      CHIPDOCK_CPU_DISPATCH(blocked_dense)(b);
      b.start = b.y;
      b.bias = nullptr;
    }
  }

  /// An activation that is more than bounds, and zeros again where there is no channel.
  void finish(const DenseBand& b, int64_t used, int64_t block) const {
    const int64_t pixels = b.rows * b.cols;
    for (int i = 0; i < b.blocks; ++i) {
      float* y = b.y + i * b.y_block;
      activation_.apply(y, pixels * block);
      if (i == b.blocks - 1 && used < block && !zero_stays_) zero_lanes(y, pixels, block, used);
    }
  }

  std::string op_;
  WindowAttributes window_;
  int64_t groups_;
  bool plain_;
  FusedActivation activation_;
  bool zero_stays_ = true;
};

bool reasonable_steps(const kit::NodeView& node) {
  for (const char* name : {"strides", "dilations", "pads"}) {
    for (const int64_t value : node.integers(name)) {
      if (value < 0 || value > 4096) return false;
    }
  }
  return true;
}

/// Constant filters whose groups are whole blocks, or one channel each.
int32_t supports(const kit::NodeView& node) {
  supports_fused(node);
  const chipdock_value* x = node.input(0);
  const chipdock_value* w = node.input(1);
  const chipdock_value* y = node.output(0);
  if (x == nullptr || w == nullptr || !is_blocked(y)) return CHIPDOCK_SUPPORTS_NO;
  if (w->constant == nullptr || w->rank < 3 || w->rank > 4 || x->rank != w->rank ||
      !reasonable_steps(node) || (node.has_input(3) && !is_blocked(node.input(3)))) {
    return CHIPDOCK_SUPPORTS_NO;
  }
  for (int i = 0; i < w->rank; ++i) {
    if (w->dims[i] <= 0) return CHIPDOCK_SUPPORTS_NO;
  }
  const int64_t groups = node.integer("group", 1);
  const int64_t block = channel_block();
  // Channels that are not known before the run are those of the filters, or the run says no.
  const int64_t channels = w->dims[1] * groups;
  if (groups < 1 || (x->dims[1] >= 0 && x->dims[1] != channels) || w->dims[0] % groups != 0) {
    return CHIPDOCK_SUPPORTS_NO;
  }
  // Few channels are read as they are, and would be mostly zeros in a block.
  const bool first = groups == 1 && channels <= kMostPlain;
  if (x->layout == 0 || first) {
    return x->layout == 0 && first ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
  }
  const bool fits = groups == 1 || (is_depthwise(groups, w->dims) && w->dims[0] == groups) ||
                    (w->dims[1] % block == 0 && w->dims[0] / groups % block == 0);
  // A vector for a few channels is mostly waste.
  return fits && w->dims[0] >= 4 ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

/// Ahead of every kernel of layout 0, unless much of what is stored or computed is no channel. A last
/// block of 16 that is at most half full is computed by halves.
double score(const kit::NodeView& node) {
  const int64_t channels = node.input(1)->dims[0];
  const int64_t block = channel_block();
  const int64_t unit = block == 16 ? 8 : block;
  const int64_t stored = blocks_of(channels, block) * block;
  const int64_t computed = blocks_of(channels, unit) * unit;
  return stored <= 2 * channels && 2 * computed <= 3 * channels ? 20.0 : 0.0;
}

}  // namespace

KernelSpan conv_blocked_kernels() {
  KernelDef def{"Conv", 1};
  def.name = "conv_blocked_f32";
  def.create = make<BlockedConv>;
  def.supports = supports;
  def.score = score;
  def.dtypes = {{0, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
  def.layouts = blocked_arguments({0, 3, -1});
  return {def, fused(def, "FusedConv", "fused_conv_blocked_f32")};
}

}  // namespace chipdock::plugin::cpu
