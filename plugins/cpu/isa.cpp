// SPDX-License-Identifier: Apache-2.0
// Detection of the instruction set and its cap.
#include "isa.hpp"

#include <atomic>
#include <cstring>
#include <mutex>

#include "chipdock/plugin_kit.hpp"

namespace chipdock::plugin::cpu {
namespace {

// Plain data and a mutex, whose constructors and destructors run no code: nothing happens at load.
std::mutex g_mutex;
int g_holders = 0;
std::atomic<int> g_active{-1};

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAvx512Vnni:
      return "avx512_vnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    default:
      return "baseline";
  }
}

Isa detected_isa() {
#if defined(CHIPDOCK_HAVE_ISA_AVX512)
  __builtin_cpu_init();
  // The flags that -march=haswell and -march=skylake-avx512 let the compiler use.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
                    __builtin_cpu_supports("movbe");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni && __builtin_cpu_supports("avx512bf16")) return Isa::kAvx512Bf16;
  if (vnni) return Isa::kAvx512Vnni;
  if (avx512) return Isa::kAvx512;
  if (avx2) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

Isa active_isa() {
  const int active = g_active.load(std::memory_order_relaxed);
  return active >= 0 ? static_cast<Isa>(active) : detected_isa();
}

Isa parse_isa(const char* text, const char* where) {
  const Isa best = detected_isa();
  if (text == nullptr || *text == '\0') return best;
  for (const Isa isa : kIsaLevels) {
    if (std::strcmp(text, isa_name(isa)) != 0) continue;
    if (isa > best) {
      kit::fail(CHIPDOCK_UNSUPPORTED, where, "=", text,
                " asks for more than this machine or build has; ", "the best level here is ",
                isa_name(best));
    }
    return isa;
  }
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, where, "=", text,
            " is no instruction set level; use baseline, avx2, avx512, avx512_vnni or "
            "avx512_bf16, or leave it unset");
}

IsaHold::IsaHold(Isa isa) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_holders > 0 && active_isa() != isa) {
    kit::fail(CHIPDOCK_FAILED_PRECONDITION, "isa ", isa_name(isa), " was asked for while ",
              g_holders, " open devices use ", isa_name(active_isa()),
              "; close them first or use the same level");
  }
  ++g_holders;
  g_active.store(static_cast<int>(isa), std::memory_order_relaxed);
}

IsaHold::~IsaHold() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (--g_holders == 0) g_active.store(-1, std::memory_order_relaxed);
}

}  // namespace chipdock::plugin::cpu
