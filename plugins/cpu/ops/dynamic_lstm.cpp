// SPDX-License-Identifier: Apache-2.0
// com.microsoft's DynamicQuantizeLSTM: inputs and hidden states are brought to bytes as
// DynamicQuantizeLinear does, all steps of X at once, a hidden state at each step, and multiplied by
// weights of bytes. The gates are those of rnn_cells.hpp.
#include <cmath>
#include <cstring>
#include <string>

#include "dynamic_bytes.hpp"
#include "gemm_int8.hpp"
#include "ops/quantization.hpp"
#include "ops/rnn_cells.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Extents of one call.
struct Extents {
  int64_t steps, batch, inputs, hidden, directions;
  int64_t width() const { return 4 * hidden; }
  int64_t most_inputs() const { return std::max(inputs, hidden); }
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
    Buffers b(nullptr, context, extents(context));
    return b.bytes;
  }

  void run(const Context& context) const override {
    const Extents e = extents(context);
    Buffers b(context.workspace, context, e);
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
                                    e.inputs, b.bytes_a, b.packed_x, b.scratch);
    for (int64_t d = 0; d < e.directions; ++d) run_direction(context, e, d, by, lengths, b);
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
  struct Buffers {
    void* scratch = nullptr;
    uint8_t* bytes_a = nullptr;
    int32_t *packed_x = nullptr, *packed_h = nullptr, *row_factor = nullptr, *row_zero = nullptr,
            *zero = nullptr, *w = nullptr, *r = nullptr;
    float *scale = nullptr, *gates = nullptr, *step = nullptr, *h = nullptr, *c = nullptr;
    uint64_t bytes = 0;

    Buffers(void* base, const Context& context, const Extents& e) {
      const int64_t rows = std::max(e.steps, int64_t{1}) * e.batch;
      const int64_t padded = dot_padded_columns(e.width());
      const int64_t words = dot_words(e.most_inputs());
      const auto take = [&](auto*& place, int64_t count) {
        using Element = std::remove_reference_t<decltype(*place)>;
        if (base != nullptr) place = reinterpret_cast<Element*>(static_cast<char*>(base) + bytes);
        bytes += padded_bytes(count, sizeof(Element));
      };
      char* room = nullptr;
      take(room, static_cast<int64_t>(
                     std::max(dot_scratch_bytes(context, words), dynamic_scratch_bytes(context))));
      scratch = room;
      take(bytes_a, rows * e.most_inputs());
      take(packed_x, dot_packed_a_size(rows, e.inputs));
      take(packed_h, dot_packed_a_size(e.batch, e.hidden));
      take(row_factor, rows);
      take(row_zero, rows);
      take(zero, padded);
      take(scale, padded);
      take(gates, rows * e.width());
      take(step, std::max(e.batch, int64_t{1}) * e.width());
      take(h, e.batch * e.hidden);
      take(c, e.batch * e.hidden);
      take(w, e.directions * dot_packed_b_size(e.inputs, e.width()));
      take(r, e.directions * dot_packed_b_size(e.hidden, e.width()));
    }
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
      CHIPDOCK_CPU_DISPATCH(quantize_bytes)(x, rows * k, by, bytes);
    }
    dot_pack_a(bytes, k, 1, rows, k, dot_code(false, false), packed);
    return by;
  }

  /// The weights of a direction from input 1 or 2, whose scales are seven inputs behind.
  static Factor factor(const Context& context, uint32_t input, int64_t d, int32_t* room,
                       const Buffers& b) {
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
    if (packed == nullptr) {
      if (d == 0) pack_weights(weights, room);
      packed = room;
    }
    const int32_t shift = dot_code(is_signed(weights.dtype), true).shift();
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = d * columns + (columns == 1 ? 0 : j);
      b.scale[j] = scale.as<float>()[at];
      b.zero[j] = shift + (zero != nullptr ? byte_at(*zero, at) : 0);
    }
    return {packed + d * dot_packed_b_size(weights.dim(1), n), weights.dim(1), n, b.zero, b.scale};
  }

  static void multiply(const Context& context, const Factor& factor, int64_t rows,
                       const int32_t* packed, const ByteScale& by, float* gates, const Buffers& b) {
    if (by.scale == 0) return;  // All values are zero.
    const ScaledProduct work(factor, rows, packed, by, b.row_factor, b.row_zero, gates);
    dot_run(context, work, b.scratch);
  }

  void run_direction(const Context& context, const Extents& e, int64_t d, const ByteScale& by,
                     const int32_t* lengths, const Buffers& b) const {
    const int64_t width = e.width();
    const int64_t state = e.batch * e.hidden;
    const bool backward = reverse_ || d == 1;
    const float* bias =
        context.has_input(3) ? context.input(3).as<float>() + d * 2 * width : nullptr;
    for (int64_t j = 0; j < width; ++j) {
      b.step[j] = bias == nullptr ? 0.0F : bias[j] + bias[width + j];
    }
    for (int64_t i = 0; i < e.steps * e.batch; ++i) {
      std::copy_n(b.step, width, b.gates + i * width);
    }
    multiply(context, factor(context, 1, d, b.w, b), e.steps * e.batch, b.packed_x, by, b.gates, b);
    const Factor recurrent = factor(context, 2, d, b.r, b);
    const auto begin = [&](uint32_t input, float* to) {
      if (context.has_input(input)) {
        std::copy_n(context.input(input).as<float>() + d * state, state, to);
      } else {
        std::fill_n(to, state, 0.0F);
      }
    };
    begin(5, b.h);
    begin(6, b.c);
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
        std::copy_n(b.gates + (at * e.batch + n) * width, width, b.step + n * width);
      }
      const ByteScale of_h =
          pack_bytes(context, b.h, e.batch, e.hidden, b.bytes_a, b.packed_h, b.scratch);
      multiply(context, recurrent, e.batch, b.packed_h, of_h, b.step, b);
      for (int64_t n = 0; n < e.batch; ++n) {
        if (t >= length(n)) continue;
        float* h = b.h + n * e.hidden;
        finish(b.step + n * width, h, b.c + n * e.hidden);
        if (!context.has_output(0)) continue;
        const int64_t at = backward ? length(n) - 1 - t : t;
        std::copy_n(
            h, e.hidden,
            context.output(0).mut<float>() + ((at * e.directions + d) * e.batch + n) * e.hidden);
      }
    }
    if (context.has_output(1)) std::copy_n(b.h, state, context.output(1).mut<float>() + d * state);
    if (context.has_output(2)) std::copy_n(b.c, state, context.output(2).mut<float>() + d * state);
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
