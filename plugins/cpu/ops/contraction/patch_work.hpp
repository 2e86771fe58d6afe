// SPDX-License-Identifier: Apache-2.0
// A convolution as a product: the filters times panels of patches that are made on the fly. bfloat16
// is multiplied by words where the level does that (gemm_half.hpp).
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PATCH_WORK_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PATCH_WORK_HPP_

#include <algorithm>

#include "gemm.hpp"
#include "gemm_half.hpp"
#include "ops/fused/activation.hpp"
#include "ops/window.hpp"
#include "simd/gemm_half.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {

/// The elements of one call, computed in T.
template <class T>
struct ConvData {
  const T* x;
  const T* filters;   ///< As pack() gave them.
  const T* bias;      ///< Or NULL.
  const T* residual;  ///< Or NULL; may be y.
  T* y;
  const Tensor* halves = nullptr;         ///< Y, if sums are narrowed into it block by block.
  const uint16_t* x_halves = nullptr;     ///< X, if the product is one of words,
  const GemmIsa<float>* words = nullptr;  ///< by this tile.
};

template <class T>
class PatchWork final : public GemmWork<T> {
 public:
  PatchWork(const Space& space, int64_t batch, int64_t groups, int64_t in_channels,
            int64_t out_channels, const ConvData<T>& data, const FusedActivation& activation)
      : space_(space),
        groups_(groups),
        channels_(in_channels / groups),
        data_(data),
        activation_(activation),
        direct_(space.pointwise()) {
    this->m = out_channels / groups;
    this->n = space.out_size();
    depth_ = channels_ * space.kernel_size();
    this->k = depth_;
    this->batch = batch * groups;
    this->c_row = this->n;
    this->clamp = activation.clamp<T>();
    if constexpr (sizeof(T) == sizeof(float)) {
      if (data.words == nullptr) return;
      this->isa = data.words;
      this->k = pair_words(depth_);
    }
  }
  const T* a(int64_t member) const override {
    return data_.filters + member % groups_ * this->m * this->k;
  }
  T* c(int64_t member) const override { return data_.y + member * this->m * this->n; }
  const T* start(int64_t member) const override {
    return data_.residual != nullptr ? data_.residual + member * this->m * this->n : nullptr;
  }
  const T* bias(int64_t member) const override {
    return data_.bias != nullptr ? data_.bias + member % groups_ * this->m : nullptr;
  }
  void finish(T* c, int64_t rows, int64_t cols) const override {
    if (this->clamp == nullptr) activation_.apply(c, rows, cols, this->c_row);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (data_.halves == nullptr) return;
      const Tensor& y = *data_.halves;
      for (const T* from = c; from < c + rows * this->n; from += this->n) {
        narrow(y.dtype, from, cols, y.mut<uint16_t>() + (from - data_.y));
      }
    }
  }
  GemmPanel<T> panel(int64_t member, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                     T* scratch) const override {
    const int64_t offset = member * channels_ * space_.in_size();
    if constexpr (sizeof(T) == sizeof(float)) {
      if (data_.words != nullptr) return word_panel(offset, k_begin, k_end, column, cols, scratch);
    }
    const T* image = data_.x + offset;
    if (direct_) {
      GemmB<T> b;
      b.data = image;
      b.row = this->n;
      return b.panel(this->m, this->k, k_begin, k_end, column, cols, scratch);
    }
    const int width = gemm_isa<T>().cols;
    const PatchPanel<T> patches = {image, k_begin, k_end, column, cols, width, scratch};
    if constexpr (sizeof(T) == sizeof(float)) {
      CHIPDOCK_CPU_DISPATCH(fill_patches_f32)(space_, patches);
    } else {
      CHIPDOCK_CPU_DISPATCH(fill_patches_f64)(space_, patches);
    }
    return {scratch, width};
  }

 private:
  /// Patches of floats become words a few rows at a time, while they are in the nearest cache.
  GemmPanel<float> word_panel(int64_t offset, int64_t begin, int64_t end, int64_t column, int cols,
                              float* scratch) const {
    const int width = this->isa->cols;
    if (direct_) {
      pair_pack_panel(data_.x_halves + offset + column, this->n, 1, depth_, begin, end, cols,
                      scratch);
      return {scratch, width};
    }
    constexpr int64_t kWords = 32;
    constexpr int kWidest = 32;
    float rows[2 * kWords * kWidest];
    kit::require(width <= kWidest, "panels of ", width, " columns");
    for (int64_t word = begin; word < end; word += kWords) {
      const int64_t last = std::min(depth_, 2 * std::min(end, word + kWords));
      const PatchPanel<float> patches = {
          data_.x + offset, 2 * word, last, column, cols, width, rows};
      CHIPDOCK_CPU_DISPATCH(fill_patches_f32)(space_, patches);
      for (int64_t k = 2 * word; k < last; k += 2) {
        const float* low = rows + (k - 2 * word) * width;
        CHIPDOCK_CPU_DISPATCH(pair_floats)(low, k + 1 < last ? low + width : nullptr, width,
                                           scratch + (k / 2 - begin) * width);
      }
    }
    return {scratch, width};
  }

  const Space& space_;
  int64_t groups_;
  int64_t channels_;
  int64_t depth_;
  const ConvData<T>& data_;
  const FusedActivation& activation_;
  bool direct_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONTRACTION_PATCH_WORK_HPP_
