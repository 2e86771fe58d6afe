// SPDX-License-Identifier: Apache-2.0
// All pairs of native dtypes as loops that the compiler can vectorise.
#include "simd/cast.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

/// Floats that an integer dtype cannot hold become what x86 gives: the least value, or the low bits
/// of the int64 for narrower and unsigned dtypes. ONNX leaves them undefined; here they must not
/// trap.
template <class To, class From>
To to_integer(From x) {
  using Wide = std::conditional_t<std::is_same_v<To, int32_t>, int32_t, int64_t>;
  constexpr From kLimit =
      static_cast<From>(sizeof(Wide) == 4 ? 2147483648.0 : 9223372036854775808.0);
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (x >= kLimit && x < kLimit * 2) {
      return static_cast<To>(static_cast<int64_t>(x - kLimit)) ^ (uint64_t{1} << 63);
    }
  }
  const bool fits = x >= -kLimit && x < kLimit;
  return static_cast<To>(fits ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min());
}

template <class From, class To>
void native(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, bool>) {
      y[i] = x[i] != From{0};
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      y[i] = to_integer<To>(x[i]);
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

using Dtypes = std::tuple<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
                          float, double, bool>;
constexpr size_t kCount = std::tuple_size_v<Dtypes>;
static_assert(kCount == static_cast<size_t>(Native::kCount));

template <size_t... Pairs>
constexpr std::array<CastLoop, sizeof...(Pairs)> table(std::index_sequence<Pairs...>) {
  return {native<std::tuple_element_t<Pairs / kCount, Dtypes>,
                 std::tuple_element_t<Pairs % kCount, Dtypes>>...};
}
constexpr auto kLoops = table(std::make_index_sequence<kCount * kCount>());

}  // namespace

CastLoop cast_loop(Native from, Native to) {
  if (from == Native::kCount || to == Native::kCount) return nullptr;
  return kLoops[static_cast<size_t>(from) * kCount + static_cast<size_t>(to)];
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
