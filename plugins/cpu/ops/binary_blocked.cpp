// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two blocked tensors, numpy broadcast over batch and pixels, and of one with a
// constant: a number, or one for each channel. The functions are those of layout 0.
#include <algorithm>
#include <array>
#include <string>

#include "blocked.hpp"
#include "ops/numeric.hpp"
#include "simd/binary.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

struct Operator {
  const char* op;
  int32_t since;
  Binary function;
};

constexpr Operator kOperators[] = {
    {"Add", 7, Binary::kAdd},     {"Sub", 7, Binary::kSub}, {"Mul", 7, Binary::kMul},
    {"Div", 7, Binary::kDiv},     {"Max", 6, Binary::kMax}, {"Min", 6, Binary::kMin},
    {"PRelu", 7, Binary::kPRelu}, {"Sum", 6, Binary::kAdd}, {"Pow", 7, Binary::kPow}};

Binary function_of(const kit::NodeView& node) {
  const auto* const found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                         [&](const Operator& o) { return node.op() == o.op; });
  kit::require(found != std::end(kOperators), node.op(), " is not known in blocks");
  return found->function;
}

/// Groups of a block that a repeated group is copied to, so that a call has something to do.
constexpr int64_t kRepeats = 32;
constexpr int64_t kMostLanes = 16;

/// An operand as the loops see it. Distances are in floats; 0 where the operand is repeated.
struct Operand {
  const float* data = nullptr;
  int64_t batch = 0;
  int64_t block = 0;
  std::array<int64_t, CHIPDOCK_MAX_RANK> pixel{};  ///< Of each dim from 2 on.
  bool still = false;                              ///< One group for all pixels of a plane,
  bool whole = false;                              ///< or as many as the output, in the same order.
};

class BlockedBinary final : public Kernel {
 public:
  explicit BlockedBinary(const kit::NodeView& node)
      : op_(node.op()), function_(CHIPDOCK_CPU_DISPATCH(binary_f32)(function_of(node))) {
    const float zero = 0;
    float both = 1;
    function_(&zero, &zero, &both, 1, Operands::kBoth);
    zero_stays_ = both == 0;
  }

  uint64_t workspace(const Context& context) const override {
    const BlockedShape shape(context.output(0));
    return 2 * padded_bytes(shape.blocks * shape.block, sizeof(float));
  }

  void run(const Context& context) const override {
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const BlockedShape shape(y);
    Carver carver(context.workspace);
    const Operand a = operand(context.input(0), y, shape, carver);
    const Operand b = operand(context.input(1), y, shape, carver);
    const int64_t planes = shape.batch * shape.blocks;
    if (a.whole && b.whole) {
      over(context, shape.total(), kGrain, [&](int64_t begin, int64_t end) {
        function_(a.data + begin, b.data + begin, y.mut<float>() + begin, end - begin,
                  Operands::kBoth);
      });
    } else {
      over(context, planes, row_grain(shape.plane()), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) plane(a, b, y, shape, p);
      });
    }
    if (!zero_stays_) zero_lanes(y);
  }

 private:
  Operand operand(const Tensor& t, const Tensor& y, const BlockedShape& shape,
                  Carver& carver) const {
    Operand made;
    if (t.layout == 0) {
      // A constant, one number for each channel or for all.
      auto* own = carver.take<float>(shape.blocks * shape.block);
      std::fill_n(own, shape.blocks * shape.block, 0.0f);
      const float* from = t.as<float>();
      const int64_t step = t.size() == 1 ? 0 : 1;
      for (int64_t i = 0; i < shape.channels; ++i) own[i] = from[i * step];
      made.data = own;
      made.block = shape.block;
      made.still = true;
      return made;
    }
    kit::require(t.rank == y.rank && t.dim(1) == y.dim(1), op_, ": a blocked operand has ",
                 t.dim(1), " channels, the output ", y.dim(1));
    const BlockedShape own(t);
    made.data = t.as<float>();
    made.block = own.plane();
    made.batch = own.batch == 1 ? 0 : own.blocks * own.plane();
    int64_t step = own.block;
    bool same = own.batch == shape.batch;
    for (int32_t i = t.rank - 1; i >= 2; --i) {
      kit::require(t.dim(i) == 1 || t.dim(i) == y.dim(i), op_, ": dim ", i, " is ", t.dim(i),
                   ", the output has ", y.dim(i));
      made.pixel[static_cast<size_t>(i)] = t.dim(i) == 1 ? 0 : step;
      same = same && t.dim(i) == y.dim(i);
      step *= t.dim(i);
    }
    made.whole = same;
    made.still = own.pixels == 1;
    return made;
  }

  void plane(const Operand& a, const Operand& b, const Tensor& y, const BlockedShape& s,
             int64_t p) const {
    const int64_t n = p / s.blocks;
    const int64_t block = p % s.blocks;
    const float* left = a.data + n * a.batch + block * a.block;
    const float* right = b.data + n * b.batch + block * b.block;
    float* to = y.mut<float>() + p * s.plane();
    const bool dense_a = a.whole || (!a.still && matches(a, y, s));
    const bool dense_b = b.whole || (!b.still && matches(b, y, s));
    if ((dense_a || a.still) && (dense_b || b.still)) {
      runs(left, dense_a, right, dense_b, s, to);
    } else {
      pixels(a, left, b, right, y, s, to);
    }
  }

  /// Whether an operand has the output's pixels, though maybe not its batch.
  static bool matches(const Operand& o, const Tensor& y, const BlockedShape& s) {
    int64_t step = s.block;
    for (int32_t i = y.rank - 1; i >= 2; --i) {
      if (y.dim(i) != 1 && o.pixel[static_cast<size_t>(i)] != step) return false;
      step *= y.dim(i);
    }
    return true;
  }

  /// Each operand has all pixels, or one group that is repeated.
  void runs(const float* a, bool dense_a, const float* b, bool dense_b, const BlockedShape& s,
            float* to) const {
    alignas(64) float left[kRepeats * kMostLanes];
    alignas(64) float right[kRepeats * kMostLanes];
    const auto repeat = [&](const float* from, float* all) {
      for (int64_t i = 0; i < std::min(kRepeats, s.pixels); ++i) {
        std::copy_n(from, s.block, all + i * s.block);
      }
    };
    if (dense_a && dense_b) return function_(a, b, to, s.plane(), Operands::kBoth);
    if (!dense_a) repeat(a, left);
    if (!dense_b) repeat(b, right);
    for (int64_t i = 0; i < s.pixels; i += kRepeats) {
      const int64_t count = std::min(kRepeats, s.pixels - i) * s.block;
      const int64_t at = i * s.block;
      function_(dense_a ? a + at : left, dense_b ? b + at : right, to + at, count, Operands::kBoth);
    }
  }

  /// Anything else: pixel by pixel.
  void pixels(const Operand& a, const float* left, const Operand& b, const float* right,
              const Tensor& y, const BlockedShape& s, float* to) const {
    for (int64_t i = 0; i < s.pixels; ++i) {
      int64_t rest = i, at_a = 0, at_b = 0;
      for (int32_t d = y.rank - 1; d >= 2; --d) {
        const int64_t index = rest % y.dim(d);
        rest /= y.dim(d);
        at_a += index * a.pixel[static_cast<size_t>(d)];
        at_b += index * b.pixel[static_cast<size_t>(d)];
      }
      function_(left + at_a, right + at_b, to + i * s.block, s.block, Operands::kBoth);
    }
  }

  std::string op_;
  BinaryF32 function_;
  bool zero_stays_ = true;
};

/// A constant of one element, or of one for each channel and nothing else.
bool is_channel_constant(const chipdock_value* v, int32_t rank, int64_t channels) {
  if (v->constant == nullptr || v->rank < 0 || v->rank > rank) return false;
  for (int32_t i = 0; i < v->rank; ++i) {
    const bool is_channel = i - v->rank + rank == 1;
    if (v->dims[i] != 1 && !(is_channel && v->dims[i] == channels)) return false;
  }
  return true;
}

int32_t supports(const kit::NodeView& node) {
  const chipdock_value* y = node.output(0);
  if (!is_blocked(y) || node.input_count() != 2) return CHIPDOCK_SUPPORTS_NO;
  bool any = false;
  for (uint32_t i = 0; i < 2; ++i) {
    using kit::operator==;
    const chipdock_value* x = node.input(i);
    if (x == nullptr || !(x->dtype == kit::kFloat32)) return CHIPDOCK_SUPPORTS_NO;
    const bool blocked = is_blocked(x) && x->rank == y->rank && x->dims[1] == y->dims[1];
    if (!blocked && !(x->layout == 0 && is_channel_constant(x, y->rank, y->dims[1]))) {
      return CHIPDOCK_SUPPORTS_NO;
    }
    any = any || blocked;
  }
  return any ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

}  // namespace

KernelSpan binary_blocked_kernels() {
  KernelSpan kernels;
  for (const Operator& o : kOperators) {
    KernelDef def{o.op, o.since};
    def.name = "binary_blocked_f32";
    def.create = make<BlockedBinary>;
    def.supports = supports;
    def.dtypes = {{0, {kit::kFloat32}}, {-1, {kit::kFloat32}}};
    def.layouts = blocked_arguments({0, 1, -1});
    def.aliases = {{0, 0}, {1, 0}};
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
