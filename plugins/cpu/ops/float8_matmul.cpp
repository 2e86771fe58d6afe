// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul where one of the tensors is of an 8-bit float: in double, by plain loops. Bytes alone
// are in integer_matmul.cpp.
#include <cmath>

#include "ops/conversion/values.hpp"
#include "ops/matmul_sizes.hpp"
#include "ops/quantization.hpp"

namespace chipdock::plugin::cpu {
namespace {

bool is_float8(chipdock_dtype dtype) {
  return dtype.bits == 8 && dtype.code != CHIPDOCK_DTYPE_INT && dtype.code != CHIPDOCK_DTYPE_UINT;
}

class Float8MatMul final : public Kernel {
 public:
  explicit Float8MatMul(const kit::NodeView&) {}

  void run(const Context& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(3);
    const Tensor& y = context.output(0);
    const Sizes s = matmul_sizes(a, b);
    const Lines rows = Lines::rows(s, a);
    const Lines columns = Lines::columns(b);
    const std::vector<double> left = centred(context, 0, 2), right = centred(context, 3, 5);
    const std::vector<double> scale_a = spread(context, 1, rows, 0);
    const std::vector<double> scale_b = spread(context, 4, columns, 1);
    const std::vector<double> scale_y = spread(context, 6, rows, 0);
    const std::vector<double> zero_y = spread(context, 7, rows, 0);
    const bool whole = !is_float8(y.dtype);
    const float low = is_signed(y.dtype) ? -128 : 0;
    std::vector<float> out(static_cast<size_t>(y.size()));
    context.parallel_for(
        s.batch * s.m, kGrain / (s.n * s.k + 1) + 1, [&](int64_t from, int64_t end) {
          std::vector<double> sums(static_cast<size_t>(s.n));
          for (int64_t i = from; i < end; ++i) {
            const int64_t member = i / s.m;
            const int64_t member_b = s.member(s.step_b, member);
            const int64_t row = s.member(s.step_a, member) * s.m + i % s.m;
            std::fill(sums.begin(), sums.end(), 0.0);
            for (int64_t k = 0; k < s.k; ++k) {
              const double factor = left[static_cast<size_t>(row * s.k + k)];
              const double* with = right.data() + (member_b * s.k + k) * s.n;
              for (size_t j = 0; j < sums.size(); ++j) sums[j] += factor * with[j];
            }
            const auto at = static_cast<size_t>(i);
            for (size_t j = 0; j < sums.size(); ++j) {
              const size_t column = static_cast<size_t>(member_b * s.n) + j;
              const auto value = static_cast<float>(sums[j] * scale_a[at] * scale_b[column]);
              const float steps = value / static_cast<float>(scale_y[at]);
              const float moved = std::nearbyint(steps) + static_cast<float>(zero_y[at]);
              const float held = std::isnan(moved) ? 0.0F : std::clamp(moved, low, low + 255);
              out[at * sums.size() + j] = whole ? held : steps;
            }
          }
        });
    FloatCodec(y.dtype).write(out.data(), 0, y.size(), y.data);
  }

 private:
  /// The tensor without its zero point, which is one for all or lies along the lines.
  static std::vector<double> centred(const Context& context, uint32_t index, uint32_t zero) {
    std::vector<double> values = load<double>(context.input(index));
    const std::vector<double> point = load<double>(context.input(zero));
    kit::require(point.size() == 1, context.input(zero).size(),
                 " zero points where a tensor is of an 8-bit float, must be one");
    for (double& value : values) value -= point[0];
    return values;
  }
  static std::vector<double> spread(const Context& context, uint32_t index, const Lines& lines,
                                    int summed) {
    const std::vector<double> values = load<double>(context.input(index));
    std::vector<double> out(static_cast<size_t>(lines.count()));
    spread_lines(context.input(index), lines, summed, "a scale or zero point",
                 [&](int64_t line, int64_t at) {
                   out[static_cast<size_t>(line)] = values[static_cast<size_t>(at)];
                 });
    return out;
  }
};

}  // namespace

KernelSpan float8_matmul_kernels() {
  std::vector<chipdock_dtype> narrow = {kit::kInt8, kit::kUint8};
  for (const chipdock_dtype small : SmallFormat::all()) {
    if (is_float8(small)) narrow.push_back(small);
  }
  const std::vector<chipdock_dtype> scales = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
  KernelDef def;
  def.op = "QLinearMatMul";
  def.since = 21;
  def.name = "qlinear_matmul_float8";
  def.create = make<Float8MatMul>;
  def.supports = [](const kit::NodeView& node) -> int32_t {
    const bool any = is_float8(node.input_dtype(0)) || is_float8(node.input_dtype(3)) ||
                     is_float8(node.input_dtype(7));
    return any ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
  };
  def.dtypes = {{0, narrow}, {1, scales}, {2, narrow}, {3, narrow}, {4, scales},
                {5, narrow}, {6, scales}, {7, narrow}, {-1, narrow}};
  KernelSpan span;
  span.push_back(std::move(def));
  return span;
}

}  // namespace chipdock::plugin::cpu
