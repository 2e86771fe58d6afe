// SPDX-License-Identifier: Apache-2.0
// FusedAttention: Softmax(scale * Q K + mask) V for a few rows of Q at a time, whose scores never
// leave the cache. Half types are computed in float.
#include <algorithm>
#include <vector>

#include "gemm.hpp"
#include "simd/softmax.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr uint32_t kMask = 3;
// Scores that one thread holds: a quarter of a usual second-level cache, K and V pass through it.
constexpr int64_t kScores = 32768;
constexpr int64_t kLeastRows = 8;
constexpr int64_t kMostRows = 64;

/// How one operand is found by the index of a member of the batch.
struct Steps {
  Steps(const Tensor& operand, const Tensor& out, int64_t matrix) : dims(out.shape), step{} {
    rank = out.rank - 2;
    for (int32_t i = 1; i <= operand.rank - 2; ++i) {
      const int64_t extent = operand.dim(operand.rank - 2 - i);
      step[rank - i] = extent == 1 ? 0 : matrix;
      matrix *= extent;
    }
  }
  int64_t offset(int64_t member) const {
    int64_t found = 0;
    for (int32_t i = rank - 1; i >= 0; --i) {
      found += member % dims[i] * step[i];
      member /= dims[i];
    }
    return found;
  }
  const int64_t* dims;
  int32_t rank;
  int64_t step[CHIPDOCK_MAX_RANK];
};

/// One product of a block of rows.
class Block final : public GemmWork<float> {
 public:
  Block(int64_t rows, int64_t depth, int64_t columns, const float* packed, const float* right,
        float* target)
      : packed_(packed), target_(target) {
    m = rows;
    k = depth;
    n = c_row = columns;
    right_.data = right;
    right_.row = columns;
  }
  const float* a(int64_t) const override { return packed_; }
  float* c(int64_t) const override { return target_; }
  GemmPanel<float> panel(int64_t, int64_t k_begin, int64_t k_end, int64_t column, int cols,
                         float* scratch) const override {
    return right_.panel(m, k, k_begin, k_end, column, cols, scratch);
  }

 private:
  const float* packed_;
  GemmB<float> right_;
  float* target_;
};

class FusedAttention final : public Kernel {
 public:
  explicit FusedAttention(const kit::NodeView& node)
      : scale_(static_cast<float>(node.number("scale", 1))) {}

  uint64_t workspace(const Context& context) const override {
    const Sizes s(context);
    uint64_t bytes = static_cast<uint64_t>(slot_capacity(context)) * s.slot_bytes();
    if (!is_half(context.input(0).dtype)) return bytes;
    for (uint32_t i = 0; i < 4; ++i) {
      if (context.has_input(i)) bytes += padded_bytes(context.input(i).size(), sizeof(float));
    }
    return bytes + padded_bytes(context.output(0).size(), sizeof(float));
  }

  void run(const Context& context) const override {
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Sizes s(context);
    Carver carver(context.workspace);
    const auto slot_floats = static_cast<int64_t>(s.slot_bytes() / sizeof(float));
    auto* scratch = carver.take<float>(slot_capacity(context) * slot_floats);
    const bool half = is_half(y.dtype);
    const float* in[4] = {};
    for (uint32_t i = 0; i < 4; ++i) {
      if (!context.has_input(i)) continue;
      const Tensor& x = context.input(i);
      in[i] = widened(x, half ? carver.take<float>(x.size()) : nullptr);
    }
    float* out = half ? carver.take<float>(y.size()) : y.mut<float>();
    const Steps q(context.input(0), y, s.rows * s.depth);
    const Steps k(context.input(1), y, s.depth * s.columns);
    const Steps v(context.input(2), y, s.columns * s.width);
    const Mask mask(context, s, in[kMask]);
    parallel_slots(
        context, s.batch * s.blocks, slot_count(context), [&](int64_t task, int64_t slot) {
          const int64_t member = task / s.blocks;
          const int64_t begin = task % s.blocks * s.block;
          const int64_t rows = std::min(s.block, s.rows - begin);
          Part part(scratch + slot * slot_floats, s);
          gemm_pack_a(in[0] + q.offset(member) + begin * s.depth, s.depth, 1, rows, s.depth,
                      part.packed);
          for (int64_t i = 0; i < rows * s.depth; ++i) part.packed[i] *= scale_;
          const Block scores(rows, s.depth, s.columns, part.packed, in[1] + k.offset(member),
                             part.scores);
          gemm_run_here(scores, part.panels);
          mask.add(member, begin, rows, part.scores);
          for (int64_t row = 0; row < rows; ++row) {
            float* at = part.scores + row * s.columns;
            CHIPDOCK_CPU_DISPATCH(softmax_row)(at, at, s.columns, false);
          }
          gemm_pack_a(part.scores, s.columns, 1, rows, s.columns, part.packed);
          const Block result(rows, s.columns, s.width, part.packed, in[2] + v.offset(member),
                             out + (member * s.rows + begin) * s.width);
          gemm_run_here(result, part.panels);
        });
    if (half) narrow(y.dtype, out, y.size(), y.data);
  }

 private:
  struct Sizes {
    explicit Sizes(const Context& context) {
      const Tensor& q = context.input(0);
      const Tensor& k = context.input(1);
      const Tensor& y = context.output(0);
      rows = q.dim(q.rank - 2);
      depth = q.dim(q.rank - 1);
      columns = k.dim(k.rank - 1);
      width = y.dim(y.rank - 1);
      batch = y.size(0, y.rank - 2);
      block = std::clamp(kScores / std::max<int64_t>(columns, 1), kLeastRows, kMostRows);
      block = std::clamp<int64_t>(block, 1, std::max<int64_t>(rows, 1));
      blocks = (rows + block - 1) / block;
    }
    int64_t packed() const { return block * std::max(depth, columns); }
    uint64_t slot_bytes() const {
      return padded_bytes(packed(), sizeof(float)) + padded_bytes(block * columns, sizeof(float)) +
             static_cast<uint64_t>(kGemmThreadBytes);
    }
    int64_t rows, depth, columns, width, batch, block, blocks;
  };

  /// The scratch of one thread.
  struct Part {
    Part(float* base, const Sizes& s) {
      Carver carver(base);
      packed = carver.take<float>(s.packed());
      scores = carver.take<float>(s.block * s.columns);
      panels = carver.take<float>(kGemmThreadBytes / static_cast<int64_t>(sizeof(float)));
    }
    float *packed, *scores, *panels;
  };

  /// What is added to scores, spread over them from the right.
  class Mask {
   public:
    Mask(const Context& context, const Sizes& s, const float* data) : data_(data), s_(s) {
      if (data == nullptr) return;
      const Tensor& mask = context.input(kMask);
      const int64_t columns = mask.rank > 0 ? mask.dim(mask.rank - 1) : 1;
      const int64_t rows = mask.rank > 1 ? mask.dim(mask.rank - 2) : 1;
      column_step_ = columns == 1 ? 0 : 1;
      row_step_ = rows == 1 ? 0 : columns;
      if (mask.rank > 2) steps_.emplace_back(mask, context.output(0), rows * columns);
    }
    void add(int64_t member, int64_t begin, int64_t rows, float* scores) const {
      if (data_ == nullptr) return;
      const float* from = data_ + (steps_.empty() ? 0 : steps_[0].offset(member));
      for (int64_t row = 0; row < rows; ++row) {
        const float* add = from + (begin + row) * row_step_;
        float* to = scores + row * s_.columns;
        if (column_step_ == 0) {
          for (int64_t i = 0; i < s_.columns; ++i) to[i] += add[0];
        } else {
          for (int64_t i = 0; i < s_.columns; ++i) to[i] += add[i];
        }
      }
    }

   private:
    const float* data_;
    const Sizes& s_;
    int64_t row_step_ = 0;
    int64_t column_step_ = 0;
    std::vector<Steps> steps_;  ///< One, if the mask has batches.
  };

  float scale_;
};

}  // namespace

KernelSpan attention_kernels() {
  const std::vector<chipdock_dtype> floats = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
  KernelDef def;
  def.domain = "ai.chipdock";
  def.op = "FusedAttention";
  def.since = 1;
  def.name = "attention_f32";
  def.create = make<FusedAttention>;
  def.dtypes = {{0, floats}, {-1, floats}};
  KernelSpan span;
  span.push_back(std::move(def));
  return span;
}

}  // namespace chipdock::plugin::cpu
