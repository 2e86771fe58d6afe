// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool in the blocked layout, and the reductions over all pixels, whose output
// is blocked or plain: GlobalAveragePool, GlobalMaxPool, ReduceMean over the spatial axes.
#include "blocked.hpp"
#include "ops/window.hpp"
#include "simd/blocked_pool.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// The windows of one axis. An average that counts the border counts the end of it too.
void fill_windows(const Space& s, int axis, bool with_pads, PoolWindow* windows) {
  const int64_t step = s.dilation[axis];
  // Positions of a window from `from` that lie before `end`.
  const auto before = [&](int64_t from, int64_t end) {
    return from >= end ? 0 : std::min(s.kernel[axis], (end - 1 - from) / step + 1);
  };
  for (int64_t i = 0; i < s.out[axis]; ++i) {
    const int64_t from = i * s.stride[axis] - s.pad[axis];
    const int64_t begin = from < 0 ? (-from + step - 1) / step : 0;
    PoolWindow& w = windows[i];
    w.taps = std::max<int64_t>(before(from, s.in[axis]) - begin, 0);
    w.first = w.taps > 0 ? from + begin * step : 0;
    w.count = with_pads ? before(from, s.in[axis] + s.pad_end[axis]) : w.taps;
  }
}

class BlockedPoolKernel final : public Kernel {
 public:
  explicit BlockedPoolKernel(const kit::NodeView& node)
      : window_(node),
        kernel_(node.integers("kernel_shape")),
        average_(node.op() == "AveragePool"),
        with_pads_(node.integer("count_include_pad", 0) != 0) {}

  uint64_t workspace(const Context& context) const override {
    const Tensor& y = context.output(0);
    int64_t windows = 1;  // A missing axis has one.
    for (int32_t i = 2; i < y.rank; ++i) windows += y.dim(i);
    return padded_bytes(windows, sizeof(PoolWindow));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    kit::require(static_cast<size_t>(x.rank) == kernel_.size() + 2, "pooling over ", kernel_.size(),
                 " axes of an input of rank ", x.rank);
    const Space s = window_.resolve(x, y, kernel_.data(), false);
    const BlockedShape shape(y);
    auto* down = static_cast<PoolWindow*>(context.workspace);
    PoolWindow* across = down + s.out[1];
    fill_windows(s, 1, with_pads_, down);
    fill_windows(s, 2, with_pads_, across);
    const int64_t taps = s.kernel[1] * s.kernel[2];
    const int64_t grain = std::max<int64_t>(1, 16384 / (shape.plane() * taps));
    context.parallel_for(shape.batch * shape.blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        BlockedPool pool;
        pool.in = x.as<float>() + p * s.in[1] * s.in[2] * shape.block;
        pool.in_width = s.in[2];
        pool.down = down;
        pool.across = across;
        pool.rows = s.out[1], pool.cols = s.out[2];
        pool.dilation[0] = s.dilation[1], pool.dilation[1] = s.dilation[2];
        pool.average = average_;
        pool.out = y.mut<float>() + p * shape.plane();
        CHIPDOCK_CPU_DISPATCH(blocked_pool)(pool);
      }
    });
    // A window with nothing in it has the least number there is.
    if (!average_) zero_lanes(y);
  }

 private:
  WindowAttributes window_;
  std::vector<int64_t> kernel_;
  bool average_;
  bool with_pads_;
};

class BlockedGlobal final : public Kernel {
 public:
  explicit BlockedGlobal(const kit::NodeView& node) : average_(node.op() != "GlobalMaxPool") {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const BlockedShape shape(x);
    kit::require(y.rank >= 2 && y.dim(0) == shape.batch && y.dim(1) == shape.channels &&
                     y.size(2, y.rank) == 1,
                 "a reduction over pixels of ", shape.batch, "x", shape.channels,
                 " channels has an output of ", y.size(), " elements");
    const int64_t grain = std::max<int64_t>(1, 65536 / (shape.plane() + 1));
    context.parallel_for(shape.batch * shape.blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) plane(shape, x.as<float>(), y, p);
    });
  }

 private:
  void plane(const BlockedShape& shape, const float* x, const Tensor& y, int64_t p) const {
    alignas(64) float folded[16];
    const float* from = x + p * shape.plane();
    if (average_) {
      CHIPDOCK_CPU_DISPATCH(blocked_sum)(from, shape.pixels, folded);
      for (int64_t i = 0; i < shape.block; ++i) folded[i] /= static_cast<float>(shape.pixels);
    } else {
      CHIPDOCK_CPU_DISPATCH(blocked_max)(from, shape.pixels, folded);
    }
    const int64_t block = p % shape.blocks;
    const int64_t used = block == shape.blocks - 1 ? shape.used() : shape.block;
    if (y.layout == kBlocked) {
      std::fill(folded + used, folded + shape.block, 0.0f);
      std::copy_n(folded, shape.block, y.mut<float>() + p * shape.block);
    } else {
      std::copy_n(folded, used,
                  y.mut<float>() + p / shape.blocks * shape.channels + block * shape.block);
    }
  }

  bool average_;
};

int32_t supports_pool(const kit::NodeView& node) {
  const chipdock_value* x = node.input(0);
  const bool fits = is_blocked(x) && is_blocked(node.output(0)) && x->rank <= 4 &&
                    node.output(1) == nullptr &&
                    node.integers("kernel_shape").size() + 2 == static_cast<size_t>(x->rank);
  return fits ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

int32_t supports_global(const kit::NodeView& node) {
  const chipdock_value* y = node.output(0);
  const bool fits = is_blocked(node.input(0)) && y != nullptr && (y->layout == 0 || is_blocked(y));
  return fits ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

/// All axes from 2 on, as an attribute or as a constant; without dims kept the output is plain.
int32_t supports_mean(const kit::NodeView& node) {
  if (supports_global(node) != CHIPDOCK_SUPPORTS_YES) return CHIPDOCK_SUPPORTS_NO;
  const int32_t rank = node.input(0)->rank;
  if (rank > 31) return CHIPDOCK_SUPPORTS_NO;
  std::vector<int64_t> axes = node.integers("axes");
  if (const chipdock_value* given = node.input(1); given != nullptr) {
    using kit::operator==;
    if (given->constant == nullptr || !(given->dtype == kit::kInt64)) return CHIPDOCK_SUPPORTS_NO;
    const auto* from = static_cast<const int64_t*>(given->constant);
    axes.assign(from, from + given->constant_size / 8);
  }
  uint32_t seen = 0;
  for (int64_t axis : axes) {
    axis += axis < 0 ? rank : 0;
    if (axis < 2 || axis >= rank) return CHIPDOCK_SUPPORTS_NO;
    seen |= uint32_t{1} << axis;
  }
  const uint32_t all = ((uint32_t{1} << rank) - 1) & ~uint32_t{3};
  const bool fits =
      rank < 32 && seen == all && (node.integer("keepdims", 1) != 0 || node.output(0)->layout == 0);
  return fits ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

}  // namespace

KernelSpan pool_blocked_kernels() {
  KernelSpan span;
  const auto define = [&](const char* op, const char* name,
                          std::unique_ptr<Kernel> (*create)(const kit::NodeView&),
                          int32_t (*supports)(const kit::NodeView&)) {
    KernelDef def{op, 1};
    def.name = name;
    def.create = create;
    def.supports = supports;
    def.dtypes = {{0, {kit::kFloat32}}, {1, {kit::kInt64}}, {-1, {kit::kFloat32}}};
    def.layouts = blocked_arguments({0, -1});
    span.push_back(std::move(def));
  };
  define("MaxPool", "max_pool_blocked_f32", make<BlockedPoolKernel>, supports_pool);
  define("AveragePool", "average_pool_blocked_f32", make<BlockedPoolKernel>, supports_pool);
  define("GlobalAveragePool", "global_average_blocked_f32", make<BlockedGlobal>, supports_global);
  define("GlobalMaxPool", "global_max_blocked_f32", make<BlockedGlobal>, supports_global);
  define("ReduceMean", "mean_blocked_f32", make<BlockedGlobal>, supports_mean);
  return span;
}

}  // namespace chipdock::plugin::cpu
