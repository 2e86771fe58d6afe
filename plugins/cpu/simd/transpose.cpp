// SPDX-License-Identifier: Apache-2.0
// Transposition in squares of four, which every level has registers for.
#include "simd/transpose.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

typedef float Four __attribute__((vector_size(16)));
typedef int32_t Index __attribute__((vector_size(16)));
typedef float Loose __attribute__((vector_size(16), aligned(4), may_alias));

void square(const float* from, int64_t row, float* to, int64_t to_row) {
  Four in[4];
  for (int i = 0; i < 4; ++i) in[i] = *reinterpret_cast<const Loose*>(from + i * row);
  constexpr Index kLow = {0, 4, 1, 5}, kHigh = {2, 6, 3, 7};
  constexpr Index kFirst = {0, 1, 4, 5}, kSecond = {2, 3, 6, 7};
  for (int half = 0; half < 2; ++half) {
    const Index pairs = half == 0 ? kLow : kHigh;
    const Four upper = __builtin_shuffle(in[0], in[1], pairs);
    const Four lower = __builtin_shuffle(in[2], in[3], pairs);
    float* at = to + 2 * half * to_row;
    *reinterpret_cast<Loose*>(at) = __builtin_shuffle(upper, lower, kFirst);
    *reinterpret_cast<Loose*>(at + to_row) = __builtin_shuffle(upper, lower, kSecond);
  }
}

}  // namespace

void transpose_f32(const float* from, int64_t row, int64_t rows, int64_t cols, float* to,
                   int64_t to_row) {
  int64_t done = 0;
  for (; done + 4 <= cols && rows >= 4; done += 4) {
    for (int64_t next = 0; next < rows; next += 4) {
      const int64_t i = next < rows - 4 ? next : rows - 4;  // The last four may overlap others.
      square(from + i * row + done, row, to + done * to_row + i, to_row);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = done; j < cols; ++j) to[j * to_row + i] = from[i * row + j];
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
