// SPDX-License-Identifier: Apache-2.0
// Transposes of one block that fits the first cache: squares in registers where the compiler has
// vectors, and long passes where one side is short (images that change between channels first and
// last).
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_TRANSPOSE_TILE_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_TRANSPOSE_TILE_HPP_

#include <cstdint>
#include <cstring>

#include "ops/movement/element.hpp"

namespace chipdock::plugin::cpu {

/// target[j][i] = source[i][j] for j < rows, i < columns. Source rows are `from` bytes apart, those
/// of the target `to`; both are contiguous inside.
template <int kWidth>
inline void transpose_plain(const char* source, int64_t from, char* target, int64_t to,
                            int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < rows; ++j) {
    const char* in = source + j * kWidth;
    char* out = target + j * to;
#pragma GCC unroll 4
    for (int64_t i = 0; i < columns; ++i, in += from) move_one<kWidth>(out + i * kWidth, in);
  }
}

/// Few target columns, as an image becomes channels last: one long pass for each of them. Passes
/// over all at once are slower, as planes of a multiple of 4 KiB look alike to the store buffer.
template <int kWidth>
inline void transpose_narrow(const char* source, int64_t from, char* target, int64_t to,
                             int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i) {
    const char* in = source + i * from;
    char* out = target + i * kWidth;
#pragma GCC unroll 4
    for (int64_t j = 0; j < rows; ++j, out += to) move_one<kWidth>(out, in + j * kWidth);
  }
}

#if defined(__GNUC__)
/// 16-byte vectors and their two interleaves.
template <int kWidth>
struct Lanes;
template <>
struct Lanes<1> {
  using Vector = uint8_t __attribute__((vector_size(16)));
  static Vector low(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static Vector high(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
  }
};
template <>
struct Lanes<2> {
  using Vector = uint16_t __attribute__((vector_size(16)));
  static Vector low(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  static Vector high(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};
template <>
struct Lanes<4> {
  using Vector = uint32_t __attribute__((vector_size(16)));
  static Vector low(Vector a, Vector b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static Vector high(Vector a, Vector b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};
template <>
struct Lanes<8> {
  using Vector = uint64_t __attribute__((vector_size(16)));
  static Vector low(Vector a, Vector b) { return __builtin_shufflevector(a, b, 0, 2); }
  static Vector high(Vector a, Vector b) { return __builtin_shufflevector(a, b, 1, 3); }
};

/// A square of 16-byte rows: log2(n) rounds, each of which interleaves row i with row i + n / 2.
template <int kWidth>
inline void transpose_square(const char* source, int64_t from, char* target, int64_t to) {
  using L = Lanes<kWidth>;
  constexpr int kSide = 16 / kWidth;
  typename L::Vector rows[kSide], next[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) std::memcpy(&rows[i], source + i * from, 16);
#pragma GCC unroll 4
  for (int round = 1; round < kSide; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      next[2 * i] = L::low(rows[i], rows[i + kSide / 2]);
      next[2 * i + 1] = L::high(rows[i], rows[i + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) std::memcpy(target + i * to, &rows[i], 16);
}

/// A square of 64-byte rows. It passes through a buffer, so that each cache line of the target is
/// written in one go: with strides of a power of two all its rows compete for the same few cache
/// sets.
template <int kWidth>
inline void transpose_lines(const char* source, int64_t from, char* target, int64_t to) {
  constexpr int kSide = 64 / kWidth, kStep = 16 / kWidth;
  alignas(64) char buffer[kSide * 64];
  for (int i = 0; i < kSide; i += kStep) {
    for (int j = 0; j < kSide; j += kStep) {
      transpose_square<kWidth>(source + i * from + j * kWidth, from, buffer + j * 64 + i * kWidth,
                               64);
    }
  }
  for (int j = 0; j < kSide; ++j) std::memcpy(target + j * to, buffer + j * 64, 64);
}
#endif

template <int kWidth>
void transpose_block(const char* source, int64_t from, char* target, int64_t to, int64_t rows,
                     int64_t columns) {
  if (rows <= 4) {
    transpose_plain<kWidth>(source, from, target, to, rows, columns);
    return;
  }
  if (columns <= 4) {
    transpose_narrow<kWidth>(source, from, target, to, rows, columns);
    return;
  }
  int64_t j = 0;
#if defined(__GNUC__)
  if constexpr (kWidth < 16) {
    constexpr int64_t kLine = 64 / kWidth, kStep = 16 / kWidth;
    for (; j + kStep <= rows; j += j + kLine <= rows ? kLine : kStep) {
      const bool lines = j + kLine <= rows;
      const char* in = source + j * kWidth;
      char* out = target + j * to;
      int64_t i = 0;
      if (lines) {
        for (; i + kLine <= columns; i += kLine) {
          // Rows a long stride apart are not foreseen by the hardware.
          for (int64_t k = 2 * kLine; k < 3 * kLine && i + k < columns; ++k) {
            __builtin_prefetch(in + (i + k) * from);
          }
          transpose_lines<kWidth>(in + i * from, from, out + i * kWidth, to);
        }
      }
      const int64_t height = lines ? kLine : kStep;
      for (; i + kStep <= columns; i += kStep) {
        for (int64_t k = 0; k < height; k += kStep) {
          transpose_square<kWidth>(in + i * from + k * kWidth, from, out + i * kWidth + k * to, to);
        }
      }
      transpose_plain<kWidth>(in + i * from, from, out + i * kWidth, to, height, columns - i);
    }
  }
#endif
  transpose_plain<kWidth>(source + j * kWidth, from, target + j * to, to, rows - j, columns);
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_TRANSPOSE_TILE_HPP_
