// SPDX-License-Identifier: Apache-2.0
// The ends of products of bytes, one vector of columns at a time.
#include "simd/dot_end.hpp"

#include <cstddef>
#include <cstring>

#include "simd/bytes.hpp"
#include "simd/dot_block.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

Vi splat_word(int32_t x) { return x - Vi{}; }
Vi added(Vi a, Vi b) { return Vi(Vu(a) + Vu(b)); }

/// To the nearest integer, ties to even.
Vi nearest(Vf v) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vi>(_mm512_maskz_cvtps_epi32(kAll, v));
#elif defined(__AVX2__)
  return reinterpret_cast<Vi>(_mm256_cvtps_epi32(v));
#elif defined(__SSE2__)
  return reinterpret_cast<Vi>(_mm_cvtps_epi32(v));
#else
  return __builtin_convertvector(rint(v), Vi);
#endif
}

/// The settled sums of row r from column c on; wraps.
Vi settled(const DotEnd& x, int r, int c) {
  Vi sum = load_words(x.sums + int64_t{r} * 2 * kLanes + c);
  if (x.row_term != nullptr) sum = added(sum, splat_word(x.row_term[r]));
  if (x.column_term != nullptr) sum = added(sum, load_words(x.column_term + c));
  for (int p = 0; p < x.pair_count; ++p) {
    const Vu product = Vu(splat_word(x.pairs[p].row[r])) * Vu(load_words(x.pairs[p].column + c));
    sum = Vi(Vu(sum) + product);
  }
  return sum;
}

/// Brings settled sums to bytes.
struct Requantizer {
  Requantizer(int32_t zero_point, bool is_signed)
      : zero(zero_point),
        least(splat(static_cast<float>((is_signed ? -128 : 0) - zero_point))),
        most(splat(static_cast<float>((is_signed ? 127 : 255) - zero_point))) {}
  Vi operator()(Vi sum, Vf scale) const {
    const Vf value = __builtin_convertvector(sum, Vf) * scale;
    // The ends are integers, so it does not matter that rounding comes after them.
    const Vf held = fast_min(fast_max(value, least), most);
    return nearest(held) + zero;
  }
  int32_t zero;
  Vf least, most;
};

/// Sums in floats, of which fewer than a vector may be left.
Vi whole_sums(const float* from, int64_t left, int32_t term) {
  const Vf sums = left >= kLanes ? load(from) : load_part(from, left);
  return added(__builtin_convertvector(sums, Vi), splat_word(term));
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

void dot_accumulate(const DotEnd& x, float scale, const float* column_scale, float* y,
                    int64_t y_row) {
  for (int r = 0; r < x.rows; ++r) {
    for (int c = 0; c < x.cols; c += kLanes) {
      const Vf sum = __builtin_convertvector(settled(x, r, c), Vf);
      const Vf more = sum * (splat(scale) * load(column_scale + c));
      float* const to = y + r * y_row + c;
      if (x.cols - c >= kLanes) {
        store(to, load(to) + more);
      } else {
        store_part(to, load_part(to, x.cols - c) + more, x.cols - c);
      }
    }
  }
}

void dot_requantize(const DotEnd& x, const DotBytes& q) {
  for (int r = 0; r < x.rows; ++r) {
    const Requantizer requantizer(q.zero[r], q.is_signed);
    const Vf row_scale = splat(q.row_scale[r]);
    for (int c = 0; c < x.cols; c += kLanes) {
      Vf scale = row_scale;
      if (q.column_scale != nullptr) scale *= load(q.column_scale + c);
      store_low_bytes(q.y + r * q.y_row + c, requantizer(settled(x, r, c), scale), x.cols - c);
    }
  }
}

void plane_store(const float* sums, int64_t n, int32_t term, int32_t* y) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vi whole = whole_sums(sums + i, n - i, term);
    if (n - i >= kLanes) {
      store_words(y + i, whole);
    } else {
      std::memcpy(y + i, &whole, static_cast<size_t>(n - i) * sizeof(int32_t));
    }
  }
}

void plane_requantize(const float* sums, int64_t n, int32_t term, const DotBytes& q) {
  const Requantizer requantizer(*q.zero, q.is_signed);
  const Vf scale = splat(*q.row_scale);
  for (int64_t i = 0; i < n; i += kLanes) {
    store_low_bytes(q.y + i, requantizer(whole_sums(sums + i, n - i, term), scale), n - i);
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
