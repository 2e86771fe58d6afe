// SPDX-License-Identifier: Apache-2.0
// Floats to bytes and back, one vector of floats at a time.
#include "simd/quantize.hpp"

#include <cstddef>
#include <cstring>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

// NOLINTBEGIN(modernize-use-using): attributes of a vector need a typedef
typedef uint8_t Unsigned __attribute__((vector_size(kLanes)));
typedef int8_t Signed __attribute__((vector_size(kLanes)));
// NOLINTEND(modernize-use-using)

struct Quantizer {
  explicit Quantizer(const ByteScale& by)
      : scale(splat(by.scale)),
        zero(splat(by.zero)),
        low(splat(by.is_signed ? -128.0F : 0.0F)),
        high(splat(by.is_signed ? 127.0F : 255.0F)) {}
  Unsigned operator()(Vf x) const {
    const Vf moved = rint(x / scale) + zero;
    const Vf held = fast_min(fast_max(moved, low), high);
    const Vf sure = moved == moved ? held : Vf{};
    return __builtin_convertvector(__builtin_convertvector(sure, Vi), Unsigned);
  }
  Vf scale, zero, low, high;
};

template <class Bytes>
Vf widened(const uint8_t* from, int64_t n) {
  Bytes bytes = {};
  std::memcpy(&bytes, from, static_cast<size_t>(n));
  return __builtin_convertvector(__builtin_convertvector(bytes, Vi), Vf);
}

template <class Bytes>
void dequantize(const uint8_t* x, int64_t n, const ByteScale& by, float* y) {
  const Vf scale = splat(by.scale), zero = splat(by.zero);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, (widened<Bytes>(x + i, kLanes) - zero) * scale);
  if (i < n) store_part(y + i, (widened<Bytes>(x + i, n - i) - zero) * scale, n - i);
}

}  // namespace

void quantize_bytes(const float* x, int64_t n, const ByteScale& by, uint8_t* y) {
  const Quantizer quantizer(by);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Unsigned bytes = quantizer(load(x + i));
    std::memcpy(y + i, &bytes, sizeof(bytes));
  }
  if (i == n) return;
  const Unsigned bytes = quantizer(load_part(x + i, n - i));
  std::memcpy(y + i, &bytes, static_cast<size_t>(n - i));
}

void dequantize_bytes(const uint8_t* x, int64_t n, const ByteScale& by, float* y) {
  (by.is_signed ? dequantize<Signed> : dequantize<Unsigned>)(x, n, by, y);
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
