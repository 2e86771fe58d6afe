// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor, element by element: mathematics, activations, predicates. float32 runs
// in simd/unary.cpp, the half types through it, float64 and integers here.
#include "ops/elementwise/unary.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "blocked.hpp"
#include "ops/numeric.hpp"

namespace chipdock::plugin::cpu {
namespace {

using Params = UnaryParams<double>;
using Loop = UnaryLoop;

double softplus(double x) {
  return x != x ? x : std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}
double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
double clamp(double x, double low, double high) {
  if (x < low) x = low;
  return x > high ? high : x;
}

template <Unary Op>
double real(double x, [[maybe_unused]] const Params& p) {
  if constexpr (Op == Unary::kAbs) return std::fabs(x);
  if constexpr (Op == Unary::kNeg) return -x;
  if constexpr (Op == Unary::kExp) return std::exp(x);
  if constexpr (Op == Unary::kLog) return std::log(x);
  if constexpr (Op == Unary::kSqrt) return std::sqrt(x);
  if constexpr (Op == Unary::kReciprocal) return 1 / x;
  if constexpr (Op == Unary::kFloor) return std::floor(x);
  if constexpr (Op == Unary::kCeil) return std::ceil(x);
  if constexpr (Op == Unary::kRound) return std::nearbyint(x);
  if constexpr (Op == Unary::kSign) return x > 0 ? 1 : x < 0 ? -1 : x + 0.0;
  if constexpr (Op == Unary::kSin) return std::sin(x);
  if constexpr (Op == Unary::kCos) return std::cos(x);
  if constexpr (Op == Unary::kTan) return std::tan(x);
  if constexpr (Op == Unary::kAsin) return std::asin(x);
  if constexpr (Op == Unary::kAcos) return std::acos(x);
  if constexpr (Op == Unary::kAtan) return std::atan(x);
  if constexpr (Op == Unary::kSinh) return std::sinh(x);
  if constexpr (Op == Unary::kCosh) return std::cosh(x);
  if constexpr (Op == Unary::kTanh) return std::tanh(x);
  if constexpr (Op == Unary::kAsinh) return std::asinh(x);
  if constexpr (Op == Unary::kAcosh) return std::acosh(x);
  if constexpr (Op == Unary::kAtanh) return std::atanh(x);
  if constexpr (Op == Unary::kErf) return std::erf(x);
  if constexpr (Op == Unary::kSigmoid) return sigmoid(x);
  if constexpr (Op == Unary::kHardSigmoid) return clamp(p.alpha * x + p.beta, 0, 1);
  if constexpr (Op == Unary::kRelu) return x < 0 ? 0 : x;
  if constexpr (Op == Unary::kLeakyRelu) return x < 0 ? p.alpha * x : x;
  if constexpr (Op == Unary::kElu) return x < 0 ? p.alpha * std::expm1(x) : x;
  if constexpr (Op == Unary::kSelu) return p.beta * (x <= 0 ? p.alpha * std::expm1(x) : x);
  if constexpr (Op == Unary::kSoftplus) return softplus(x);
  if constexpr (Op == Unary::kSoftsign)
    return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x));
  if constexpr (Op == Unary::kHardSwish) return x * clamp(x / 6 + 0.5, 0, 1);
  if constexpr (Op == Unary::kGelu)
    return x == -INFINITY ? -0.0 : x / 2 * std::erfc(-x * M_SQRT1_2);
  if constexpr (Op == Unary::kGeluTanh) {
    return x / 2 * (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
  }
  if constexpr (Op == Unary::kCelu) return x < 0 ? p.alpha * std::expm1(x / p.alpha) : x;
  if constexpr (Op == Unary::kMish) return x < -800 ? -0.0 : x * std::tanh(softplus(x));
  if constexpr (Op == Unary::kThresholdedRelu) return x > p.alpha ? x : 0;
  if constexpr (Op == Unary::kClip) return clamp(x, p.alpha, p.beta);
  if constexpr (Op == Unary::kSwish) return x * sigmoid(p.alpha * x);
  return x;
}

template <Unary Op>
void real_loop(const void* x, void* y, int64_t n, const Params& params) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<double*>(y)[i] = real<Op>(static_cast<const double*>(x)[i], params);
  }
}

template <size_t... Ops>
constexpr std::array<Loop, sizeof...(Ops)> real_loops(std::index_sequence<Ops...>) {
  return {real_loop<static_cast<Unary>(Ops)>...};
}
constexpr auto kRealLoops = real_loops(std::make_index_sequence<size_t(Unary::kCount)>());

template <Unary Op, class T>
void integer_loop(const void* x, void* y, int64_t n, const Params&) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = static_cast<const T*>(x)[i];
    T& to = static_cast<T*>(y)[i];
    const T negative = static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(v));
    if constexpr (Op == Unary::kAbs) to = v < T{0} ? negative : v;
    if constexpr (Op == Unary::kNeg) to = negative;
    if constexpr (Op == Unary::kSign) to = static_cast<T>((v > T{0}) - (v < T{0}));
    if constexpr (Op == Unary::kRelu) to = v < T{0} ? T{0} : v;
    if constexpr (Op == Unary::kErf) to = static_cast<T>(std::erf(static_cast<double>(v)));
    if constexpr (Op == Unary::kBitwiseNot) to = static_cast<T>(~v);
  }
}

template <class T>
Loop integer_function(Unary op) {
  switch (op) {
    case Unary::kAbs:
      return integer_loop<Unary::kAbs, T>;
    case Unary::kNeg:
      return integer_loop<Unary::kNeg, T>;
    case Unary::kSign:
      return integer_loop<Unary::kSign, T>;
    case Unary::kRelu:
      return integer_loop<Unary::kRelu, T>;
    case Unary::kErf:
      return integer_loop<Unary::kErf, T>;
    case Unary::kBitwiseNot:
      return integer_loop<Unary::kBitwiseNot, T>;
    default:
      return nullptr;
  }
}

/// How an operator's name maps to a function and where its parameters come from.
struct Function {
  const char* op;
  int32_t since;
  Unary function;
  char types;  // f: floats, s: and signed integers, n: and all integers, i: integers alone.
  const char* alpha = nullptr;
  double alpha_default = 0;
  const char* beta = nullptr;
  double beta_default = 0;
};

constexpr Function kFunctions[] = {
    {"Abs", 6, Unary::kAbs, 'n'},
    {"Neg", 6, Unary::kNeg, 's'},
    {"Exp", 6, Unary::kExp, 'f'},
    {"Log", 6, Unary::kLog, 'f'},
    {"Sqrt", 6, Unary::kSqrt, 'f'},
    {"Reciprocal", 6, Unary::kReciprocal, 'f'},
    {"Floor", 6, Unary::kFloor, 'f'},
    {"Ceil", 6, Unary::kCeil, 'f'},
    {"Round", 11, Unary::kRound, 'f'},
    {"Sign", 9, Unary::kSign, 'n'},
    {"Sin", 7, Unary::kSin, 'f'},
    {"Cos", 7, Unary::kCos, 'f'},
    {"Tan", 7, Unary::kTan, 'f'},
    {"Asin", 7, Unary::kAsin, 'f'},
    {"Acos", 7, Unary::kAcos, 'f'},
    {"Atan", 7, Unary::kAtan, 'f'},
    {"Sinh", 9, Unary::kSinh, 'f'},
    {"Cosh", 9, Unary::kCosh, 'f'},
    {"Tanh", 6, Unary::kTanh, 'f'},
    {"Asinh", 9, Unary::kAsinh, 'f'},
    {"Acosh", 9, Unary::kAcosh, 'f'},
    {"Atanh", 9, Unary::kAtanh, 'f'},
    {"Erf", 9, Unary::kErf, 'n'},
    {"Sigmoid", 6, Unary::kSigmoid, 'f'},
    {"HardSigmoid", 6, Unary::kHardSigmoid, 'f', "alpha", 0.2f, "beta", 0.5f},
    {"Relu", 6, Unary::kRelu, 's'},
    {"LeakyRelu", 6, Unary::kLeakyRelu, 'f', "alpha", 0.01f},
    {"Elu", 6, Unary::kElu, 'f', "alpha", 1},
    {"Selu", 6, Unary::kSelu, 'f', "alpha", 1.67326319217681884765625f, "gamma",
     1.05070102214813232421875f},
    {"Softplus", 1, Unary::kSoftplus, 'f'},
    {"Softsign", 1, Unary::kSoftsign, 'f'},
    {"HardSwish", 14, Unary::kHardSwish, 'f'},
    {"Gelu", 20, Unary::kGelu, 'f'},
    {"Celu", 12, Unary::kCelu, 'f', "alpha", 1},
    {"Mish", 18, Unary::kMish, 'f'},
    {"ThresholdedRelu", 10, Unary::kThresholdedRelu, 'f', "alpha", 1},
    {"Swish", 24, Unary::kSwish, 'f', "alpha", 1},
    {"BitwiseNot", 18, Unary::kBitwiseNot, 'i'}};

std::vector<chipdock_dtype> types_of(char kind) {
  switch (kind) {
    case 'f':
      return dtypes_of(FloatTypes{});
    case 's':
      return dtypes_of(FloatTypes{} + SignedTypes{});
    case 'i':
      return dtypes_of(IntegerTypes{});
    default:
      return dtypes_of(NumberTypes{});
  }
}

/// Library calls cost tens of times a vector lane, so fewer elements are worth a thread.
int64_t grain_of(Unary op) {
  return op >= Unary::kSin && op <= Unary::kAtanh && op != Unary::kTanh ? kGrain / 8 : kGrain;
}

class UnaryKernel final : public Kernel {
 public:
  explicit UnaryKernel(const kit::NodeView& node) {
    const Function* found = nullptr;
    for (const Function& f : kFunctions) {
      if (node.op() == f.op) found = &f;
    }
    kit::require(found != nullptr, node.op(), " is not a function of one tensor");
    if (found->alpha != nullptr) params_.alpha = node.number(found->alpha, found->alpha_default);
    if (found->beta != nullptr) params_.beta = node.number(found->beta, found->beta_default);
    Unary op = found->function;
    if (op == Unary::kGelu && node.text("approximate", "none") == "tanh") op = Unary::kGeluTanh;
    single_params_ = {static_cast<float>(params_.alpha), static_cast<float>(params_.beta)};
    grain_ = grain_of(op);
    const chipdock_dtype type = node.input_dtype(0);
    half_ = half_codec(type);
    if (half_ || is(type, kit::kFloat32)) {
      single_ = CHIPDOCK_CPU_DISPATCH(unary_f32)(op);
    } else if (is(type, kit::kFloat64)) {
      loop_ = unary_f64(op);
    } else {
      dispatch(IntegerTypes{}, type,
               [&](auto tag) { loop_ = integer_function<typename decltype(tag)::type>(op); });
    }
    size_ = type.bits / 8;
    if (single_ != nullptr) {
      float zero = 0;
      single_(&zero, &zero, 1, single_params_);
      zero_stays_ = zero == 0 && !std::signbit(zero);
    }
    if (single_ == nullptr && loop_ == nullptr) no_dtype(node.op(), type);
  }

  void run(const Context& context) const override {
    const auto* x = context.input(0).as<char>();
    auto* y = context.output(0).mut<char>();
    const Tensor& to = context.output(0);
    const int64_t stored = static_cast<int64_t>(to.bytes()) / size_;
    over(context, stored, grain_, [&](int64_t begin, int64_t end) {
      slice(x + begin * size_, y + begin * size_, end - begin);
    });
    if (to.layout == kBlocked && !zero_stays_) zero_lanes(to);
  }

 private:
  void slice(const char* x, char* y, int64_t n) const {
    if (half_) {
      half_slice(reinterpret_cast<const uint16_t*>(x), reinterpret_cast<uint16_t*>(y), n);
    } else if (single_ != nullptr) {
      single_(reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y), n, single_params_);
    } else {
      loop_(x, y, n, params_);
    }
  }
  void half_slice(const uint16_t* x, uint16_t* y, int64_t n) const {
    alignas(64) float block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = std::min(kBlock, n - i);
      half_.widen(x + i, block, m);
      single_(block, block, m, single_params_);
      half_.narrow(block, y + i, m);
    }
  }

  Params params_;
  UnaryParams<float> single_params_;
  UnaryF32 single_ = nullptr;
  HalfCodec half_;
  Loop loop_ = nullptr;
  int64_t grain_ = kGrain;
  int64_t size_ = 4;
  bool zero_stays_ = true;
};

}  // namespace

UnaryLoop unary_f64(Unary op) { return kRealLoops[static_cast<size_t>(op)]; }

KernelSpan unary_kernels() {
  KernelSpan kernels;
  for (const Function& f : kFunctions) {
    KernelDef def{f.op, f.since};
    def.create = make<UnaryKernel>;
    def.dtypes = {{0, types_of(f.types)}};
    def.aliases = {{0, 0}};
    def.supports = supports_either_layout;
    def.layouts = blocked_arguments({0, -1});
    kernels.push_back(std::move(def));
  }
  return kernels;
}

}  // namespace chipdock::plugin::cpu
