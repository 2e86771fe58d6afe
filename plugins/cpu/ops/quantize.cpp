// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear: one scale, one per slice of an axis, or one per block along
// it. Computed in float; the quotient is rounded to the dtype that the operator divides in.
#include "simd/quantize.hpp"

#include <algorithm>
#include <cmath>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Walks a tensor and says which scale each element has.
class ScaleWalk {
 public:
  ScaleWalk(const Tensor& x, const Tensor& scale, int64_t axis, int64_t block, const char* op) {
    if (scale.size() == 1 && scale.rank <= 1) return;  // one for all
    axis = kit::normalize_axis(axis, x.rank, op);
    inner_ = x.size(axis + 1, x.rank);
    extent_ = x.shape[axis];
    if (scale.rank == 1 && (block == 0 || x.rank != 1)) {
      kit::require(scale.shape[0] == extent_, op, ": ", scale.shape[0], " scales for axis ", axis,
                   " with ", extent_);
      per_axis_ = true;
      return;
    }
    blocked_ = true;
    groups_ = scale.rank == x.rank ? scale.shape[axis] : 0;
    block_ = block > 0 ? block : groups_ > 0 ? (extent_ + groups_ - 1) / groups_ : 1;
    kit::require(scale.rank == x.rank && groups_ == (extent_ + block_ - 1) / block_ &&
                     scale.size() == x.size(0, axis) * groups_ * inner_,
                 op, ": scales do not fit blocks of ", block_, " along axis ", axis,
                 "; each dim is the input's, that of the axis is divided by the block, rounded up");
  }

  void fill(const std::vector<float>& scales, int64_t at, int64_t n, float* out) const {
    if (!per_axis_ && !blocked_) {
      std::fill(out, out + n, scales.empty() ? 0.0F : scales[0]);
      return;
    }
    int64_t i = at % inner_, k = at / inner_ % extent_, o = at / inner_ / extent_;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t index = per_axis_ ? k : (o * groups_ + k / block_) * inner_ + i;
      out[j] = scales[static_cast<size_t>(index)];
      if (++i < inner_) continue;
      i = 0;
      if (++k < extent_) continue;
      k = 0;
      ++o;
    }
  }

  /// Elements in a row that share a scale, cut at multiples of it.
  int64_t run(int64_t size) const { return blocked_ ? 1 : per_axis_ ? inner_ : size; }
  size_t run_index(int64_t run) const { return per_axis_ ? static_cast<size_t>(run % extent_) : 0; }

 private:
  bool per_axis_ = false, blocked_ = false;
  int64_t inner_ = 1, extent_ = 1, block_ = 1, groups_ = 1;
};

/// Runs body(at, n) over blocks that start on a byte whatever the dtype.
template <class Body>
void over_blocks(const Context& context, int64_t n, const Body& body) {
  over(context, (n + kBlock - 1) / kBlock, kGrain / kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) body(b * kBlock, std::min(kBlock, n - b * kBlock));
  });
}

bool is_byte(chipdock_dtype dtype) { return is(dtype, kit::kInt8) || is(dtype, kit::kUint8); }

// Shorter runs of one scale are not worth a call each.
constexpr int64_t kLeastRun = 64;

/// Calls body(at, n, scale) for the runs of one scale, cut into grains.
template <class Body>
void over_runs(const Context& context, const ScaleWalk& walk, int64_t size, bool is_signed,
               const std::vector<float>& scales, const std::vector<float>& zeros,
               const Body& body) {
  const int64_t run = walk.run(size);
  context.parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const size_t index = walk.run_index(at / run);
      const int64_t next = std::min(end, (at / run + 1) * run);
      body(at, next - at, {scales[index], zeros.empty() ? 0.0F : zeros[index], is_signed});
      at = next;
    }
  });
}

std::vector<float> zero_points(const Context& context, const Tensor& scale, const char* op) {
  if (!context.has_input(2)) return {};
  const Tensor& zero = context.input(2);
  kit::require(zero.size() == scale.size(), op, ": ", zero.size(), " zero points for ",
               scale.size(), " scales");
  return load<float>(zero);
}

class Quantize final : public Kernel {
 public:
  explicit Quantize(const kit::NodeView& node)
      : axis_(node.integer("axis", 1)), block_(node.integer("block_size", 0)) {
    options_.saturate = node.integer("saturate", 1) != 0;
    const chipdock_dtype scale = node.input_dtype(1);
    const int64_t precision = node.integer("precision", 0);
    // Numbers of TensorProto.DataType; 0: as the scale.
    quotient_ = precision == 10   ? kit::kFloat16
                : precision == 16 ? kit::kBfloat16
                : precision != 0  ? kit::kFloat32
                                  : scale;
  }

  void run(const Context& context) const override {
    constexpr const char* kOp = "QuantizeLinear";
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const ScaleWalk walk(x, context.input(1), axis_, block_, kOp);
    const std::vector<float> scales = load<float>(context.input(1));
    const std::vector<float> zeros = zero_points(context, context.input(1), kOp);
    if (is(x.dtype, kit::kFloat32) && is(quotient_, kit::kFloat32) && is_byte(y.dtype) &&
        walk.run(x.size()) >= kLeastRun) {
      const bool is_signed = y.dtype.code == CHIPDOCK_DTYPE_INT;
      over_runs(context, walk, x.size(), is_signed, scales, zeros,
                [&](int64_t at, int64_t n, const ByteScale& by) {
                  CHIPDOCK_CPU_DISPATCH(quantize_bytes)
                  (x.as<float>() + at, n, by, y.mut<uint8_t>() + at);
                });
      return;
    }
    const FloatCodec from(x.dtype), to(y.dtype);
    const HalfCodec half = half_codec(quotient_);
    const bool is_integer =
        y.dtype.code == CHIPDOCK_DTYPE_INT || y.dtype.code == CHIPDOCK_DTYPE_UINT;
    const bool is_signed = y.dtype.code == CHIPDOCK_DTYPE_INT;
    const float high = std::ldexp(1.0F, is_signed ? y.dtype.bits - 1 : y.dtype.bits) - 1;
    const float low = is_signed ? -high - 1 : 0;
    // Added to floats only where it is not 0, to keep the sign of zero.
    const bool moves = std::any_of(zeros.begin(), zeros.end(), [](float z) { return z != 0; });
    over_blocks(context, x.size(), [&](int64_t at, int64_t n) {
      alignas(64) float v[kBlock], s[kBlock];
      from.read(x.data, at, n, v);
      walk.fill(scales, at, n, s);
      for (int64_t i = 0; i < n; ++i) v[i] /= s[i];
      if (half) {
        uint16_t narrow[kBlock];
        half.narrow(v, narrow, n);
        half.widen(narrow, v, n);
      }
      if (is_integer ? !zeros.empty() : moves) walk.fill(zeros, at, n, s);
      if (!is_integer && moves) {
        for (int64_t i = 0; i < n; ++i) v[i] += s[i];
      }
      if (is_integer) {
        for (int64_t i = 0; i < n; ++i) {
          const float rounded = std::nearbyint(v[i]) + (zeros.empty() ? 0.0F : s[i]);
          v[i] = std::isnan(rounded) ? 0.0F : std::min(std::max(rounded, low), high);
        }
      }
      to.write(v, at, n, y.data, options_);
    });
  }

 private:
  int64_t axis_, block_;
  NarrowOptions options_;
  chipdock_dtype quotient_{};
};

class Dequantize final : public Kernel {
 public:
  explicit Dequantize(const kit::NodeView& node)
      : axis_(node.integer("axis", 1)), block_(node.integer("block_size", 0)) {}

  void run(const Context& context) const override {
    constexpr const char* kOp = "DequantizeLinear";
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const ScaleWalk walk(x, context.input(1), axis_, block_, kOp);
    const std::vector<float> scales = load<float>(context.input(1));
    const std::vector<float> zeros = zero_points(context, context.input(1), kOp);
    if (is_byte(x.dtype) && is(y.dtype, kit::kFloat32) && walk.run(x.size()) >= kLeastRun) {
      const bool is_signed = x.dtype.code == CHIPDOCK_DTYPE_INT;
      over_runs(context, walk, x.size(), is_signed, scales, zeros,
                [&](int64_t at, int64_t n, const ByteScale& by) {
                  CHIPDOCK_CPU_DISPATCH(dequantize_bytes)
                  (x.as<uint8_t>() + at, n, by, y.mut<float>() + at);
                });
      return;
    }
    const FloatCodec from(x.dtype), to(y.dtype);
    over_blocks(context, x.size(), [&](int64_t at, int64_t n) {
      alignas(64) float v[kBlock], s[kBlock];
      from.read(x.data, at, n, v);
      if (!zeros.empty()) {
        walk.fill(zeros, at, n, s);
        for (int64_t i = 0; i < n; ++i) v[i] -= s[i];
      }
      walk.fill(scales, at, n, s);
      for (int64_t i = 0; i < n; ++i) v[i] *= s[i];
      to.write(v, at, n, y.data);
    });
  }

 private:
  int64_t axis_, block_;
};

}  // namespace

KernelSpan quantize_kernels() {
  std::vector<chipdock_dtype> narrow = {kit::kInt8, kit::kUint8, kit::kInt16, kit::kUint16,
                                        kit::kInt32};
  std::vector<chipdock_dtype> wide = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
  const std::vector<chipdock_dtype> small = SmallFormat::all();
  narrow.insert(narrow.end(), small.begin(), small.end());
  std::vector<chipdock_dtype> scales = wide;
  scales.push_back(kit::kInt32);
  scales.push_back(kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E8M0FNU, 8));
  std::vector<chipdock_dtype> values = wide;
  values.push_back(kit::kInt32);
  return {{"QuantizeLinear",
           10,
           0,
           make<Quantize>,
           {{0, values}, {1, scales}, {2, narrow}, {-1, narrow}}},
          {"DequantizeLinear",
           10,
           0,
           make<Dequantize>,
           {{0, narrow}, {1, scales}, {2, narrow}, {-1, wide}}}};
}

}  // namespace chipdock::plugin::cpu
