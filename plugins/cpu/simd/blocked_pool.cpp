// SPDX-License-Identifier: Apache-2.0
// Pooling with channels in the lanes of a vector, so that windows have no borders in the inner
// loop; see blocked_pool.hpp.
#include "simd/blocked_pool.hpp"

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

struct Largest {
  static Vf start() { return splat(-__builtin_inff()); }
  static Vf fold(Vf a, Vf b) { return max(a, b); }
};
struct Total {
  static Vf start() { return Vf{}; }
  static Vf fold(Vf a, Vf b) { return a + b; }
};

template <class Rule>
void windows(const BlockedPool& p) {
  float* out = p.out;
  const int64_t step_y = p.dilation[0] * p.in_width * kLanes;
  const int64_t step_x = p.dilation[1] * kLanes;
  for (int64_t y = 0; y < p.rows; ++y) {
    const PoolWindow down = p.down[y];
    for (int64_t x = 0; x < p.cols; ++x, out += kLanes) {
      const PoolWindow across = p.across[x];
      const float* row = p.in + (down.first * p.in_width + across.first) * kLanes;
      Vf folded = Rule::start();
      for (int64_t i = 0; i < down.taps; ++i, row += step_y) {
        const float* at = row;
        for (int64_t j = 0; j < across.taps; ++j, at += step_x) {
          folded = Rule::fold(folded, load(at));
        }
      }
      if (p.average) {
        const int64_t count = down.count * across.count;
        folded /= static_cast<float>(count > 0 ? count : 1);
      }
      store(out, folded);
    }
  }
}

/// Stretches are folded in four chains, then with one another, so the error of a sum grows with the
/// number of stretches.
template <class Rule>
void all(const float* in, int64_t pixels, float* out) {
  constexpr int64_t kStretch = 256;
  Vf total = Rule::start();
  for (int64_t begin = 0; begin < pixels; begin += kStretch) {
    const int64_t count = begin + kStretch < pixels ? kStretch : pixels - begin;
    const float* from = in + begin * kLanes;
    Vf chain[4] = {Rule::start(), Rule::start(), Rule::start(), Rule::start()};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (int c = 0; c < 4; ++c) chain[c] = Rule::fold(chain[c], load(from + (i + c) * kLanes));
    }
    for (; i < count; ++i) chain[0] = Rule::fold(chain[0], load(from + i * kLanes));
    total = Rule::fold(total,
                       Rule::fold(Rule::fold(chain[0], chain[1]), Rule::fold(chain[2], chain[3])));
  }
  store(out, total);
}

}  // namespace

void blocked_pool(const BlockedPool& pool) {
  pool.average ? windows<Total>(pool) : windows<Largest>(pool);
}

void blocked_sum(const float* in, int64_t pixels, float* out) { all<Total>(in, pixels, out); }
void blocked_max(const float* in, int64_t pixels, float* out) { all<Largest>(in, pixels, out); }

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
