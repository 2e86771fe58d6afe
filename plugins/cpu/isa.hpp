// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use, and how a caller picks among the copies of a function that
// simd/ compiles once per level, in a namespace of the level's name.
#ifndef CHIPDOCK_PLUGIN_CPU_ISA_HPP_
#define CHIPDOCK_PLUGIN_CPU_ISA_HPP_

namespace chipdock::plugin::cpu {

/// Levels in ascending order. Baseline is x86-64-v2, or the plain architecture elsewhere.
/// kAvx512Vnni runs the copies of kAvx512 and has products of bytes besides (simd/dot_vnni.cpp),
/// kAvx512Bf16 has products of bfloat16 (simd/gemm_bf16.cpp) besides those.
enum class Isa { kBaseline = 0, kAvx2 = 1, kAvx512 = 2, kAvx512Vnni = 3, kAvx512Bf16 = 4 };
inline constexpr Isa kIsaLevels[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni,
                                     Isa::kAvx512Bf16};

/// "baseline", "avx2", "avx512", "avx512_vnni" or "avx512_bf16".
const char* isa_name(Isa isa);

/// The best level this machine and this build both have.
Isa detected_isa();

/// The level in force: the detected one, or the cap of CHIPDOCK_CPU_ISA or of the option `isa`.
/// It can change only while no device is open; the inner loops of a kernel ask once, at create.
Isa active_isa();

/// Reads a cap. NULL or "" is the detected level. Throws kit::Failure: INVALID_ARGUMENT for an
/// unknown name, UNSUPPORTED for a level that this machine or build lacks.
Isa parse_isa(const char* text, const char* where);

/// Keeps a level in force while it lives. One level serves all open devices of the process: the
/// constructor throws FAILED_PRECONDITION if another one is held.
class IsaHold {
 public:
  explicit IsaHold(Isa isa);
  ~IsaHold();
  IsaHold(const IsaHold&) = delete;
  IsaHold& operator=(const IsaHold&) = delete;
};

// CHIPDOCK_CPU_DISPATCH(function) is a pointer to the copy of `function` that active_isa() asks
// for. simd/<file>.cpp defines it as
//   namespace chipdock::plugin::cpu::CHIPDOCK_ISA { void function(...) { … } }
// and the caller declares all copies with
//   CHIPDOCK_CPU_DECLARE(void function(const float* x, float* y, int64_t count));
#if defined(CHIPDOCK_HAVE_ISA_AVX512)
#define CHIPDOCK_CPU_DECLARE(...) \
  namespace baseline {            \
  __VA_ARGS__;                    \
  }                               \
  namespace avx2 {                \
  __VA_ARGS__;                    \
  }                               \
  namespace avx512 {              \
  __VA_ARGS__;                    \
  }
#define CHIPDOCK_CPU_DISPATCH(function)                                           \
  (::chipdock::plugin::cpu::active_isa() >= ::chipdock::plugin::cpu::Isa::kAvx512 \
       ? ::chipdock::plugin::cpu::avx512::function                                \
   : ::chipdock::plugin::cpu::active_isa() == ::chipdock::plugin::cpu::Isa::kAvx2 \
       ? ::chipdock::plugin::cpu::avx2::function                                  \
       : ::chipdock::plugin::cpu::baseline::function)
#else
#define CHIPDOCK_CPU_DECLARE(...) \
  namespace baseline {            \
  __VA_ARGS__;                    \
  }
#define CHIPDOCK_CPU_DISPATCH(function) (::chipdock::plugin::cpu::baseline::function)
#endif

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_ISA_HPP_
