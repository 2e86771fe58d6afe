// SPDX-License-Identifier: Apache-2.0
// The ends of products of bytes, one vector of columns at a time.
#include "simd/dot_end.hpp"

#include <cstddef>
#include <cstring>

#include "simd/dot_block.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

// NOLINTNEXTLINE(modernize-use-using): attributes of a vector need a typedef
typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

Vi splat_word(int32_t x) { return x - Vi{}; }
Vi added(Vi a, Vi b) { return Vi(Vu(a) + Vu(b)); }

/// The settled sums of row r from column c on; wraps.
Vi settled(const DotEnd& x, int r, int c) {
  Vi sum = added(load_words(x.sums + r * 2 * kLanes + c), splat_word(x.row_term[r]));
  if (x.column_term != nullptr) sum = added(sum, load_words(x.column_term + c));
  for (int p = 0; p < x.pair_count; ++p) {
    const Vu product = Vu(splat_word(x.pairs[p].row[r])) * Vu(load_words(x.pairs[p].column + c));
    sum = Vi(Vu(sum) + product);
  }
  return sum;
}

}  // namespace

void dot_store(const DotEnd& x, int32_t* y, int64_t y_row) {
  for (int r = 0; r < x.rows; ++r) {
    for (int c = 0; c < x.cols; c += kLanes) {
      const Vi sum = settled(x, r, c);
      int32_t* const to = y + r * y_row + c;
      if (x.cols - c >= kLanes) {
        store_words(to, sum);
      } else {
        std::memcpy(to, &sum, static_cast<size_t>(x.cols - c) * sizeof(int32_t));
      }
    }
  }
}

void dot_requantize(const DotEnd& x, const DotBytes& q) {
  const int32_t low = q.is_signed ? -128 : 0;
  for (int r = 0; r < x.rows; ++r) {
    const int32_t zero = q.zero[r];
    const Vf least = splat(static_cast<float>(low - zero));
    const Vf most = splat(static_cast<float>(low + 255 - zero));
    const Vf row_scale = splat(q.row_scale[r]);
    for (int c = 0; c < x.cols; c += kLanes) {
      Vf scale = row_scale;
      if (q.column_scale != nullptr) scale *= load(q.column_scale + c);
      const Vf value = __builtin_convertvector(settled(x, r, c), Vf) * scale;
      const Vf steps = fast_min(fast_max(rint(value), least), most);
      const Vi whole = __builtin_convertvector(steps, Vi) + zero;
      const Bytes bytes = __builtin_convertvector(whole, Bytes);
      const int left = x.cols - c;
      std::memcpy(q.y + r * q.y_row + c, &bytes,
                  static_cast<size_t>(left < kLanes ? left : kLanes));
    }
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
