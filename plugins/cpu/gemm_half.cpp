// SPDX-License-Identifier: Apache-2.0
// Packing of half types for products; see gemm_half.hpp.
#include "gemm_half.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simd/gemm_half.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Whether two neighbours along k are a word in memory already, so that words are copied as floats.
bool are_words(const uint16_t* source, int64_t across, int64_t along, int64_t k) {
  return along == 1 && k % 2 == 0 && across % 2 == 0 &&
         reinterpret_cast<uintptr_t>(source) % alignof(float) == 0;
}
const float* as_words(const uint16_t* source) { return reinterpret_cast<const float*>(source); }

/// Word `at` of a line of k elements, `step` apart, to wherever `target` points.
void put_word(const uint16_t* line, int64_t step, int64_t k, int64_t at, float* target) {
  const uint16_t parts[2] = {line[2 * at * step],
                             2 * at + 1 < k ? line[(2 * at + 1) * step] : uint16_t{0}};
  CHIPDOCK_CPU_DISPATCH(pair_rows)(parts, parts + 1, 1, target);
}

/// The tile that widens a right operand of `dtype`, or NULL.
const GemmIsa<float>* right_isa(chipdock_dtype dtype) {
  return dtype.code == CHIPDOCK_DTYPE_BFLOAT ? CHIPDOCK_CPU_DISPATCH(gemm_isa_bf16_right)()
                                             : CHIPDOCK_CPU_DISPATCH(gemm_isa_f16_right)();
}

/// Blocks of rows up to which widening again for each costs less than a panel of floats.
constexpr int64_t kDirectBlocks = 4;

}  // namespace

const GemmIsa<float>* pair_isa(chipdock_dtype dtype) {
  if (dtype.code != CHIPDOCK_DTYPE_BFLOAT || active_isa() < Isa::kAvx512Bf16) return nullptr;
  return CHIPDOCK_CPU_DISPATCH(gemm_isa_pairs)();
}

void pair_pack_a(const uint16_t* source, int64_t row, int64_t column, int64_t m, int64_t k,
                 float* target, int64_t first, int64_t end) {
  const int64_t words = pair_words(k);
  if (are_words(source, row, column, k)) {
    return gemm_pack_a(as_words(source), row / 2, 1, m, words, target, first, end);
  }
  const GemmRowBlocks blocks = gemm_row_blocks<float>(m);
  for (int64_t i = first; i < std::min(blocks.count, end); ++i) {
    const int64_t begin = blocks.begin(i);
    const int64_t rows = blocks.begin(i + 1) - begin;
    for (int64_t r = 0; r < rows; ++r) {
      const uint16_t* line = source + (begin + r) * row;
      for (int64_t w = 0; w < words; ++w) {
        put_word(line, column, k, w, target + begin * words + w * rows + r);
      }
    }
  }
}

void pair_pack_panel(const uint16_t* source, int64_t row, int64_t column, int64_t k, int64_t begin,
                     int64_t end, int cols, float* target) {
  const int64_t width = gemm_isa<float>().cols;
  if (are_words(source, column, row, k)) {
    return gemm_pack_panel(as_words(source) + begin, 1, column / 2, end - begin, cols, target);
  }
  if (cols < width) {
    std::memset(target, 0, static_cast<size_t>((end - begin) * width) * sizeof(float));
  }
  const auto rows = CHIPDOCK_CPU_DISPATCH(pair_rows);
  for (int64_t w = begin; w < end; ++w) {
    float* to = target + (w - begin) * width;
    if (column == 1) {
      const uint16_t* low = source + 2 * w * row;
      rows(low, 2 * w + 1 < k ? low + row : nullptr, cols, to);
    } else {
      for (int j = 0; j < cols; ++j) put_word(source + j * column, row, k, w, to + j);
    }
  }
}

HalfForm half_form(chipdock_dtype dtype, bool widened) {
  if (!widened && pair_isa(dtype) != nullptr) return HalfForm::kWords;
  return right_isa(dtype) != nullptr ? HalfForm::kHalves : HalfForm::kFloats;
}

uint64_t half_packed_bytes(HalfForm form, int64_t k, int64_t n) {
  const int64_t steps = form == HalfForm::kWords ? pair_words(k) : k;
  const size_t element = form == HalfForm::kHalves ? sizeof(uint16_t) : sizeof(float);
  return static_cast<uint64_t>(gemm_packed_b_size<float>(steps, n)) * element;
}

std::string half_layout(HalfForm form, chipdock_dtype dtype) {
  if (form == HalfForm::kFloats) {  // Equal bytes of the two half types are different floats.
    return gemm_layout<float>(dtype.code == CHIPDOCK_DTYPE_BFLOAT ? "b_bf16" : "b_f16");
  }
  return std::string(form == HalfForm::kWords ? "gemm1_b_words_" : "gemm1_b_halves_") +
         isa_name(active_isa());
}

void half_pack_b(HalfForm form, chipdock_dtype dtype, const uint16_t* source, int64_t row,
                 int64_t column, int64_t k, int64_t n, void* target) {
  if (form == HalfForm::kFloats) {
    std::vector<float> wide(static_cast<size_t>(k * n));
    widen(dtype, source, k * n, wide.data());
    return gemm_pack_b(wide.data(), row, column, k, n, static_cast<float*>(target));
  }
  const int64_t width = gemm_isa<float>().cols;
  for (int64_t begin = 0; begin < n; begin += width) {
    const int cols = static_cast<int>(std::min(width, n - begin));
    const uint16_t* from = source + begin * column;
    if (form == HalfForm::kWords) {
      pair_pack_panel(from, row, column, k, 0, pair_words(k), cols,
                      static_cast<float*>(target) + begin * pair_words(k));
      continue;
    }
    auto* to = static_cast<uint16_t*>(target) + begin * k;
    for (int64_t i = 0; i < k; ++i, to += width) {
      for (int j = 0; j < cols; ++j) to[j] = from[i * row + j * column];
      std::fill(to + cols, to + width, uint16_t{0});
    }
  }
}

GemmPanel<float> PairB::panel(int64_t /*m*/, int64_t words, int64_t begin, int64_t end,
                              int64_t first, int cols, float* scratch) const {
  const int64_t width = gemm_isa<float>().cols;
  if (packed != nullptr) return {packed + first * words + begin * width, width};
  pair_pack_panel(data + first * column, row, column, depth, begin, end, cols, scratch);
  return {scratch, width};
}

HalfB::HalfB(chipdock_dtype dtype, const void* packed, int64_t m)
    : dtype(dtype),
      packed(static_cast<const uint16_t*>(packed)),
      direct(gemm_row_blocks<float>(m).count <= kDirectBlocks) {}

const GemmIsa<float>* HalfB::isa() const { return direct ? right_isa(dtype) : &gemm_isa<float>(); }

GemmPanel<float> HalfB::panel(int64_t /*m*/, int64_t k, int64_t begin, int64_t end, int64_t first,
                              int /*cols*/, float* scratch) const {
  const int64_t width = gemm_isa<float>().cols;
  const uint16_t* from = packed + first * k + begin * width;
  if (direct) return {reinterpret_cast<const float*>(from), width / 2};
  widen(dtype, from, (end - begin) * width, scratch);
  return {scratch, width};
}

}  // namespace chipdock::plugin::cpu
