// SPDX-License-Identifier: Apache-2.0
// Panels of the matrix of patches (im2col) that turns a convolution into a product. Only the panel
// that a tile needs is ever built; compiled per ISA level.
#ifndef CHIPDOCK_PLUGIN_CPU_SIMD_PATCHES_HPP_
#define CHIPDOCK_PLUGIN_CPU_SIMD_PATCHES_HPP_

#include <cstdint>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

/// Extents of a sliding window over depth, height and width.
struct SpaceFields {
  int64_t in[3] = {1, 1, 1};
  int64_t out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0};      ///< Before the first element.
  int64_t pad_end[3] = {0, 0, 0};  ///< After the last one.
};

/// Rows [k_begin, k_end) (channel, then kernel position) and columns [column, column + cols)
/// (output position) of the patch matrix of `image`, written `width` apart; the rest of a row is
/// zeroed.
template <class T>
struct PatchPanel {
  const T* image;
  int64_t k_begin, k_end;
  int64_t column;
  int cols, width;
  T* target;
  T pad = T(0);  ///< Stands for elements outside of the image.
};

CHIPDOCK_CPU_DECLARE(void fill_patches_f32(const SpaceFields& s, const PatchPanel<float>& panel))
CHIPDOCK_CPU_DECLARE(void fill_patches_f64(const SpaceFields& s, const PatchPanel<double>& panel))
CHIPDOCK_CPU_DECLARE(void fill_patches_i32(const SpaceFields& s, const PatchPanel<int32_t>& panel))
/// Width of the panels that are filled fastest: the two vectors of simd/gemm.hpp.
CHIPDOCK_CPU_DECLARE(int patch_panel_bytes())

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_SIMD_PATCHES_HPP_
