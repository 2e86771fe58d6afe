// SPDX-License-Identifier: Apache-2.0
// Float kernels of the element-wise functions. What models seldom use goes through the C library,
// which is exact to an ULP over the whole range; all else is vector code.
// build: fp-contract=fast
#include "simd/unary.hpp"

#include <cmath>

#include "simd/math.hpp"
#include "simd/trigonometry.hpp"

namespace chipdock::plugin::cpu::CHIPDOCK_ISA {
namespace {

using Params = UnaryParams<float>;

template <float (*Function)(float)>
void through_library(const float* x, float* y, int64_t n, const Params&) {
  for (int64_t i = 0; i < n; ++i) y[i] = Function(x[i]);
}

void sine(const float* x, float* y, int64_t n, const Params&) { trigonometry<0, sinf>(x, y, n); }
void cosine(const float* x, float* y, int64_t n, const Params&) { trigonometry<1, cosf>(x, y, n); }

/// UnaryF32 of a vector function that takes the parameters too. F has no state: it is rebuilt here.
template <class F>
void vectorised(const float* x, float* y, int64_t n, const Params& params) {
  const float alpha = params.alpha;
  const float beta = params.beta;
  map(x, y, n, [alpha, beta](Vf v) { return F::apply(v, alpha, beta); });
}

#define CHIPDOCK_UNARY(Name, ...)                                                      \
  struct Name {                                                                        \
    static Vf apply(Vf x, [[maybe_unused]] float alpha, [[maybe_unused]] float beta) { \
      __VA_ARGS__                                                                      \
    }                                                                                  \
  };

CHIPDOCK_UNARY(Abs, return abs(x);)
CHIPDOCK_UNARY(Neg, return -x;)
CHIPDOCK_UNARY(Exp, return exp(x);)
CHIPDOCK_UNARY(Log, return log(x);)
CHIPDOCK_UNARY(Sqrt, return sqrt(x);)
CHIPDOCK_UNARY(Reciprocal, return 1.0f / x;)
CHIPDOCK_UNARY(Floor, return floor(x);)
CHIPDOCK_UNARY(Ceil, return ceil(x);)
CHIPDOCK_UNARY(Round, return rint(x);)
CHIPDOCK_UNARY(Sign, const Vf one = splat(1.0f); return x > 0.0f   ? one
                                                        : x < 0.0f ? -one
                                                                   : x + 0.0f;)
CHIPDOCK_UNARY(Tanh, return tanh(x);)
CHIPDOCK_UNARY(Erf, return erf(x);)
CHIPDOCK_UNARY(Sigmoid, return sigmoid(x);)
CHIPDOCK_UNARY(HardSigmoid, return max(Vf{}, min(splat(1.0f), alpha* x + beta));)
CHIPDOCK_UNARY(Relu, return max(x, Vf{});)
CHIPDOCK_UNARY(LeakyRelu, return x < 0.0f ? alpha * x : x;)
CHIPDOCK_UNARY(Elu, return x < 0.0f ? alpha * expm1(x) : x;)
CHIPDOCK_UNARY(Selu, return beta * (x <= 0.0f ? alpha * expm1(x) : x);)
CHIPDOCK_UNARY(Softplus, return softplus(x);)
CHIPDOCK_UNARY(Softsign, return abs(x) > 3.4e38f ? with_sign(splat(1.0f), x) : x / (1.0f + abs(x));)
CHIPDOCK_UNARY(HardSwish, return x * max(Vf{}, min(splat(1.0f), x * (1.0f / 6.0f) + 0.5f));)
CHIPDOCK_UNARY(Gelu, return 0.5f * x * (1.0f + erf(x * 0.70710678f));)
CHIPDOCK_UNARY(GeluTanh,
               return 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)));)
CHIPDOCK_UNARY(Celu, return x < 0.0f ? alpha * expm1(x / alpha) : x;)
CHIPDOCK_UNARY(Mish, return mish(x);)
CHIPDOCK_UNARY(ThresholdedRelu, return x > alpha ? x : Vf{};)  // 0 for NaN, as ONNX has it
CHIPDOCK_UNARY(Swish, return x * sigmoid(alpha * x);)
CHIPDOCK_UNARY(Clip, return min(max(x, splat(alpha)), splat(beta));)
#undef CHIPDOCK_UNARY

}  // namespace

UnaryF32 unary_f32(Unary op) {
  switch (op) {
    case Unary::kAbs:
      return vectorised<Abs>;
    case Unary::kNeg:
      return vectorised<Neg>;
    case Unary::kExp:
      return vectorised<Exp>;
    case Unary::kLog:
      return vectorised<Log>;
    case Unary::kSqrt:
      return vectorised<Sqrt>;
    case Unary::kReciprocal:
      return vectorised<Reciprocal>;
    case Unary::kFloor:
      return vectorised<Floor>;
    case Unary::kCeil:
      return vectorised<Ceil>;
    case Unary::kRound:
      return vectorised<Round>;
    case Unary::kSign:
      return vectorised<Sign>;
    case Unary::kSin:
      return sine;
    case Unary::kCos:
      return cosine;
    case Unary::kTan:
      return through_library<tanf>;
    case Unary::kAsin:
      return through_library<asinf>;
    case Unary::kAcos:
      return through_library<acosf>;
    case Unary::kAtan:
      return through_library<atanf>;
    case Unary::kSinh:
      return through_library<sinhf>;
    case Unary::kCosh:
      return through_library<coshf>;
    case Unary::kTanh:
      return vectorised<Tanh>;
    case Unary::kAsinh:
      return through_library<asinhf>;
    case Unary::kAcosh:
      return through_library<acoshf>;
    case Unary::kAtanh:
      return through_library<atanhf>;
    case Unary::kErf:
      return vectorised<Erf>;
    case Unary::kSigmoid:
      return vectorised<Sigmoid>;
    case Unary::kHardSigmoid:
      return vectorised<HardSigmoid>;
    case Unary::kRelu:
      return vectorised<Relu>;
    case Unary::kLeakyRelu:
      return vectorised<LeakyRelu>;
    case Unary::kElu:
      return vectorised<Elu>;
    case Unary::kSelu:
      return vectorised<Selu>;
    case Unary::kSoftplus:
      return vectorised<Softplus>;
    case Unary::kSoftsign:
      return vectorised<Softsign>;
    case Unary::kHardSwish:
      return vectorised<HardSwish>;
    case Unary::kGelu:
      return vectorised<Gelu>;
    case Unary::kGeluTanh:
      return vectorised<GeluTanh>;
    case Unary::kCelu:
      return vectorised<Celu>;
    case Unary::kMish:
      return vectorised<Mish>;
    case Unary::kThresholdedRelu:
      return vectorised<ThresholdedRelu>;
    case Unary::kSwish:
      return vectorised<Swish>;
    case Unary::kClip:
      return vectorised<Clip>;
    case Unary::kBitwiseNot:
    case Unary::kCount:
      break;
  }
  return nullptr;
}

}  // namespace chipdock::plugin::cpu::CHIPDOCK_ISA
