// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike between all numeric dtypes. Native types convert directly; half and small types
// go through float, to which wider types are rounded to odd first, so that the result is rounded
// once.
#include "simd/cast.hpp"

#include <cmath>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

using NativeTypes = decltype(IntegerTypes{} + Types<float, double, bool>{});
using Loop = CastLoop;

template <class From>
void to_odd_float(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  float* y = static_cast<float*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) == 4)) {
      y[i] = round_to_odd(static_cast<double>(x[i]));
    } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
      // Bits that a double drops only matter as "not zero": keep them in its last place.
      constexpr From kLow = 0x7ff;
      const bool sticky = x[i] > From{1} << 53 && (x[i] & kLow) != 0;
      y[i] = round_to_odd(static_cast<double>(sticky ? (x[i] & ~kLow) | 0x400 : x[i]));
    } else {
      y[i] = static_cast<float>(x[i]);
    }
  }
}

/// One side of a cast: a native dtype, a half type, or a small one.
struct Side {
  explicit Side(chipdock_dtype given)
      : type(given), half(half_codec(given)), small(SmallFormat::find(given)) {}
  bool native() const { return !half && small == nullptr; }
  int64_t bytes(int64_t elements) const { return elements * type.bits / 8; }

  chipdock_dtype type;
  HalfCodec half;
  const SmallFormat* small;
};

class Cast final : public Kernel {
 public:
  explicit Cast(const kit::NodeView& node) : from_(node.input_dtype(0)), to_(target(node)) {
    options_.saturate = node.integer("saturate", 1) != 0;
    const std::string mode = node.text("round_mode", "up");
    kit::require(mode == "up" || mode == "down" || mode == "nearest", "Cast: round_mode is '", mode,
                 "', allowed are up, down and nearest");
    if (mode == "down") options_.scale = RoundScale::kDown;
    if (mode == "nearest") options_.scale = RoundScale::kNearest;
    same_ = is(from_.type, to_.type);
    loop_ = find_loop();
    if (!same_ && loop_ == nullptr && (from_.native() || to_.native())) {
      no_dtype(node.op(), from_.native() ? from_.type : to_.type);
    }
  }

  void run(const Context& context) const override {
    const char* x = context.input(0).as<char>();
    char* y = context.output(0).mut<char>();
    const int64_t n = context.output(0).size();
    const int64_t blocks = (n + kBlock - 1) / kBlock;  // A slice starts on a byte of a small dtype.
    over(context, blocks, kGrain / kBlock, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kBlock;
      slice(x, y, first, std::min(n, end * kBlock));
    });
  }

 private:
  static chipdock_dtype target(const kit::NodeView& node) {
    if (node.op() == "CastLike") return node.input_dtype(1);
    kit::require(node.output(0) != nullptr, "Cast has no output");
    return node.output(0)->dtype;
  }

  /// Native to native, native to float (before a narrow target), or float to native.
  Loop find_loop() const {
    Loop found = nullptr;
    const chipdock_dtype from = from_.native() ? from_.type : kit::kFloat32;
    if (to_.native()) return CHIPDOCK_CPU_DISPATCH(cast_loop)(native_of(from), native_of(to_.type));
    dispatch(NativeTypes{}, from,
             [&](auto tag) { found = to_odd_float<typename decltype(tag)::type>; });
    return found;
  }

  void slice(const char* x, char* y, int64_t begin, int64_t end) const {
    if (same_) {
      const int64_t bytes = (end * from_.type.bits + 7) / 8 - from_.bytes(begin);
      std::memmove(y + from_.bytes(begin), x + from_.bytes(begin), static_cast<size_t>(bytes));
      return;
    }
    if (from_.native() && to_.native()) {
      return loop_(x + from_.bytes(begin), y + to_.bytes(begin), end - begin);
    }
    alignas(64) float block[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      read(x, at, n, block);
      write(block, at, n, y);
    }
  }

  void read(const char* x, int64_t at, int64_t n, float* block) const {
    if (from_.half) {
      from_.half.widen(reinterpret_cast<const uint16_t*>(x) + at, block, n);
    } else if (from_.small != nullptr) {
      from_.small->decode(reinterpret_cast<const uint8_t*>(x), at, n, block);
    } else {
      loop_(x + from_.bytes(at), block, n);
    }
  }

  void write(const float* block, int64_t at, int64_t n, char* y) const {
    if (to_.half) {
      to_.half.narrow(block, reinterpret_cast<uint16_t*>(y) + at, n);
    } else if (to_.small != nullptr) {
      to_.small->encode(block, at, n, reinterpret_cast<uint8_t*>(y), options_);
    } else {
      loop_(block, y + to_.bytes(at), n);
    }
  }

  Side from_;
  Side to_;
  NarrowOptions options_;
  bool same_ = false;
  Loop loop_ = nullptr;
};

KernelDef define(const char* op, int32_t since) {
  KernelDef def{op, since};
  def.create = make<Cast>;
  auto types = dtypes_of(NumberTypes{} + Types<bool>{});
  const auto small = SmallFormat::all();
  types.insert(types.end(), small.begin(), small.end());
  def.dtypes = {{0, types}, {-1, types}};
  return def;
}

}  // namespace

KernelSpan cast_kernels() {
  KernelSpan kernels;
  kernels.push_back(define("Cast", 6));
  kernels.push_back(define("CastLike", 15));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
