// SPDX-License-Identifier: Apache-2.0
// Operands of half types, packed and not, at every level: products of whole numbers are exact, and
// what is packed ends where it says.
#include <cmath>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "gemm_half.hpp"
#include "widen.hpp"

namespace {

using namespace chipdock::plugin::cpu;
namespace kit = chipdock::kit;

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},   {1, 33, 2},  {3, 16, 7},   {15, 31, 30},
                           {29, 65, 1}, {60, 40, 9}, {5, 32, 1030}};

/// Whole numbers from -4 to 4, as floats and as halves.
struct Matrix {
  std::vector<float> wide;
  std::vector<uint16_t> halves;

  Matrix(chipdock_dtype dtype, int64_t size, uint32_t seed)
      : wide(static_cast<size_t>(size)), halves(static_cast<size_t>(size)) {
    for (float& x : wide) {
      seed = seed * 1664525u + 1013904223u;
      x = static_cast<float>(static_cast<int>(seed >> 24) % 9 - 4);
    }
    narrow(dtype, wide.data(), size, halves.data());
  }
};

/// Exactly what is asked for and nothing behind it, so that sanitizers see one byte too many.
std::vector<float> room(uint64_t bytes) { return std::vector<float>((bytes + 3) / 4, NAN); }

template <class B>
class Work final : public GemmWork<float> {
 public:
  Work(const Size& s, int64_t steps, const float* packed_a, const B& b, float* sums)
      : packed_a_(packed_a), b_(b), sums_(sums) {
    m = s.m;
    n = s.n;
    k = steps;
    c_row = s.n;
  }
  const float* a(int64_t) const override { return packed_a_; }
  float* c(int64_t) const override { return sums_; }
  GemmPanel<float> panel(int64_t, int64_t begin, int64_t end, int64_t column, int cols,
                         float* scratch) const override {
    return b_.panel(m, k, begin, end, column, cols, scratch);
  }

 private:
  const float* packed_a_;
  B b_;
  float* sums_;
};

template <class B>
void multiply(const Size& s, int64_t steps, const GemmIsa<float>* isa, const std::vector<float>& a,
              const B& b, const std::vector<float>& want) {
  std::vector<float> sums(static_cast<size_t>(s.m * s.n));
  std::vector<float> scratch(kGemmThreadBytes / sizeof(float));
  Work<B> work(s, steps, a.data(), b, sums.data());
  work.isa = isa;
  gemm_run_here(work, scratch.data());
  CHECK(sums == want);
}

void check_product(chipdock_dtype dtype, const Size& s, bool ta, bool tb) {
  const Matrix a(dtype, s.m * s.k, 1);
  const Matrix b(dtype, s.k * s.n, 2);
  const int64_t a_row = ta ? 1 : s.k;
  const int64_t a_column = ta ? s.m : 1;
  const int64_t b_row = tb ? 1 : s.n;
  const int64_t b_column = tb ? s.k : 1;
  std::vector<float> want(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t k = 0; k < s.k; ++k) {
        want[static_cast<size_t>(i * s.n + j)] +=
            a.wide[static_cast<size_t>(i * a_row + k * a_column)] *
            b.wide[static_cast<size_t>(k * b_row + j * b_column)];
      }
    }
  }
  for (const bool widened : {false, true}) {
    const HalfForm form = half_form(dtype, widened);
    const bool words = form == HalfForm::kWords;
    const int64_t steps = words ? pair_words(s.k) : s.k;
    std::vector<float> packed_b = room(half_packed_bytes(form, s.k, s.n));
    half_pack_b(form, dtype, b.halves.data(), b_row, b_column, s.k, s.n, packed_b.data());
    std::vector<float> packed_a(static_cast<size_t>(s.m * steps));
    if (words) {
      pair_pack_a(a.halves.data(), a_row, a_column, s.m, s.k, packed_a.data());
      PairB right = {b.halves.data(), b_row, b_column, packed_b.data(), s.k};
      multiply(s, steps, pair_isa(dtype), packed_a, right, want);
      right.packed = nullptr;
      multiply(s, steps, pair_isa(dtype), packed_a, right, want);
      continue;
    }
    gemm_pack_a(a.wide.data(), a_row, a_column, s.m, s.k, packed_a.data());
    if (form == HalfForm::kHalves) {
      HalfB right(dtype, packed_b.data(), s.m);
      multiply(s, steps, right.isa(), packed_a, right, want);
      right.direct = !right.direct;
      multiply(s, steps, right.isa(), packed_a, right, want);
    } else {
      multiply(s, steps, &gemm_isa<float>(), packed_a, GemmB<float>{nullptr, 0, 1, packed_b.data()},
               want);
    }
  }
}

TEST(products_of_halves_are_exact_at_every_level) {
  for (const Isa isa : kIsaLevels) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    for (const chipdock_dtype dtype : {kit::kFloat16, kit::kBfloat16}) {
      for (const Size& s : kSizes) {
        for (const int turns : {0, 1, 2, 3}) check_product(dtype, s, turns & 1, turns & 2);
      }
    }
  }
}

TEST(forms_of_constant_operands_follow_the_level) {
  for (const Isa isa : kIsaLevels) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    const bool words = isa >= Isa::kAvx512Bf16;
    CHECK((half_form(kit::kBfloat16, false) == HalfForm::kWords) == words);
    CHECK(half_form(kit::kBfloat16, true) != HalfForm::kWords);
    CHECK(half_form(kit::kFloat16, false) != HalfForm::kWords);
    if (isa >= Isa::kAvx2) CHECK(half_form(kit::kFloat16, false) == HalfForm::kHalves);
    // Equal bytes of the two types, widened to floats, must not be shared.
    CHECK(half_layout(HalfForm::kFloats, kit::kFloat16) !=
          half_layout(HalfForm::kFloats, kit::kBfloat16));
  }
}

}  // namespace
