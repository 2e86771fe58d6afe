// SPDX-License-Identifier: Apache-2.0
// Codes of the small formats, by their parameters: no table for each, and no format with code of
// its own but the power-of-two scale.
#include "ops/conversion/small.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace chipdock::plugin::cpu {
namespace {

using Kind = SmallFormat::Kind;

constexpr SmallFormat floating(int code, int bits, int mantissa, int bias, int largest,
                               int infinity, int nan, bool zero_unsigned) {
  SmallFormat f{};
  f.type = kit::dtype(code, bits);
  f.kind = Kind::kFloat;
  f.mantissa = mantissa;
  f.bias = bias;
  f.largest = static_cast<uint8_t>(largest);
  f.infinity = static_cast<uint8_t>(infinity);
  f.nan = static_cast<uint8_t>(nan);
  f.zero_unsigned = zero_unsigned;
  return f;
}

constexpr SmallFormat other(int code, int bits, Kind kind) {
  SmallFormat f{};
  f.type = kit::dtype(code, bits);
  f.kind = kind;
  return f;
}

constexpr SmallFormat kFormats[] = {
    floating(CHIPDOCK_DTYPE_FLOAT8_E4M3FN, 8, 3, 7, 0x7e, 0x7f, 0x7f, false),
    floating(CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ, 8, 3, 8, 0x7f, 0x80, 0x80, true),
    floating(CHIPDOCK_DTYPE_FLOAT8_E5M2, 8, 2, 15, 0x7b, 0x7c, 0x7e, false),
    floating(CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ, 8, 2, 16, 0x7f, 0x80, 0x80, true),
    floating(CHIPDOCK_DTYPE_FLOAT6_E2M3FN, 6, 3, 1, 0x1f, 0x1f, 0x20, false),
    floating(CHIPDOCK_DTYPE_FLOAT6_E3M2FN, 6, 2, 3, 0x1f, 0x1f, 0x20, false),
    floating(CHIPDOCK_DTYPE_FLOAT4_E2M1FN, 4, 1, 1, 7, 7, 8, false),
    other(CHIPDOCK_DTYPE_FLOAT8_E8M0FNU, 8, Kind::kScale),
    other(CHIPDOCK_DTYPE_INT, 4, Kind::kSigned),
    other(CHIPDOCK_DTYPE_UINT, 4, Kind::kUnsigned),
    other(CHIPDOCK_DTYPE_INT, 2, Kind::kSigned),
    other(CHIPDOCK_DTYPE_UINT, 2, Kind::kUnsigned)};

uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, sizeof(u));
  return u;
}

/// The exponent field of a float is the code already.
uint8_t encode_scale(float value, const NarrowOptions& options) {
  const uint32_t bits = bits_of(value);
  uint32_t exponent = bits >> 23 & 0xffu;
  const uint32_t fraction = bits & 0x7fffffu;
  if (exponent == 0xffu) return 0xff;
  bool up = false;
  if (options.scale == RoundScale::kUp) up = fraction > 0;
  if (options.scale == RoundScale::kNearest) {
    up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
  }
  if (up && !(options.saturate && exponent == 0xfeu)) ++exponent;
  return static_cast<uint8_t>(exponent);
}

}  // namespace

const SmallFormat* SmallFormat::find(chipdock_dtype type) {
  using kit::operator==;
  for (const SmallFormat& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

std::vector<chipdock_dtype> SmallFormat::all() {
  std::vector<chipdock_dtype> types;
  for (const SmallFormat& format : kFormats) types.push_back(format.type);
  return types;
}

float SmallFormat::decode(uint8_t element) const {
  const int sign = 1 << (type.bits - 1);
  if (kind == Kind::kUnsigned) return static_cast<float>(element);
  if (kind == Kind::kSigned) {
    return static_cast<float>((element & sign) != 0 ? element - 2 * sign : element);
  }
  if (kind == Kind::kScale) {
    return element == 0xff ? std::nanf("") : std::ldexp(1.0f, element - 127);
  }
  const int magnitude = element & (sign - 1);
  const bool negative = (element & sign) != 0;
  float value = 0;
  if (magnitude > largest || (zero_unsigned && element == sign)) {
    const bool infinite = infinity < nan && magnitude == infinity;
    value = infinite ? std::numeric_limits<float>::infinity() : std::nanf("");
  } else {
    const int exponent = magnitude >> mantissa;
    const int fraction = magnitude & ((1 << mantissa) - 1);
    const int whole = exponent > 0 ? fraction | 1 << mantissa : fraction;
    value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa);
  }
  return negative ? -value : value;
}

uint8_t SmallFormat::encode_float(float value, const NarrowOptions& options) const {
  const int sign = 1 << (type.bits - 1);
  const int negative = std::signbit(value) ? sign : 0;
  if (std::isnan(value)) return static_cast<uint8_t>(zero_unsigned ? nan : nan ^ negative);
  const float magnitude = std::fabs(value);
  int code = largest + 1;
  if (magnitude == 0) {
    code = 0;
  } else if (std::isfinite(magnitude)) {
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    const double steps =
        std::nearbyint(std::ldexp(static_cast<double>(magnitude), mantissa - exponent));
    const int64_t exact =
        (static_cast<int64_t>(exponent + bias - 1) << mantissa) + static_cast<int64_t>(steps);
    code = static_cast<int>(std::min<int64_t>(exact, largest + 1));
  }
  if (code > largest) {
    if (options.saturate)
      code = largest;
    else if (zero_unsigned)
      return nan;
    else
      code = infinity;
  }
  if (zero_unsigned && code == 0) return 0;
  return static_cast<uint8_t>(code | negative);
}

uint8_t SmallFormat::encode(float value, const NarrowOptions& options) const {
  if (kind == Kind::kFloat) return encode_float(value, options);
  if (kind == Kind::kScale) return encode_scale(value, options);
  const bool fits = std::fabs(value) < 9e18f;
  const int64_t whole = fits ? static_cast<int64_t>(value) : 0;
  return static_cast<uint8_t>(whole & ((1 << type.bits) - 1));
}

void SmallFormat::decode(const uint8_t* packed, int64_t first, int64_t n, float* out) const {
  float values[256];
  for (int code = 0; code < 1 << type.bits; ++code) {
    values[code] = decode(static_cast<uint8_t>(code));
  }
  const auto start = static_cast<uint64_t>(first);
  for (uint64_t i = 0; i < static_cast<uint64_t>(n); ++i) {
    out[i] = values[kit::packed_element(packed, start + i, type.bits)];
  }
}

void SmallFormat::encode(const float* in, int64_t first, int64_t n, uint8_t* packed,
                         const NarrowOptions& options) const {
  uint8_t* bytes = packed + first * type.bits / 8;
  // The bits that have no whole byte yet: fewer than 8, and one element more.
  int pending = 0, count = 0;
  for (int64_t i = 0; i < n; ++i) {
    pending |= encode(in[i], options) << count;
    for (count += type.bits; count >= 8; count -= 8, pending >>= 8) {
      *bytes++ = static_cast<uint8_t>(pending);
    }
  }
  if (count > 0) *bytes = static_cast<uint8_t>(pending);
}

}  // namespace chipdock::plugin::cpu
