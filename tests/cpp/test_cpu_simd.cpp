// SPDX-License-Identifier: Apache-2.0
// Each ISA level is compiled with the vectors that it is for. A level that silently fell back to
// narrower ones would compute the same numbers, only slower, so no other test would notice.
#include "check.hpp"
#include "gemm.hpp"
#include "gemm_half.hpp"
#include "isa.hpp"
#include "simd/depthwise.hpp"
#include "simd/patches.hpp"

namespace {

using namespace chipdock::plugin::cpu;

int vector_bytes(Isa isa) { return isa >= Isa::kAvx512 ? 64 : isa == Isa::kAvx2 ? 32 : 16; }

TEST(every_level_has_vectors_of_its_width) {
  for (const Isa isa : kIsaLevels) {
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

TEST(words_of_bfloat16_are_multiplied_where_the_level_does) {
  for (const Isa isa : kIsaLevels) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    const GemmIsa<float>* words = pair_isa(chipdock::kit::kBfloat16);
    CHECK_EQ(words != nullptr, isa >= Isa::kAvx512Bf16);
    CHECK(pair_isa(chipdock::kit::kFloat16) == nullptr);
    if (words == nullptr) continue;
    CHECK_EQ(words->rows, gemm_isa<float>().rows);
    CHECK_EQ(words->cols, gemm_isa<float>().cols);
    CHECK(words->tile != gemm_isa<float>().tile);
  }
}

TEST(packed_weights_are_named_after_their_level) {
  for (const Isa isa : kIsaLevels) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    CHECK_EQ(gemm_layout<float>("a"), std::string("gemm1_a_f32_") + isa_name(isa));
  }
}

}  // namespace
