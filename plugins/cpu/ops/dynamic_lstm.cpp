// SPDX-License-Identifier: Apache-2.0
// com.microsoft's DynamicQuantizeLSTM: inputs and hidden states are brought to bytes as
// DynamicQuantizeLinear does, all steps of X at once, a hidden state at each step, and multiplied by
// weights of bytes. The gates are those of rnn_cells.hpp.
#include <cmath>
#include <cstring>
#include <string>

#include "dynamic_bytes.hpp"
#include "gemm_int8.hpp"
#include "ops/numeric.hpp"
#include "ops/quantization.hpp"
#include "ops/rnn_cells.hpp"
#include "ops/rnn_directions.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Extents of one call.
struct Extents {
  int64_t steps, batch, inputs, hidden, directions;
  int64_t width() const { return 4 * hidden; }
};

/// Weights of one direction, and how their steps are read.
struct Factor {
  const int32_t* packed;
  int64_t k, n;
  const int32_t* zero;  ///< Encoded, one for each column of whole panels.
  const float* scale;   ///< The same of floats.
};

/// gates += bytes * weights, with scales and zero points of both.
class ScaledProduct final : public DotWork {
 public:
  ScaledProduct(const Factor& factor, int64_t rows, const int32_t* packed_a, const ByteScale& by,
                int32_t* row_factor, int32_t* row_zero, float* gates)
      : factor_(factor),
        packed_a_(packed_a),
        row_factor_(row_factor),
        row_zero_(row_zero),
        scale_(by.scale),
        gates_(gates) {
    m = rows;
    n = factor.n;
    words = dot_words(factor.k);
    const auto zero = static_cast<int32_t>(by.zero);
    const int32_t* sums = dot_row_sums(packed_a, rows, factor.k);
    for (int64_t i = 0; i < rows; ++i) {
      row_factor[i] = static_cast<int32_t>(factor.k) * zero - sums[i];
      row_zero[i] = -zero;
    }
  }
  const int32_t* a(int64_t) const override { return packed_a_; }
  DotPanel panel(int64_t, int64_t column, int, int32_t*) const override {
    return {factor_.packed + column * words, dot_isa().cols};
  }
  void end(DotSums& sums) const override {
    DotEnd& e = sums.end;
    e.pairs[0] = {row_zero_ + sums.row,
                  dot_column_sums(factor_.packed, factor_.k, factor_.n) + sums.column};
    e.pairs[1] = {row_factor_ + sums.row, factor_.zero + sums.column};
    e.pair_count = 2;
    CHIPDOCK_CPU_DISPATCH(dot_accumulate)
    (e, scale_, factor_.scale + sums.column, gates_ + sums.row * n + sums.column, n);
  }

 private:
  const Factor& factor_;
  const int32_t* packed_a_;
  const int32_t* row_factor_;
  const int32_t* row_zero_;
  float scale_;
  float* gates_;
};

class DynamicLstm final : public Kernel {
 public:
  explicit DynamicLstm(const kit::NodeView& node)
      : clip_(static_cast<float>(node.number("clip", 0))),
        couple_(node.integer("input_forget", 0) != 0) {
    const std::string direction = node.text("direction", "forward");
    kit::require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
                 node.op(), ": direction ", direction,
                 " is unknown, allowed are forward, reverse and bidirectional");
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_ = direction == "reverse";
    using Kind = ActivationKind;
    activations_ = read_activations(node, static_cast<size_t>(directions_),
                                    {Kind::kSigmoid, Kind::kTanh, Kind::kTanh});
  }

  uint64_t workspace(const Context& context) const override {
    return Buffers(nullptr, context, extents(context)).bytes;
  }

  void run(const Context& context) const override {
    const Extents e = extents(context);
    const Buffers b(context.workspace, context, e);
    if (context.has_output(0)) {
      std::fill_n(context.output(0).mut<float>(), context.output(0).size(), 0.0F);
    }
    const int32_t* lengths = context.has_input(4) ? context.input(4).as<int32_t>() : nullptr;
    for (int64_t n = 0; lengths != nullptr && n < e.batch; ++n) {
      if (lengths[n] >= 0 && lengths[n] <= e.steps) continue;
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "DynamicQuantizeLSTM: sequence_lens has ", lengths[n],
                " at ", n, ", allowed are 0 to the ", e.steps, " steps of X");
    }
    const ByteScale by = pack_bytes(context, context.input(0).as<float>(), e.steps * e.batch,
                                    e.inputs, b.bytes_x, b.packed_x, b.lanes[0].scratch);
    for (const uint32_t i : {1U, 2U}) {
      if (context.packed_input(i) == nullptr) pack_weights(context.input(i), b.room(i));
    }
    run_directions(context, e.directions, e.batch * e.hidden * e.width(),
                   [&](const Context& its, int64_t d, int64_t lane) {
                     run_direction(its, e, d, by, lengths, b, b.lanes[lane]);
                   });
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if ((input != 1 && input != 2) || value.rank != 3) return;
    info.size =
        static_cast<uint64_t>(value.dims[0] * dot_packed_b_size(value.dims[1], value.dims[2])) *
        sizeof(int32_t);
    const std::string layout = dot_layout("l", dot_code(is_signed(value.dtype), true)) + "_" +
                               std::to_string(value.dims[1]) + "x" + std::to_string(value.dims[2]);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void prepack(uint32_t, const Tensor& source, void* target) const override {
    pack_weights(source, static_cast<int32_t*>(target));
  }

 private:
  /// What a direction at work has for itself.
  struct Lane {
    void* scratch = nullptr;
    uint8_t* bytes_h = nullptr;
    int32_t *packed_h = nullptr, *row_factor = nullptr, *row_zero = nullptr, *zero = nullptr;
    float *scale = nullptr, *gates = nullptr, *step = nullptr, *h = nullptr, *c = nullptr;
  };

  struct Buffers {
    uint8_t* bytes_x = nullptr;
    int32_t *packed_x = nullptr, *w = nullptr, *r = nullptr;
    Lane lanes[2];
    uint64_t bytes = 0;

    Buffers(void* base, const Context& context, const Extents& e) {
      const int64_t rows = std::max(e.steps, int64_t{1}) * e.batch;
      const int64_t padded = dot_padded_columns(e.width());
      const int64_t words = dot_words(std::max(e.inputs, e.hidden));
      const auto take = [&](auto*& place, int64_t count) {
        using Element = std::remove_reference_t<decltype(*place)>;
        if (base != nullptr) place = reinterpret_cast<Element*>(static_cast<char*>(base) + bytes);
        bytes += padded_bytes(count, sizeof(Element));
      };
      take(bytes_x, rows * e.inputs);
      take(packed_x, dot_packed_a_size(rows, e.inputs));
      take(w, e.directions * dot_packed_b_size(e.inputs, e.width()));
      take(r, e.directions * dot_packed_b_size(e.hidden, e.width()));
      for (int64_t i = 0; i < direction_lanes(context, e.directions); ++i) {
        Lane& lane = lanes[i];
        char* room = nullptr;
        take(room, static_cast<int64_t>(std::max(dot_scratch_bytes(context, words),
                                                 dynamic_scratch_bytes(context))));
        lane.scratch = room;
        take(lane.bytes_h, e.batch * e.hidden);
        take(lane.packed_h, dot_packed_a_size(e.batch, e.hidden));
        take(lane.row_factor, rows);
        take(lane.row_zero, rows);
        take(lane.zero, padded);
        take(lane.scale, padded);
        take(lane.gates, rows * e.width());
        take(lane.step, std::max(e.batch, int64_t{1}) * e.width());
        take(lane.h, e.batch * e.hidden);
        take(lane.c, e.batch * e.hidden);
      }
    }
    /// Where the weights of input 1 or 2 go if the host did not have them packed.
    int32_t* room(uint32_t input) const { return input == 1 ? w : r; }
  };

  Extents extents(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(1);
    const Tensor& r = context.input(2);
    kit::require(x.rank == 3 && w.rank == 3 && r.rank == 3,
                 "DynamicQuantizeLSTM: X, W and R must have rank 3");
    const Extents e = {x.dim(0), x.dim(1), x.dim(2), r.dim(1), directions_};
    kit::require(w.dim(0) == e.directions && w.dim(1) == e.inputs && w.dim(2) == e.width() &&
                     r.dim(0) == e.directions && r.dim(2) == e.width(),
                 "DynamicQuantizeLSTM: W ", w.dim(0), "x", w.dim(1), "x", w.dim(2), " and R ",
                 r.dim(0), "x", r.dim(1), "x", r.dim(2), " do not fit ", e.directions,
                 " directions and ", e.inputs, " inputs");
    return e;
  }

  static void pack_weights(const Tensor& source, int32_t* target) {
    const int64_t k = source.dim(1), n = source.dim(2);
    const DotCode code = dot_code(is_signed(source.dtype), true);
    for (int64_t d = 0; d < source.dim(0); ++d) {
      dot_pack_b(source.as<uint8_t>() + d * k * n, n, 1, k, n, code,
                 target + d * dot_packed_b_size(k, n));
    }
  }

  /// Rows of floats to bytes of one scale, packed.
  static ByteScale pack_bytes(const Context& context, const float* x, int64_t rows, int64_t k,
                              uint8_t* bytes, int32_t* packed, void* scratch) {
    const ByteScale by = dynamic_scale(context, x, rows * k, scratch);
    if (by.scale == 0) {
      std::fill_n(bytes, rows * k, uint8_t{0});
    } else {
      context.parallel_for(rows, row_grain(k), [&](int64_t begin, int64_t end) {
        CHIPDOCK_CPU_DISPATCH(quantize_bytes)
        (x + begin * k, (end - begin) * k, by, bytes + begin * k);
      });
    }
    dot_pack_a(context, bytes, 1, rows, k, dot_code(false, false), packed);
    return by;
  }

  /// The weights of a direction from input 1 or 2, whose scales are seven inputs behind.
  static Factor factor(const Context& context, uint32_t input, int64_t d, const Buffers& b,
                       const Lane& lane) {
    const Tensor& weights = context.input(input);
    const Tensor& scale = context.input(2 * input + 6);
    const Tensor* zero = context.has_input(2 * input + 7) ? &context.input(2 * input + 7) : nullptr;
    const int64_t n = weights.dim(2);
    const int64_t columns = scale.size() / weights.dim(0);
    kit::require(scale.size() == weights.dim(0) * columns && (columns == 1 || columns == n) &&
                     (zero == nullptr || zero->size() == scale.size()),
                 "DynamicQuantizeLSTM: ", scale.size(), " scales for ", weights.dim(0),
                 " directions of ", n, " columns; allowed are one for each of either");
    const auto* packed = static_cast<const int32_t*>(context.packed_input(input));
    if (packed == nullptr) packed = b.room(input);
    const int32_t shift = dot_code(is_signed(weights.dtype), true).shift();
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = d * columns + (columns == 1 ? 0 : j);
      lane.scale[j] = scale.as<float>()[at];
      lane.zero[j] = shift + (zero != nullptr ? byte_at(*zero, at) : 0);
    }
    return {packed + d * dot_packed_b_size(weights.dim(1), n), weights.dim(1), n, lane.zero,
            lane.scale};
  }

  static void multiply(const Context& context, const Factor& factor, int64_t rows,
                       const int32_t* packed, const ByteScale& by, float* gates, const Lane& lane) {
    if (by.scale == 0) return;  // All values are zero.
    const ScaledProduct work(factor, rows, packed, by, lane.row_factor, lane.row_zero, gates);
    dot_run(context, work, lane.scratch);
  }

  void run_direction(const Context& context, const Extents& e, int64_t d, const ByteScale& by,
                     const int32_t* lengths, const Buffers& b, const Lane& lane) const {
    const int64_t width = e.width();
    const int64_t state = e.batch * e.hidden;
    const bool backward = reverse_ || d == 1;
    const float* bias =
        context.has_input(3) ? context.input(3).as<float>() + d * 2 * width : nullptr;
    for (int64_t j = 0; j < width; ++j) {
      lane.step[j] = bias == nullptr ? 0.0F : bias[j] + bias[width + j];
    }
    for (int64_t i = 0; i < e.steps * e.batch; ++i) {
      std::copy_n(lane.step, width, lane.gates + i * width);
    }
    multiply(context, factor(context, 1, d, b, lane), e.steps * e.batch, b.packed_x, by, lane.gates,
             lane);
    const Factor recurrent = factor(context, 2, d, b, lane);
    const auto begin = [&](uint32_t input, float* to) {
      if (context.has_input(input)) {
        std::copy_n(context.input(input).as<float>() + d * state, state, to);
      } else {
        std::fill_n(to, state, 0.0F);
      }
    };
    begin(5, lane.h);
    begin(6, lane.c);
    const float* peephole =
        context.has_input(7) ? context.input(7).as<float>() + d * 3 * e.hidden : nullptr;
    const LstmStep<float> finish = {e.hidden, clip_, couple_, peephole,
                                    &activations_[static_cast<size_t>(d) * 3]};
    const auto length = [&](int64_t n) {
      return lengths == nullptr ? e.steps : int64_t{lengths[n]};
    };
    for (int64_t t = 0; t < e.steps; ++t) {
      for (int64_t n = 0; n < e.batch; ++n) {
        const int64_t at = backward ? std::max<int64_t>(length(n) - 1 - t, 0) : t;
        std::copy_n(lane.gates + (at * e.batch + n) * width, width, lane.step + n * width);
      }
      const ByteScale of_h =
          pack_bytes(context, lane.h, e.batch, e.hidden, lane.bytes_h, lane.packed_h, lane.scratch);
      multiply(context, recurrent, e.batch, lane.packed_h, of_h, lane.step, lane);
      for (int64_t n = 0; n < e.batch; ++n) {
        if (t >= length(n)) continue;
        float* h = lane.h + n * e.hidden;
        finish(lane.step + n * width, h, lane.c + n * e.hidden);
        if (!context.has_output(0)) continue;
        const int64_t at = backward ? length(n) - 1 - t : t;
        std::copy_n(
            h, e.hidden,
            context.output(0).mut<float>() + ((at * e.directions + d) * e.batch + n) * e.hidden);
      }
    }
    if (context.has_output(1))
      std::copy_n(lane.h, state, context.output(1).mut<float>() + d * state);
    if (context.has_output(2))
      std::copy_n(lane.c, state, context.output(2).mut<float>() + d * state);
  }

  float clip_;
  bool couple_;
  int64_t directions_ = 1;
  bool reverse_ = false;
  std::vector<Activation> activations_;
};

}  // namespace

KernelSpan dynamic_lstm_kernels() {
  const std::vector<chipdock_dtype> bytes = {kit::kInt8, kit::kUint8};
  const std::vector<chipdock_dtype> floats = {kit::kFloat32};
  KernelDef def;
  def.op = "DynamicQuantizeLSTM";
  def.domain = "com.microsoft";
  def.since = 1;
  def.name = "dynamic_quantize_lstm";
  def.create = make<DynamicLstm>;
  def.dtypes = {{0, floats},  {1, bytes},  {2, bytes},  {3, floats}, {4, {kit::kInt32}},
                {5, floats},  {6, floats}, {7, floats}, {8, floats}, {9, bytes},
                {10, floats}, {11, bytes}, {-1, floats}};
  KernelSpan span;
  span.push_back(std::move(def));
  return span;
}

}  // namespace chipdock::plugin::cpu
