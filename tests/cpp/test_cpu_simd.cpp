// SPDX-License-Identifier: Apache-2.0
// Each ISA level is compiled with the vectors that it is for. A level that silently fell back to
// narrower ones would compute the same numbers, only slower, so no other test would notice.
#include "check.hpp"
#include "gemm.hpp"
#include "isa.hpp"
#include "simd/depthwise.hpp"
#include "simd/patches.hpp"

namespace {

using namespace chipdock::plugin::cpu;

int vector_bytes(Isa isa) { return isa >= Isa::kAvx512 ? 64 : isa == Isa::kAvx2 ? 32 : 16; }

TEST(every_level_has_vectors_of_its_width) {
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    if (isa > detected_isa()) continue;  // Not compiled in, or not for this machine.
    const IsaHold hold(isa);
    const int bytes = vector_bytes(isa);
    CHECK_EQ(gemm_isa<float>().width * 4, bytes);
    CHECK_EQ(gemm_isa<double>().width * 8, bytes);
    CHECK_EQ(gemm_isa<float>().cols, 2 * gemm_isa<float>().width);
    CHECK_EQ(gemm_isa<double>().cols, 2 * gemm_isa<double>().width);
    CHECK_EQ(CHIPDOCK_CPU_DISPATCH(patch_panel_bytes)(), 2 * bytes);
    CHECK_EQ(CHIPDOCK_CPU_DISPATCH(depthwise_vector_bytes)(), bytes);
  }
}

TEST(packed_weights_are_named_after_their_level) {
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    CHECK_EQ(gemm_layout<float>("a"), std::string("gemm1_a_f32_") + isa_name(isa));
  }
}

}  // namespace
