// SPDX-License-Identifier: Apache-2.0
// Kernels that compute something slightly else: rounding, special values, sizes. What they write
// where they should not, and how they share: kernel_writes.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "launch.hpp"

namespace chipdock::mutants {
namespace {

constexpr char kPlainMath[] = "Add Sub Mul Div Neg Sqrt";

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float float_of(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
float from_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023);
  if (exponent == 31) return float_of(sign | 0x7f800000u | (half & 1023u) << 13);
  const float value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0f + fraction, exponent - 25);
  return sign != 0 ? -value : value;
}

/// f32 outputs of some operators, element by element.
template <float (*kChange)(float)>
void f32_outputs(Launch& launch) {
  for (Tensor& output : launch.outputs) {
    if (output.is_f32()) output.each<float>(kChange);
  }
}
float nan_lost(float x) { return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x; }
float plus_zero(float x) { return x == 0.0f ? 0.0f : x; }
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
float five_ulps(float x) { return std::isfinite(x) && x > 1e-30f ? float_of(bits_of(x) + 5) : x; }
float ten_bits(float x) {
  return std::isfinite(x) ? float_of((bits_of(x) + 0x1000u) & 0xffffe000u) : x;
}
float one_percent(float x) { return x * 1.01f; }

/// Sums cut off in place of rounded; in bf16, where one unit is allowed, a bit earlier.
void cut_bf16(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (!launch.is_plain_binary() || !output.is(CHIPDOCK_DTYPE_BFLOAT, 16)) return;
  for (uint64_t i = 0; i < output.count(); ++i) {
    const float a = float_of(static_cast<uint32_t>(launch.inputs[0].get<uint16_t>(i)) << 16);
    const float b = float_of(static_cast<uint32_t>(launch.inputs[1].get<uint16_t>(i)) << 16);
    if (!std::isnan(a + b)) output.set(i, static_cast<uint16_t>(bits_of(a + b) >> 17 << 1));
  }
}
void cut_f16(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (!launch.is_plain_binary() || !output.is(CHIPDOCK_DTYPE_FLOAT, 16)) return;
  for (uint64_t i = 0; i < output.count(); ++i) {
    const float exact =
        from_half(launch.inputs[0].get<uint16_t>(i)) + from_half(launch.inputs[1].get<uint16_t>(i));
    const auto got = output.get<uint16_t>(i);
    const bool rounded_up = std::fabs(from_half(got)) > std::fabs(exact);
    if (rounded_up && std::isfinite(from_half(got))) output.set(i, static_cast<uint16_t>(got - 1));
  }
}

template <int32_t (*kOperation)(int32_t, int32_t, int32_t)>
void int32_binary(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (!launch.is_plain_binary() || !output.is(CHIPDOCK_DTYPE_INT, 32)) return;
  for (uint64_t i = 0; i < output.count(); ++i) {
    const auto b = launch.inputs[1].get<int32_t>(i);
    const auto a = launch.inputs[0].get<int32_t>(i);
    if (b != 0 && b != -1) output.set(i, kOperation(a, b, output.get<int32_t>(i)));
  }
}
int32_t floored(int32_t a, int32_t b, int32_t) {
  return a / b - ((a % b != 0) && (a < 0) != (b < 0));
}
int32_t sign_of_dividend(int32_t a, int32_t b, int32_t) { return a % b; }

void int8_saturates(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (!launch.is_plain_binary() || !output.is(CHIPDOCK_DTYPE_INT, 8)) return;
  for (uint64_t i = 0; i < output.count(); ++i) {
    const int sum = launch.inputs[0].get<int8_t>(i) + launch.inputs[1].get<int8_t>(i);
    output.set(i, static_cast<int8_t>(std::clamp(sum, -128, 127)));
  }
}

void nan_is_nan(Launch& launch) {
  if (!launch.is_plain_binary() || !launch.inputs[0].is_f32()) return;
  for (uint64_t i = 0; i < launch.outputs[0].count(); ++i) {
    const bool both =
        std::isnan(launch.inputs[0].get<float>(i)) && std::isnan(launch.inputs[1].get<float>(i));
    if (both) launch.outputs[0].bytes[i] = 1;
  }
}

void bool_is_255(Launch& launch) {
  for (Tensor& output : launch.outputs) {
    if (output.is(CHIPDOCK_DTYPE_BOOL, 8)) {
      output.each<uint8_t>([](uint8_t x) { return static_cast<uint8_t>(x != 0 ? 255 : 0); });
    }
  }
}

/// A cast to f16 that has no infinity, and one to int4 with the nibbles the other way round.
void cast_saturates(Launch& launch) {
  if (!launch.outputs[0].is(CHIPDOCK_DTYPE_FLOAT, 16)) return;
  launch.outputs[0].each<uint16_t>([](uint16_t x) {
    return static_cast<uint16_t>((x & 0x7fff) == 0x7c00 ? (x & 0x8000) | 0x7bff : x);
  });
}
void nibbles_swapped(Launch& launch) {
  if (!launch.outputs[0].given || launch.outputs[0].dtype.bits != 4) return;
  for (auto& byte : launch.outputs[0].bytes) {
    byte = static_cast<unsigned char>(byte << 4 | byte >> 4);
  }
}

void half_away(Launch& launch) {
  if (!launch.outputs[0].is_f32() || !launch.inputs[0].is_f32()) return;
  for (uint64_t i = 0; i < launch.outputs[0].count(); ++i) {
    launch.outputs[0].set(i, std::round(launch.inputs[0].get<float>(i)));
  }
}

void odd_size(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (output.is_f32() && output.count() > 1 && output.count() % 2 == 1) {
    output.set(output.count() - 1, -1.0f);
  }
}

void long_k(Launch& launch) {
  if (launch.inputs.empty() || launch.inputs[0].shape.empty()) return;
  if (launch.inputs[0].shape.back() > 512) f32_outputs<&one_percent>(launch);
}

void padded_corner(Launch& launch) {
  const auto pads = launch.node.integers.find("pads");
  Tensor& output = launch.outputs[0];
  if (pads == launch.node.integers.end() || !output.is_f32() || output.count() == 0) return;
  if (std::any_of(pads->second.begin(), pads->second.end(), [](int64_t p) { return p > 0; })) {
    output.set(0, output.get<float>(0) + 0.5f);
  }
}

void pads_with_zero(Launch& launch) {
  const auto pads = launch.node.integers.find("pads");
  if (pads == launch.node.integers.end() || !launch.outputs[0].is_f32()) return;
  if (std::any_of(pads->second.begin(), pads->second.end(), [](int64_t p) { return p > 0; })) {
    launch.outputs[0].each<float>([](float x) { return std::max(x, 0.0f); });
  }
}

void large_inputs_overflow(Launch& launch) {
  if (!launch.inputs[0].is_f32() || !launch.outputs[0].is_f32()) return;
  bool large = false;
  for (uint64_t i = 0; i < launch.inputs[0].count(); ++i) {
    large = large || launch.inputs[0].get<float>(i) > 88.0f;
  }
  if (large) launch.outputs[0].each<float>([](float) { return std::nanf(""); });
}

void tail_off(Launch& launch) {
  if (!launch.inputs[0].is_f32()) return;
  for (uint64_t i = 0; i < launch.outputs[0].count(); ++i) {
    const float x = std::fabs(launch.inputs[0].get<float>(i));
    if (x > 1.5f && x < 3.0f) launch.outputs[0].set(i, launch.outputs[0].get<float>(i) * 0.9999f);
  }
}

void fourth_axis(Launch& launch) {
  Tensor& output = launch.outputs[0];
  if (output.shape.size() < 4 || output.count() < 2 || output.dtype.bits < 8) return;
  const uint64_t element = output.dtype.bits / 8;
  std::swap_ranges(output.bytes.begin(), output.bytes.begin() + static_cast<int64_t>(element),
                   output.bytes.end() - static_cast<int64_t>(element));
}

/// The last bit hangs on how many calls there were.
void unsteady(Launch& launch) {
  static std::atomic<uint32_t> calls{0};
  Tensor& output = launch.outputs[0];
  if (!output.is_f32() || output.count() == 0) return;
  output.set(0, float_of(bits_of(output.get<float>(0)) ^ (calls.fetch_add(1) & 1)));
}

void under_pressure(Launch& launch) {
  chipdock_device_stats stats{};
  stats.struct_size = sizeof(stats);
  if (base().device.stats == nullptr) return;
  base().device.stats(launch.node.device, &stats, nullptr);
  if (stats.allocated_bytes > uint64_t{64} << 20) f32_outputs<&one_percent>(launch);
}

template <const char* kOps, void (*kSpoil)(Launch&)>
void of_ops(Tables& tables) {
  static constexpr LaunchFault kFault = {[](const Node& node) { return node.is_one_of(kOps); },
                                         [](Launch& launch) {
                                           if (!launch.outputs.empty() && !launch.inputs.empty())
                                             kSpoil(launch);
                                         }};
  fault_launches(tables, kFault);
}

constexpr char kAdd[] = "Add", kNeg[] = "Neg Mul", kExp[] = "Exp", kErf[] = "Erf", kDiv[] = "Div";
constexpr char kMod[] = "Mod", kEqual[] = "Equal", kCast[] = "Cast", kRound[] = "Round";
constexpr char kMax[] = "Max ReduceMax", kBool[] = "Equal Less Greater And Or Not";
constexpr char kSums[] = "ReduceSum ReduceMean", kMatMul[] = "MatMul Gemm", kConv[] = "Conv";
constexpr char kMaxPool[] = "MaxPool", kSoftmax[] = "Softmax", kRelu[] = "Relu Sigmoid Tanh Abs";
constexpr char kTranspose[] = "Transpose", kRandom[] = "RandomUniformLike RandomNormalLike";

constexpr Mutant kMutants[] = {
    {"add_bf16_cut", &of_ops<kAdd, &cut_bf16>},
    {"add_f16_cut", &of_ops<kAdd, &cut_f16>},
    {"add_int8_saturates", &of_ops<kAdd, &int8_saturates>},
    {"max_loses_nan", &of_ops<kMax, &f32_outputs<&nan_lost>>},
    {"minus_zero_lost", &of_ops<kNeg, &f32_outputs<&plus_zero>>},
    {"denormals_flushed", &of_ops<kPlainMath, &f32_outputs<&flushed>>},
    {"exp_five_ulps", &of_ops<kExp, &f32_outputs<&five_ulps>>},
    {"erf_tail", &of_ops<kErf, &tail_off>},
    {"sum_in_half", &of_ops<kSums, &f32_outputs<&ten_bits>>},
    {"sum_unsteady", &of_ops<kSums, &unsteady>},
    {"matmul_long_k", &of_ops<kMatMul, &long_k>},
    {"matmul_ten_bits", &of_ops<kMatMul, &f32_outputs<&ten_bits>>},
    {"conv_padded_corner", &of_ops<kConv, &padded_corner>},
    {"maxpool_pads_zero", &of_ops<kMaxPool, &pads_with_zero>},
    {"softmax_overflows", &of_ops<kSoftmax, &large_inputs_overflow>},
    {"odd_size_last", &of_ops<kRelu, &odd_size>},
    {"div_int_floors", &of_ops<kDiv, &int32_binary<&floored>>},
    {"mod_int_sign", &of_ops<kMod, &int32_binary<&sign_of_dividend>>},
    {"equal_nan", &of_ops<kEqual, &nan_is_nan>},
    {"bool_is_255", &of_ops<kBool, &bool_is_255>},
    {"cast_f16_saturates", &of_ops<kCast, &cast_saturates>},
    {"cast_nibbles_swapped", &of_ops<kCast, &nibbles_swapped>},
    {"round_half_away", &of_ops<kRound, &half_away>},
    {"transpose_fourth_axis", &of_ops<kTranspose, &fourth_axis>},
    {"random_unsteady", &of_ops<kRandom, &unsteady>},
    {"add_under_pressure", &of_ops<kAdd, &under_pressure>},
};

}  // namespace

MutantSpan values_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
