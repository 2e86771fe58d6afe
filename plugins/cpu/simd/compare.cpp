// SPDX-License-Identifier: Apache-2.0
// Comparisons of two arrays of numbers, in loops that the compiler turns into vectors. Greater is
// Less of the operands swapped, which holds for NaN as well.
#include "simd/binary.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

struct Equal {
  template <class T>
  static bool holds(T x, T y) {
    return x == y;
  }
};
struct Less {
  template <class T>
  static bool holds(T x, T y) {
    return x < y;
  }
};
struct LessOrEqual {
  template <class T>
  static bool holds(T x, T y) {
    return x <= y;
  }
};

template <class F, class T>
void compare(const void* left, const void* right, bool* out, int64_t n, Operands operands) {
  const T* __restrict a = static_cast<const T*>(left);
  const T* __restrict b = static_cast<const T*>(right);
  uint8_t* __restrict c = reinterpret_cast<uint8_t*>(out);
  if (operands == Operands::kBoth) {
    for (int64_t i = 0; i < n; ++i) c[i] = F::holds(a[i], b[i]);
  } else if (operands == Operands::kScalarRight) {
    const T y = *b;
    for (int64_t i = 0; i < n; ++i) c[i] = F::holds(a[i], y);
  } else {
    const T x = *a;
    for (int64_t i = 0; i < n; ++i) c[i] = F::holds(x, b[i]);
  }
}

template <class F, class T>
void swapped(const void* left, const void* right, bool* out, int64_t n, Operands operands) {
  const Operands other = operands == Operands::kScalarRight  ? Operands::kScalarLeft
                         : operands == Operands::kScalarLeft ? Operands::kScalarRight
                                                             : Operands::kBoth;
  compare<F, T>(right, left, out, n, other);
}

template <class T>
Compare pick(Binary op) {
  switch (op) {
    case Binary::kEqual:
      return compare<Equal, T>;
    case Binary::kLess:
      return compare<Less, T>;
    case Binary::kLessOrEqual:
      return compare<LessOrEqual, T>;
    case Binary::kGreater:
      return swapped<Less, T>;
    case Binary::kGreaterOrEqual:
      return swapped<LessOrEqual, T>;
    default:
      return nullptr;
  }
}

}  // namespace

Compare comparison(Binary op, Compared type) {
  switch (type) {
    case Compared::kF32:
      return pick<float>(op);
    case Compared::kF64:
      return pick<double>(op);
    case Compared::kI8:
      return pick<int8_t>(op);
    case Compared::kI16:
      return pick<int16_t>(op);
    case Compared::kI32:
      return pick<int32_t>(op);
    case Compared::kI64:
      return pick<int64_t>(op);
    case Compared::kU8:
      return pick<uint8_t>(op);
    case Compared::kU16:
      return pick<uint16_t>(op);
    case Compared::kU32:
      return pick<uint32_t>(op);
    default:
      return pick<uint64_t>(op);
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
