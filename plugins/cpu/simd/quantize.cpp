// SPDX-License-Identifier: Apache-2.0
// Floats to bytes and back, one vector of floats at a time.
#include "simd/quantize.hpp"

#include <cstddef>
#include <cstring>

#include "simd/bytes.hpp"
#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

struct Quantizer {
  explicit Quantizer(const ByteScale& by)
      : scale(splat(by.scale)),
        zero(splat(by.zero)),
        low(splat(by.is_signed ? -128.0F : 0.0F)),
        high(splat(by.is_signed ? 127.0F : 255.0F)) {}
  Vi operator()(Vf x) const {
    const Vf moved = rint(x / scale) + zero;
    const Vf held = fast_min(fast_max(moved, low), high);
    const Vf sure = moved == moved ? held : Vf{};
    return __builtin_convertvector(sure, Vi);
  }
  Vf scale, zero, low, high;
};

template <bool kSigned>
void dequantize(const uint8_t* x, int64_t n, const ByteScale& by, float* y) {
  const Vf scale = splat(by.scale), zero = splat(by.zero);
  const auto value = [&](const uint8_t* from) {
    return (__builtin_convertvector(load_bytes<kSigned>(from), Vf) - zero) * scale;
  };
  if (n < kLanes) {
    uint8_t some[kLanes] = {};
    std::memcpy(some, x, static_cast<size_t>(n));
    store_part(y, value(some), n);
    return;
  }
  for (int64_t i = 0; i < n; i += kLanes) {  // The last vector may overlap the one before it.
    const int64_t at = i + kLanes <= n ? i : n - kLanes;
    store(y + at, value(x + at));
  }
}

}  // namespace

void quantize_bytes(const float* x, int64_t n, const ByteScale& by, uint8_t* y) {
  const Quantizer quantizer(by);
  if (n < kLanes) {
    store_low_bytes(y, quantizer(load_part(x, n)), n);
    return;
  }
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t at = i + kLanes <= n ? i : n - kLanes;
    store_low_bytes(y + at, quantizer(load(x + at)), kLanes);
  }
}

void dequantize_bytes(const uint8_t* x, int64_t n, const ByteScale& by, float* y) {
  (by.is_signed ? dequantize<true> : dequantize<false>)(x, n, by, y);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
