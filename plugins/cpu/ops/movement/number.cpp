// SPDX-License-Identifier: Apache-2.0
// Reads, writes and orders single elements by dtype. Bulk arithmetic is elsewhere.
#include "ops/movement/number.hpp"

#include <cstring>
#include <type_traits>

#include "ops/numeric.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

using Plain = decltype(Types<bool, float, double>{} + IntegerTypes{});

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

/// Key of a float from its bits: negative values are mirrored, so that unsigned order is value
/// order.
template <class U>
uint64_t float_key(U bits, U infinity) {
  constexpr U kSign = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));
  const U magnitude = bits & static_cast<U>(~kSign);
  if (magnitude > infinity) return static_cast<U>(~U{0});
  if (magnitude == 0) return kSign;
  return (bits & kSign) != 0 ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
}

template <class T>
uint64_t key_of(const char* source) {
  using U = Bits<T>;
  U bits;
  std::memcpy(&bits, source, sizeof(bits));
  if constexpr (std::is_same_v<T, Float16>) {
    return float_key<U>(bits, 0x7c00);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return float_key<U>(bits, 0x7f80);
  } else if constexpr (std::is_same_v<T, float>) {
    return float_key<U>(bits, 0x7f800000u);
  } else if constexpr (std::is_same_v<T, double>) {
    return float_key<U>(bits, uint64_t{0x7ff} << 52);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(bits ^ static_cast<U>(U{1} << (sizeof(U) * 8 - 1)));
  } else {
    return bits;
  }
}

}  // namespace

double decode_number(chipdock_dtype type, const void* source, const char* op) {
  double out = 0;
  if (is_half(type)) {
    float value = 0;
    widen(type, source, 1, &value);
    return value;
  }
  const bool known = dispatch(Plain{}, type, [&](auto tag) {
    typename decltype(tag)::type value{};
    std::memcpy(&value, source, sizeof(value));
    out = static_cast<double>(value);
  });
  if (!known) no_dtype(op, type);
  return out;
}

void encode_number(chipdock_dtype type, double value, void* target, const char* op) {
  if (is_half(type)) {
    const float narrowed = static_cast<float>(value);
    narrow(type, &narrowed, 1, target);
    return;
  }
  const bool known = dispatch(Plain{}, type, [&](auto tag) {
    const auto typed = static_cast<typename decltype(tag)::type>(value);
    std::memcpy(target, &typed, sizeof(typed));
  });
  if (!known) no_dtype(op, type);
}

void order_keys(chipdock_dtype type, const void* source, int64_t stride, int64_t count,
                uint64_t* keys, const char* op) {
  const char* from = static_cast<const char*>(source);
  const bool known = dispatch(Plain{} + HalfTypes{}, type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) keys[i] = key_of<T>(from + i * stride);
  });
  if (!known) no_dtype(op, type);
}

}  // namespace chipdock::plugin::cpu
