// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin. A row is folded block by block and only the block that won is searched; columns
// keep the best elements and their places in registers, places as wide as elements. Half types are
// compared as integers that sort like them.
#include "simd/arg.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "simd/vector.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

template <class T>
using Vector [[gnu::vector_size(kLanes * 4)]] = T;

template <int kBytes>
using Place = std::conditional_t<
    kBytes == 1, int8_t,
    std::conditional_t<kBytes == 2, int16_t, std::conditional_t<kBytes == 4, int32_t, int64_t>>>;

/// Elements as they are.
template <class T>
struct Plain {
  using Element = T;
  static constexpr bool kHasNan = std::is_floating_point_v<T>;
  template <class V>
  static V keys(V x, bool) {
    return x;
  }
  static bool is_nan(T x) { return x != x; }
};

/// A half type as an integer of the same order, both zeros 0 and every NaN beyond the infinities.
template <int16_t kInfinity>
struct HalfKeys {
  using Element = int16_t;
  static constexpr bool kHasNan = false;  // None is left among the keys.
  static constexpr int16_t kNan = 0x7fff, kLeastNan = -0x7fff;
  template <class V>
  static V keys(V x, bool largest) {
    const V magnitude = x & V(V{} + int16_t{0x7fff});
    const V sign = x >> V(V{} + int16_t{15});
    const int16_t nan = largest ? kNan : kLeastNan;
    return magnitude > V(V{} + kInfinity) ? V(V{} + nan) : V((magnitude ^ sign) - sign);
  }
  static bool is_nan(int16_t key) { return key == kNan || key == kLeastNan; }
};

template <class P>
struct Arg {
  using T = typename P::Element;
  using V = Vector<T>;
  using I = Place<sizeof(T)>;
  using M = Vector<I>;
  static constexpr int64_t kWidth = kLanes * 4 / sizeof(T);
  static constexpr int64_t kBlock = 64 * kWidth;

  static V load_keys(const T* p, bool largest) {
    V x;
    std::memcpy(&x, p, sizeof(x));
    return P::keys(x, largest);
  }
  static T key(const T* p, bool largest) {
    V x{};
    x[0] = *p;
    return P::keys(x, largest)[0];
  }
  static bool better(T x, T best, ArgRule rule) {
    if (P::is_nan(x)) return !P::is_nan(best);
    if (P::is_nan(best)) return false;
    if (rule.last && x == best) return true;
    return rule.largest ? x > best : x < best;
  }

  /// The best of n >= 1 keys; false if there is a NaN among floats.
  static bool extreme(const T* x, int64_t n, bool largest, T* out) {
    if (n < kWidth) {
      T best = key(x, largest);
      bool numbers = best == best;
      for (int64_t i = 1; i < n; ++i) {
        const T value = key(x + i, largest);
        numbers = numbers && value == value;
        best = (largest ? value > best : value < best) ? value : best;
      }
      *out = best;
      return numbers;
    }
    V best[2] = {load_keys(x, largest), load_keys(x + n - kWidth, largest)};
    M nan = (best[0] != best[0]) | (best[1] != best[1]);
    int64_t i = 0;
    for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
      for (int k = 0; k < 2; ++k) {
        const V value = load_keys(x + i + k * kWidth, largest);
        if constexpr (P::kHasNan) nan |= value != value;
        best[k] = (largest ? value > best[k] : value < best[k]) ? value : best[k];
      }
    }
    for (; i + kWidth <= n; i += kWidth) {
      const V value = load_keys(x + i, largest);
      if constexpr (P::kHasNan) nan |= value != value;
      best[0] = (largest ? value > best[0] : value < best[0]) ? value : best[0];
    }
    best[0] = (largest ? best[1] > best[0] : best[1] < best[0]) ? best[1] : best[0];
    T all = best[0][0];
    for (int64_t k = 1; k < kWidth; ++k) {
      const T value = best[0][k];
      all = (largest ? value > all : value < all) ? value : all;
    }
    *out = all;
    return !P::kHasNan || !any(reinterpret_cast<Vi>(nan));
  }

  /// The first or last place of `wanted`, which is there; of a NaN if that is wanted.
  static int64_t find(const T* x, int64_t n, T wanted, ArgRule rule) {
    const auto is_it = [&](int64_t i) {
      const T value = key(x + i, rule.largest);
      return value == wanted || (wanted != wanted && value != value);
    };
    if (wanted == wanted) {
      const V sought = V{} + wanted;
      if (rule.last) {
        while (n >= kWidth &&
               !any(reinterpret_cast<Vi>(load_keys(x + n - kWidth, rule.largest) == sought))) {
          n -= kWidth;
        }
        while (!is_it(n - 1)) --n;
        return n - 1;
      }
      int64_t i = 0;
      while (i + kWidth <= n &&
             !any(reinterpret_cast<Vi>(load_keys(x + i, rule.largest) == sought))) {
        i += kWidth;
      }
      while (!is_it(i)) ++i;
      return i;
    }
    int64_t i = 0;
    while (!is_it(i)) ++i;
    return i;
  }

  static int64_t row(const void* data, int64_t n, ArgRule rule) {
    const T* x = static_cast<const T*>(data);
    T best{};
    int64_t won = -1;
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(kBlock, n - at);
      T value;
      if (!extreme(x + at, count, rule.largest, &value)) {
        return at + find(x + at, count, std::numeric_limits<T>::quiet_NaN(), rule);
      }
      if (won >= 0 && !better(value, best, rule)) continue;
      best = value;
      won = at;
    }
    if (P::is_nan(best)) rule.last = false;
    return won + find(x + won, std::min(kBlock, n - won), best, rule);
  }

  /// kCount vectors of neighbouring columns.
  template <int kCount>
  static void strip(const T* x, int64_t length, int64_t stride, ArgRule rule, int64_t* y) {
    constexpr int64_t kLongest = std::numeric_limits<I>::max();
    T overall[kCount * kWidth];
    for (int64_t from = 0; from < length; from += kLongest) {
      const int64_t rows = std::min(kLongest, length - from);
      V best[kCount];
      M place[kCount];
      for (int k = 0; k < kCount; ++k) {
        best[k] = load_keys(x + from * stride + k * kWidth, rule.largest);
        place[k] = M{};
      }
      for (int64_t r = 1; r < rows; ++r) {
        const M here = M{} + static_cast<I>(r);
        for (int k = 0; k < kCount; ++k) {
          const V value = load_keys(x + (from + r) * stride + k * kWidth, rule.largest);
          M wins = rule.largest ? value > best[k] : value < best[k];
          if (rule.last) wins |= value == best[k];
          if constexpr (P::kHasNan) {
            wins |= (value != value) & (best[k] == best[k]);
          } else if constexpr (!std::is_same_v<P, Plain<T>>) {
            // Equal keys of NaN: the first one stays.
            wins &= ~((best[k] == P::kNan) | (best[k] == P::kLeastNan));
          }
          best[k] = wins ? value : best[k];
          place[k] = wins ? here : place[k];
        }
      }
      for (int64_t j = 0; j < kCount * kWidth; ++j) {
        const T value = best[j / kWidth][j % kWidth];
        if (from > 0 && !better(value, overall[j], rule)) continue;
        overall[j] = value;
        y[j] = from + place[j / kWidth][j % kWidth];
      }
    }
  }

  static void column(const T* x, int64_t length, int64_t stride, ArgRule rule, int64_t* y) {
    T best = key(x, rule.largest);
    *y = 0;
    for (int64_t r = 1; r < length; ++r) {
      const T value = key(x + r * stride, rule.largest);
      if (!better(value, best, rule)) continue;
      best = value;
      *y = r;
    }
  }

  static void columns(const void* data, int64_t length, int64_t stride, int64_t n, ArgRule rule,
                      int64_t* y) {
    const T* x = static_cast<const T*>(data);
    int64_t j = 0;
    for (; j + 4 * kWidth <= n; j += 4 * kWidth) strip<4>(x + j, length, stride, rule, y + j);
    for (; j + kWidth <= n; j += kWidth) strip<1>(x + j, length, stride, rule, y + j);
    if (j < n && n >= kWidth) {
      strip<1>(x + n - kWidth, length, stride, rule, y + n - kWidth);
      return;
    }
    for (; j < n; ++j) column(x + j, length, stride, rule, y + j);
  }
};

template <class P>
ArgFunctions functions() {
  return {Arg<P>::row, Arg<P>::columns};
}

}  // namespace

ArgFunctions arg_functions(ArgType type) {
  switch (type) {
    case ArgType::kF32:
      return functions<Plain<float>>();
    case ArgType::kF64:
      return functions<Plain<double>>();
    case ArgType::kF16:
      return functions<HalfKeys<0x7c00>>();
    case ArgType::kBf16:
      return functions<HalfKeys<0x7f80>>();
    case ArgType::kI8:
      return functions<Plain<int8_t>>();
    case ArgType::kI16:
      return functions<Plain<int16_t>>();
    case ArgType::kI32:
      return functions<Plain<int32_t>>();
    case ArgType::kI64:
      return functions<Plain<int64_t>>();
    case ArgType::kU8:
      return functions<Plain<uint8_t>>();
    case ArgType::kU16:
      return functions<Plain<uint16_t>>();
    case ArgType::kU32:
      return functions<Plain<uint32_t>>();
    default:
      return functions<Plain<uint64_t>>();
  }
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
