// SPDX-License-Identifier: Apache-2.0
// Inner loops of pooling, written so that the compiler vectorises them; see pool.hpp.
#include "simd/pool.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

constexpr int kLanes = 32;  // Independent sums, enough to hide the latency of an addition.

float larger(float a, float b) { return b > a || b != b ? b : a; }

/// The stride as a constant lets the compiler use whole-vector loads.
template <class Step>
void each_row(const float* in, int64_t stride, int64_t count, float* __restrict out,
              const Step& step) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = step(out[i], in[i]);
  } else if (stride == 2) {
    for (int64_t i = 0; i < count; ++i) out[i] = step(out[i], in[2 * i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = step(out[i], in[i * stride]);
  }
}

}  // namespace

void pool_max_row(const float* in, int64_t stride, int64_t count, float* out) {
  each_row(in, stride, count, out, larger);
}

void pool_add_row(const float* in, int64_t stride, int64_t count, float* out) {
  each_row(in, stride, count, out, [](float a, float b) { return a + b; });
}

float pool_sum(const float* in, int64_t count) {
  float total = 0;
  constexpr int64_t kBlock = 8192;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    float lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += in[i + lane];
    }
    for (int lane = 0; i < end; ++i, ++lane) lanes[lane] += in[i];
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    total += lanes[0];
  }
  return total;
}

float pool_max(const float* in, int64_t count) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -__builtin_inff();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = larger(lanes[lane], in[i + lane]);
  }
  for (int lane = 0; i < count; ++i, ++lane) lanes[lane] = larger(lanes[lane], in[i]);
  for (int lane = 1; lane < kLanes; ++lane) lanes[0] = larger(lanes[0], lanes[lane]);
  return lanes[0];
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
