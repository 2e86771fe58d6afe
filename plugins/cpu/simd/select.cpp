// SPDX-License-Identifier: Apache-2.0
// Where's loops, without branches in them.
#include "simd/select.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

struct Pair {
  uint64_t parts[2];
};

template <class U, int StepX, int StepY>
void blend(const bool* condition, const U* x, const U* y, U* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const U one = x[i * StepX];
    const U other = y[i * StepY];
    if constexpr (sizeof(U) > 8) {
      to[i] = condition[i] ? one : other;
    } else {  // By mask: a branch on random conditions costs ten times as much.
      const U mask = static_cast<U>(-static_cast<int64_t>(condition[i]));
      to[i] = static_cast<U>((one & mask) | (other & ~mask));
    }
  }
}

template <class U>
void select(const bool* condition, const void* from_x, const void* from_y, void* target, int64_t n,
            const int64_t (&steps)[3]) {
  const U* x = static_cast<const U*>(from_x);
  const U* y = static_cast<const U*>(from_y);
  U* to = static_cast<U*>(target);
  if (steps[0] == 0) {
    const U* from = *condition ? x : y;
    const int64_t step = *condition ? steps[1] : steps[2];
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  } else if (steps[1] == 1) {
    steps[2] == 1 ? blend<U, 1, 1>(condition, x, y, to, n) : blend<U, 1, 0>(condition, x, y, to, n);
  } else {
    steps[2] == 1 ? blend<U, 0, 1>(condition, x, y, to, n) : blend<U, 0, 0>(condition, x, y, to, n);
  }
}

}  // namespace

Select select_function(int bytes) {
  switch (bytes) {
    case 1:
      return select<uint8_t>;
    case 2:
      return select<uint16_t>;
    case 4:
      return select<uint32_t>;
    case 8:
      return select<uint64_t>;
    default:
      return select<Pair>;
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
