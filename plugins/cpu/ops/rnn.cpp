// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: one product for the inputs of all steps, then one small product a step for the
// hidden state. Half types are computed in float. The gates themselves are in rnn_cells.hpp.
#include <cstring>

#include "ops/contraction/packed_work.hpp"
#include "ops/rnn_cells.hpp"
#include "ops/rnn_directions.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum class Cell { kRnn, kGru, kLstm };

constexpr int64_t gate_count(Cell cell) {
  return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}

/// Extents of one call.
struct Extents {
  int64_t steps, batch, inputs, hidden, directions, gates;
};

template <class T, Cell kCell>
class Recurrent final : public Kernel {
 public:
  explicit Recurrent(const kit::NodeView& node)
      : op_(node.raw().op),
        batch_first_(node.integer("layout", 0) != 0),
        clip_(static_cast<T>(node.number("clip", 0))),
        couple_(node.integer("input_forget", 0) != 0),
        linear_before_reset_(node.integer("linear_before_reset", 0) != 0) {
    const std::string direction = node.text("direction", "forward");
    kit::require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
                 op_, ": direction ", direction,
                 " is unknown, allowed are forward, reverse and bidirectional");
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_ = direction == "reverse";
    using Kind = ActivationKind;
    std::vector<Kind> defaults = {Kind::kTanh};
    if (kCell == Cell::kGru) defaults = {Kind::kSigmoid, Kind::kTanh};
    if (kCell == Cell::kLstm) defaults = {Kind::kSigmoid, Kind::kTanh, Kind::kTanh};
    activations_ = read_activations(node, static_cast<size_t>(directions_), defaults);
    per_direction_ = defaults.size();
  }

  uint64_t workspace(const Context& context) const override {
    const Extents e = extents(context);
    const int64_t lanes = direction_lanes(context, e.directions);
    uint64_t bytes = 0;
    for (const int64_t part : shared_parts(e)) bytes += padded_bytes(part, sizeof(T));
    for (const int64_t part : lane_parts(context, e)) {
      bytes += static_cast<uint64_t>(lanes) * padded_bytes(part, sizeof(T));
    }
    if (!is_half(context.input(0).dtype)) return bytes;
    for (uint32_t i = 0; i < context.input_count; ++i) {
      if (i != 4 && context.has_input(i)) bytes += padded_bytes(context.input(i).size(), sizeof(T));
    }
    for (uint32_t i = 0; i < context.output_count; ++i) {
      if (context.has_output(i)) bytes += padded_bytes(context.output(i).size(), sizeof(T));
    }
    return bytes;
  }

  void run(const Context& context) const override {
    const Extents e = extents(context);
    Carver carver(context.workspace);
    Buffers b;
    const auto place = [&](const std::vector<int64_t>& sizes, std::vector<T**> places) {
      for (size_t i = 0; i < sizes.size(); ++i) *places[i] = carver.take<T>(sizes[i]);
    };
    place(shared_parts(e), {&b.packed_x, &b.w, &b.r});
    Lane lanes[2];
    for (int64_t i = 0; i < direction_lanes(context, e.directions); ++i) {
      Lane& l = lanes[i];
      place(lane_parts(context, e),
            {&l.scratch, &l.gates, &l.step, &l.h, &l.c, &l.packed_h, &l.extra});
    }
    const bool half = is_half(context.input(0).dtype);
    const auto in = [&](uint32_t i) -> const T* {
      if (!context.has_input(i)) return nullptr;
      if (context.packed_input(i) != nullptr) return nullptr;  // The original may be gone.
      const Tensor& t = context.input(i);
      return widened(t, half ? carver.take<T>(t.size()) : nullptr);
    };
    for (uint32_t i = 0; i < 8; ++i) b.in[i] = i == 4 ? nullptr : in(i);
    for (uint32_t i = 0; i < 3; ++i) {
      if (!context.has_output(i)) continue;
      const Tensor& t = context.output(i);
      b.out[i] = half ? carver.take<T>(t.size()) : t.mut<T>();
    }
    b.lengths = context.has_input(4) ? context.input(4).as<int32_t>() : nullptr;
    for (int64_t n = 0; b.lengths != nullptr && n < e.batch; ++n) {
      if (b.lengths[n] >= 0 && b.lengths[n] <= e.steps) continue;
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, op_, ": sequence_lens has ", b.lengths[n], " at ", n,
                ", allowed are 0 to the ", e.steps, " steps of X");
    }
    if (b.out[0] != nullptr) std::fill_n(b.out[0], context.output(0).size(), T(0));
    const auto* w = static_cast<const T*>(context.packed_input(1));
    const auto* r = static_cast<const T*>(context.packed_input(2));
    if (w == nullptr) pack_w(b.in[1], e, b.w);
    if (r == nullptr) pack_r(b.in[2], e, b.r);
    gemm_pack_a(context, b.in[0], 1, 0, e.inputs, 1, e.steps * e.batch, e.inputs, T(1), b.packed_x);
    run_directions(context, e.directions, e.batch * e.gates * e.hidden * e.hidden,
                   [&](const Context& its, int64_t d, int64_t lane) {
                     run_direction(its, e, d, (w != nullptr ? w : b.w) + d * w_size(e),
                                   (r != nullptr ? r : b.r) + d * r_size(e), b, lanes[lane]);
                   });
    if constexpr (sizeof(T) == sizeof(float)) {
      for (uint32_t i = 0; i < 3 && half; ++i) {
        if (!context.has_output(i)) continue;
        const Tensor& t = context.output(i);
        narrow(t.dtype, b.out[i], t.size(), t.data);
      }
    }
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if ((input != 1 && input != 2) || value.rank != 3) return;
    const Extents e = weight_extents(input, value.dims);
    info.size =
        static_cast<uint64_t>(e.directions * (input == 1 ? w_size(e) : r_size(e))) * sizeof(T);
    const std::string layout = gemm_layout<T>(input == 1 ? "w" : "r") + "_" + op_ + "_" +
                               std::to_string(value.dims[0]) + "x" + std::to_string(value.dims[1]) +
                               "x" + std::to_string(value.dims[2]);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }
  void prepack(uint32_t input, const Tensor& source, void* target) const override {
    std::vector<float> wide(is_half(source.dtype) ? static_cast<size_t>(source.size()) : 0);
    const T* from = widened(source, reinterpret_cast<T*>(wide.data()));
    const Extents e = weight_extents(input, source.shape);
    input == 1 ? pack_w(from, e, static_cast<T*>(target))
               : pack_r(from, e, static_cast<T*>(target));
  }

 private:
  struct Buffers {
    T *packed_x = nullptr, *w = nullptr, *r = nullptr;
    const T* in[8] = {};
    T* out[3] = {};
    const int32_t* lengths = nullptr;
  };
  /// What a direction at work has for itself.
  struct Lane {
    T *scratch = nullptr, *gates = nullptr, *step = nullptr, *h = nullptr, *c = nullptr,
      *packed_h = nullptr, *extra = nullptr;
  };

  Extents extents(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& r = context.input(2);
    kit::require(x.rank == 3 && r.rank == 3 && context.input(1).rank == 3, op_,
                 ": X, W and R must have rank 3");
    const int64_t steps = x.dim(batch_first_ ? 1 : 0);
    const int64_t batch = x.dim(batch_first_ ? 0 : 1);
    const Extents e = {steps, batch, x.dim(2), r.dim(2), directions_, gate_count(kCell)};
    const Tensor& w = context.input(1);
    kit::require(
        w.dim(0) == directions_ && w.dim(1) == e.gates * e.hidden && w.dim(2) == e.inputs &&
            r.dim(0) == directions_ && r.dim(1) == e.gates * e.hidden,
        op_, ": W ", w.dim(0), "x", w.dim(1), "x", w.dim(2), " and R ", r.dim(0), "x", r.dim(1),
        "x", r.dim(2), " do not fit ", directions_, " directions and ", e.inputs, " inputs");
    return e;
  }
  Extents weight_extents(uint32_t input, const int64_t* dims) const {
    const int64_t gates = gate_count(kCell);
    return {0, 0, input == 1 ? dims[2] : 0, dims[1] / gates, dims[0], gates};
  }
  /// Sizes of the parts of the workspace, in the order of run().
  static std::vector<int64_t> shared_parts(const Extents& e) {
    return {e.steps * e.batch * e.inputs, e.directions * w_size(e), e.directions * r_size(e)};
  }
  static std::vector<int64_t> lane_parts(const Context& context, const Extents& e) {
    const int64_t state = e.batch * e.hidden;
    const auto scratch = static_cast<int64_t>(gemm_scratch_bytes<T>(context) / sizeof(T));
    return {scratch, e.steps * state * e.gates, state * e.gates, state, state, state, state};
  }

  static int64_t w_size(const Extents& e) {
    return gemm_packed_b_size<T>(e.inputs, e.gates * e.hidden);
  }
  /// A GRU multiplies its last gate apart from the others.
  static int64_t joint(const Extents& e) { return (kCell == Cell::kGru ? 2 : e.gates) * e.hidden; }
  static int64_t r_size(const Extents& e) {
    return gemm_packed_b_size<T>(e.hidden, joint(e)) +
           (kCell == Cell::kGru ? gemm_packed_b_size<T>(e.hidden, e.hidden) : 0);
  }
  static void pack_w(const T* w, const Extents& e, T* target) {
    const int64_t n = e.gates * e.hidden;
    for (int64_t d = 0; d < e.directions; ++d) {
      gemm_pack_b(w + d * n * e.inputs, 1, e.inputs, e.inputs, n, target + d * w_size(e));
    }
  }
  static void pack_r(const T* r, const Extents& e, T* target) {
    const int64_t n = joint(e);
    for (int64_t d = 0; d < e.directions; ++d) {
      const T* from = r + d * e.gates * e.hidden * e.hidden;
      T* to = target + d * r_size(e);
      gemm_pack_b(from, 1, e.hidden, e.hidden, n, to);
      if (kCell == Cell::kGru) {
        gemm_pack_b(from + n * e.hidden, 1, e.hidden, e.hidden, e.hidden,
                    to + gemm_packed_b_size<T>(e.hidden, n));
      }
    }
  }

  /// Row of a state tensor: directions first, or batch first.
  int64_t state_row(const Extents& e, int64_t d, int64_t n) const {
    return (batch_first_ ? n * directions_ + d : d * e.batch + n) * e.hidden;
  }
  /// Row of X (or of its gates) and of Y.
  int64_t input_row(const Extents& e, int64_t t, int64_t n) const {
    return batch_first_ ? n * e.steps + t : t * e.batch + n;
  }
  int64_t output_row(const Extents& e, int64_t t, int64_t d, int64_t n) const {
    return (batch_first_ ? (n * e.steps + t) * directions_ + d
                         : (t * directions_ + d) * e.batch + n) *
           e.hidden;
  }

  /// Adds the biases of the inputs, and of the state where they can be added early, to all gates.
  void start_gates(const Extents& e, int64_t d, const Buffers& b, const Lane& lane) const {
    const int64_t width = e.gates * e.hidden;
    const T* bias = b.in[3] != nullptr ? b.in[3] + d * 2 * width : nullptr;
    const int64_t early = kCell == Cell::kGru && linear_before_reset_ ? joint(e) : width;
    for (int64_t row = 0; row < e.steps * e.batch; ++row) {
      T* to = lane.gates + row * width;
      for (int64_t j = 0; j < width; ++j) {
        to[j] = bias == nullptr ? T(0) : bias[j] + (j < early ? bias[width + j] : T(0));
      }
    }
  }

  void run_direction(const Context& context, const Extents& e, int64_t d, const T* w, const T* r,
                     const Buffers& b, const Lane& lane) const {
    const int64_t width = e.gates * e.hidden;
    const int64_t state = e.batch * e.hidden;
    const bool backward = reverse_ || d == 1;
    start_gates(e, d, b, lane);
    gemm_run<T>(
        context,
        PackedWork<T>(e.steps * e.batch, width, e.inputs, b.packed_x, w, lane.gates, width, true),
        lane.scratch);
    std::fill_n(lane.h, state, T(0));
    std::fill_n(lane.c, state, T(0));
    for (int64_t n = 0; n < e.batch; ++n) {
      const int64_t from = state_row(e, d, n);
      if (b.in[5] != nullptr) std::copy_n(b.in[5] + from, e.hidden, lane.h + n * e.hidden);
      if (kCell == Cell::kLstm && b.in[6] != nullptr) {
        std::copy_n(b.in[6] + from, e.hidden, lane.c + n * e.hidden);
      }
    }
    const auto length = [&](int64_t n) {
      return b.lengths == nullptr ? e.steps : int64_t{b.lengths[n]};
    };
    for (int64_t t = 0; t < e.steps; ++t) {
      for (int64_t n = 0; n < e.batch; ++n) {
        const int64_t at = backward ? std::max<int64_t>(length(n) - 1 - t, 0) : t;
        std::copy_n(lane.gates + input_row(e, at, n) * width, width, lane.step + n * width);
      }
      multiply_state(context, e, lane.h, r, joint(e), lane.step, width, true, lane);
      if (kCell == Cell::kGru) gru_candidates(context, e, d, r, b, lane);
      for (int64_t n = 0; n < e.batch; ++n) {
        if (t >= length(n)) continue;
        finish_step(e, d, n, b, lane);
        if (b.out[0] == nullptr) continue;
        const int64_t at = backward ? length(n) - 1 - t : t;
        std::copy_n(lane.h + n * e.hidden, e.hidden, b.out[0] + output_row(e, at, d, n));
      }
    }
    for (int64_t n = 0; n < e.batch; ++n) {
      const int64_t to = state_row(e, d, n);
      if (b.out[1] != nullptr) std::copy_n(lane.h + n * e.hidden, e.hidden, b.out[1] + to);
      if (b.out[2] != nullptr) std::copy_n(lane.c + n * e.hidden, e.hidden, b.out[2] + to);
    }
  }

  /// c (+)= state * packed, for all batch members.
  void multiply_state(const Context& context, const Extents& e, const T* state, const T* packed,
                      int64_t n, T* c, int64_t c_row, bool accumulate, const Lane& lane) const {
    const T* a = state;
    if (e.batch > 1) {
      gemm_pack_a(state, e.hidden, 1, e.batch, e.hidden, lane.packed_h);
      a = lane.packed_h;
    }
    gemm_run<T>(context, PackedWork<T>(e.batch, n, e.hidden, a, packed, c, c_row, accumulate),
                lane.scratch);
  }

  /// Activates z and r, and adds what the reset state gives to the candidate gate.
  void gru_candidates(const Context& context, const Extents& e, int64_t d, const T* r,
                      const Buffers& b, const Lane& lane) const {
    const int64_t width = e.gates * e.hidden;
    const T* last = r + gemm_packed_b_size<T>(e.hidden, joint(e));
    const Activation* f = &activations_[static_cast<size_t>(d) * per_direction_];
    for (int64_t n = 0; n < e.batch; ++n)
      activate(f[0], clip_, lane.step + n * width, 2 * e.hidden);
    if (!linear_before_reset_) {
      for (int64_t n = 0; n < e.batch; ++n) {
        const T* reset = lane.step + n * width + e.hidden;
        const T* h = lane.h + n * e.hidden;
        T* to = lane.extra + n * e.hidden;
        for (int64_t j = 0; j < e.hidden; ++j) to[j] = reset[j] * h[j];
      }
      multiply_state(context, e, lane.extra, last, e.hidden, lane.step + 2 * e.hidden, width, true,
                     lane);
      return;
    }
    multiply_state(context, e, lane.h, last, e.hidden, lane.extra, e.hidden, false, lane);
    const T* bias = b.in[3] != nullptr ? b.in[3] + d * 2 * width + width + 2 * e.hidden : nullptr;
    for (int64_t n = 0; n < e.batch; ++n) {
      T* gates = lane.step + n * width;
      const T* product = lane.extra + n * e.hidden;
      for (int64_t j = 0; j < e.hidden; ++j) {
        gates[2 * e.hidden + j] +=
            gates[e.hidden + j] * (product[j] + (bias != nullptr ? bias[j] : T(0)));
      }
    }
  }

  /// From gates to the new state of one batch member.
  void finish_step(const Extents& e, int64_t d, int64_t n, const Buffers& b,
                   const Lane& lane) const {
    const Activation* f = &activations_[static_cast<size_t>(d) * per_direction_];
    T* gates = lane.step + n * e.gates * e.hidden;
    T* h = lane.h + n * e.hidden;
    if constexpr (kCell == Cell::kLstm) {
      const T* peephole = b.in[7] != nullptr ? b.in[7] + d * 3 * e.hidden : nullptr;
      LstmStep<T>{e.hidden, clip_, couple_, peephole, f}(gates, h, lane.c + n * e.hidden);
    } else if constexpr (kCell == Cell::kGru) {
      T* candidate = gates + 2 * e.hidden;
      activate(f[1], clip_, candidate, e.hidden);
      for (int64_t j = 0; j < e.hidden; ++j) {
        h[j] = (T(1) - gates[j]) * candidate[j] + gates[j] * h[j];
      }
    } else {
      activate(f[0], clip_, gates, e.hidden);
      std::copy_n(gates, e.hidden, h);
    }
  }

  std::string op_;
  bool batch_first_;
  T clip_;
  bool couple_;
  bool linear_before_reset_;
  int64_t directions_ = 1;
  bool reverse_ = false;
  std::vector<Activation> activations_;
  size_t per_direction_ = 1;
};

void define(KernelSpan& span, const char* op,
            std::unique_ptr<Kernel> (*single)(const kit::NodeView&),
            std::unique_ptr<Kernel> (*twice)(const kit::NodeView&)) {
  for (const bool wide : {false, true}) {
    std::vector<chipdock_dtype> dtypes = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
    if (wide) dtypes = {kit::kFloat64};
    KernelDef def;
    def.op = op;
    def.since = 7;
    def.create = wide ? twice : single;
    def.dtypes = {{0, dtypes}, {4, {kit::kInt32}}, {5, dtypes}, {-1, dtypes}};
    span.push_back(std::move(def));
  }
}

}  // namespace

KernelSpan rnn_kernels() {
  KernelSpan span;
  define(span, "RNN", make<Recurrent<float, Cell::kRnn>>, make<Recurrent<double, Cell::kRnn>>);
  define(span, "GRU", make<Recurrent<float, Cell::kGru>>, make<Recurrent<double, Cell::kGru>>);
  define(span, "LSTM", make<Recurrent<float, Cell::kLstm>>, make<Recurrent<double, Cell::kLstm>>);
  return span;
}

}  // namespace chipdock::plugin::cpu
