// SPDX-License-Identifier: Apache-2.0
// dtypes as C++ types: sets of dtypes as operator schemas have them, dispatch from a dtype to a
// template, and the half types, which are computed in float by blocks and rounded once.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_NUMERIC_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_NUMERIC_HPP_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernel.hpp"
#include "simd/convert.hpp"

namespace chipdock::plugin::cpu {

/// Elements of a stack buffer between a half array and float code.
inline constexpr int64_t kBlock = 512;
/// Fewest elements worth a second thread, for work bound by memory.
inline constexpr int64_t kGrain = 16384;

/// A half element; all arithmetic on it is done in float.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <class T>
constexpr chipdock_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return kit::kBool;
  else if constexpr (std::is_same_v<T, Float16>)
    return kit::kFloat16;
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return kit::kBfloat16;
  else if constexpr (std::is_floating_point_v<T>) {
    return kit::dtype(CHIPDOCK_DTYPE_FLOAT, sizeof(T) * 8);
  } else if constexpr (std::is_signed_v<T>) {
    return kit::dtype(CHIPDOCK_DTYPE_INT, sizeof(T) * 8);
  } else {
    return kit::dtype(CHIPDOCK_DTYPE_UINT, sizeof(T) * 8);
  }
}

template <class... Ts>
struct Types {};
template <class... As, class... Bs>
Types<As..., Bs...> operator+(Types<As...>, Types<Bs...>) {
  return {};
}
using SignedTypes = Types<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
using IntegerTypes = decltype(SignedTypes{} + UnsignedTypes{});
using HalfTypes = Types<Float16, Bfloat16>;
using FloatTypes = Types<float, double, Float16, Bfloat16>;
using NumberTypes = decltype(FloatTypes{} + IntegerTypes{});

template <class... Ts>
std::vector<chipdock_dtype> dtypes_of(Types<Ts...>) {
  return {dtype_of<Ts>()...};
}

template <class T>
struct Tag {
  using type = T;
};

/// Calls body(Tag<T>{}) for the T of the list that `type` names; false if none does.
template <class... Ts, class Body>
bool dispatch(Types<Ts...>, chipdock_dtype type, const Body& body) {
  using kit::operator==;
  return ((dtype_of<Ts>() == type ? (body(Tag<Ts>{}), true) : false) || ...);
}

inline bool is(chipdock_dtype a, chipdock_dtype b) {
  using kit::operator==;
  return a == b;
}

[[noreturn]] inline void no_dtype(std::string_view op, chipdock_dtype type) {
  kit::fail(CHIPDOCK_UNSUPPORTED, op, " has no cpu kernel for ", kit::dtype_name(type));
}

/// The two block conversions of a half type; NULL for other dtypes.
struct HalfCodec {
  void (*widen)(const uint16_t* x, float* y, int64_t n) = nullptr;
  void (*narrow)(const float* x, uint16_t* y, int64_t n) = nullptr;
  explicit operator bool() const { return widen != nullptr; }
};
inline HalfCodec half_codec(chipdock_dtype type) {
  if (is(type, kit::kFloat16)) {
    return {CHIPDOCK_CPU_DISPATCH(widen_f16), CHIPDOCK_CPU_DISPATCH(narrow_f16)};
  }
  if (is(type, kit::kBfloat16)) {
    return {CHIPDOCK_CPU_DISPATCH(widen_bf16), CHIPDOCK_CPU_DISPATCH(narrow_bf16)};
  }
  return {};
}

/// What arithmetic on T is done in: unsigned for integers, so that overflow wraps without undefined
/// behaviour. Types below int are widened first: their products would overflow a signed int.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>,
                                    std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>, T>;

/// Runs body(begin, end) at once if `count` is small, else over the pool.
template <class Body>
void over(const Context& context, int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count < 2 * grain) {
    body(0, count);
  } else {
    context.parallel_for(count, grain, body);
  }
}

/// Slices of rows such that a slice has about kGrain elements.
inline int64_t row_grain(int64_t row_size, int64_t grain = kGrain) {
  return row_size >= grain ? 1 : grain / (row_size > 0 ? row_size : 1);
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_NUMERIC_HPP_
