// SPDX-License-Identifier: Apache-2.0
// IsNaN, IsInf and Not: one tensor in, bool out. Floats are judged by their bits, whatever their
// format.
#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr chipdock_dtype kE4M3Fn = kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FN, 8);
constexpr chipdock_dtype kE4M3Fnuz = kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ, 8);
constexpr chipdock_dtype kE5M2 = kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2, 8);
constexpr chipdock_dtype kE5M2Fnuz = kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ, 8);

std::vector<chipdock_dtype> all_floats() {
  auto types = dtypes_of(FloatTypes{});
  types.insert(types.end(), {kE4M3Fn, kE4M3Fnuz, kE5M2, kE5M2Fnuz});
  return types;
}

/// A float format as its bits show it.
struct Format {
  int bits;
  uint64_t infinity;  ///< Bits of +inf; all ones if the format has none.
  uint64_t largest;   ///< A magnitude above this is a NaN.
  bool negative_zero_is_nan;
};

Format format_of(chipdock_dtype type) {
  if (is(type, kit::kFloat64)) return {64, 0x7ffull << 52, 0x7ffull << 52, false};
  if (is(type, kit::kFloat32)) return {32, 0x7f800000, 0x7f800000, false};
  if (is(type, kit::kFloat16)) return {16, 0x7c00, 0x7c00, false};
  if (is(type, kit::kBfloat16)) return {16, 0x7f80, 0x7f80, false};
  if (is(type, kE5M2)) return {8, 0x7c, 0x7c, false};
  if (is(type, kE4M3Fn)) return {8, ~0ull, 0x7e, false};
  return {8, ~0ull, 0x7f, true};
}

/// What to look for, as comparisons of raw bits.
struct Test {
  uint64_t magnitude;
  uint64_t above;     ///< True for magnitudes above this…
  uint64_t equal[2];  ///< …and for these bit patterns.
};

template <class U>
void loop(const void* x, bool* y, int64_t n, const Test& test) {
  const U magnitude = static_cast<U>(test.magnitude);
  const U above = static_cast<U>(test.above);
  const U first = static_cast<U>(test.equal[0]);
  const U second = static_cast<U>(test.equal[1]);
  for (int64_t i = 0; i < n; ++i) {
    const U v = static_cast<const U*>(x)[i];
    y[i] = (static_cast<U>(v & magnitude) > above) | (v == first) | (v == second);
  }
}

class Predicate final : public Kernel {
 public:
  explicit Predicate(const kit::NodeView& node) {
    const chipdock_dtype type = node.input_dtype(0);
    bits_ = type.bits;
    if (node.op() == "Not") {  // false is 0, all else true.
      test_ = {0xff, 0xff, {0, 0}};
      return;
    }
    const Format format = format_of(type);
    const uint64_t sign = 1ull << (format.bits - 1);
    const uint64_t some_nan = format.negative_zero_is_nan ? sign : sign - 1;
    if (node.op() == "IsNaN") {
      test_ = {sign - 1, format.largest, {some_nan, some_nan}};
      return;
    }
    const bool has = format.infinity != ~0ull;
    const bool up = has && node.integer("detect_positive", 1) != 0;
    const bool down = has && node.integer("detect_negative", 1) != 0;
    const uint64_t high = format.infinity;
    test_ = {0, 0, {up ? high : high | sign, down ? high | sign : high}};
    never_ = !up && !down;
  }

  void run(const Context& context) const override {
    const auto* x = context.input(0).as<char>();
    auto* y = context.output(0).mut<bool>();
    over(context, context.output(0).size(), kGrain, [&](int64_t begin, int64_t end) {
      const char* from = x + begin * (bits_ / 8);
      const int64_t n = end - begin;
      if (never_)
        std::memset(y + begin, 0, static_cast<size_t>(n));
      else if (bits_ == 8)
        loop<uint8_t>(from, y + begin, n, test_);
      else if (bits_ == 16)
        loop<uint16_t>(from, y + begin, n, test_);
      else if (bits_ == 32)
        loop<uint32_t>(from, y + begin, n, test_);
      else
        loop<uint64_t>(from, y + begin, n, test_);
    });
  }

 private:
  int bits_ = 8;
  bool never_ = false;
  Test test_{};
};

KernelDef define(const char* op, int32_t since, std::vector<chipdock_dtype> types) {
  KernelDef def{op, since};
  def.create = make<Predicate>;
  def.dtypes = {{0, std::move(types)}, {-1, {kit::kBool}}};
  return def;
}

}  // namespace

KernelSpan predicate_kernels() {
  KernelSpan kernels;
  kernels.push_back(define("Not", 1, {kit::kBool}));
  kernels.back().aliases = {{0, 0}};
  kernels.push_back(define("IsNaN", 9, all_floats()));
  kernels.push_back(define("IsInf", 10, all_floats()));
  return kernels;
}

}  // namespace chipdock::plugin::cpu
