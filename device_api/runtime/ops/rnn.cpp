// SPDX-License-Identifier: Apache-2.0
// Shapes of RNN, GRU and LSTM, and of com.microsoft's DynamicQuantizeLSTM.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void require_dims(const ShapeContext& context, size_t input, const char* name, const Dims& want) {
  if (!context.has_input(input)) return;
  const Dims& dims = context.input(input).dims;
  kit::require(dims == want, context.node().op(), ": ", name, " ", to_string(dims), " must be ",
               to_string(want));
}

void rnn_shape(ShapeContext& context) {
  const std::string op(context.node().op());
  const Dims& x = context.input(0).dims;
  const Dims& w = context.input(1).dims;
  const Dims& r = context.input(2).dims;
  kit::require(x.size() == 3 && w.size() == 3 && r.size() == 3, op, ": X ", to_string(x), ", W ",
               to_string(w), " and R ", to_string(r), " must have rank 3");
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const bool batch_first = context.node().integer("layout", 0) != 0;
  const int64_t steps = x[batch_first ? 1 : 0];
  const int64_t batch = x[batch_first ? 0 : 1];
  const std::string direction = context.node().text("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t hidden = r[2];
  kit::require(hidden <= int64_t{1} << 59, op, ": R ", to_string(r),
               " has a last dim of more than 2^59, whose gates do not fit int64");
  require_dims(context, 1, "W", {directions, gates * hidden, x[2]});
  require_dims(context, 2, "R", {directions, gates * hidden, hidden});
  require_dims(context, 3, "B", {directions, 2 * gates * hidden});
  require_dims(context, 4, "sequence_lens", {batch});
  const Dims state =
      batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  require_dims(context, 5, "initial_h", state);
  if (op == "LSTM") {
    require_dims(context, 6, "initial_c", state);
    require_dims(context, 7, "P", {directions, 3 * hidden});
  }
  const int64_t given = context.node().integer("hidden_size", hidden);
  kit::require(given == hidden, op, ": hidden_size ", given, " must equal the last dim of R ",
               to_string(r));
  Dims y =
      batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
  checked_size(y, op);
  context.set(0, std::move(y));
  context.set(1, state);
  context.set(2, state);
}

/// Its weights are turned: [directions, inputs, gates].
void quantized_lstm_shape(ShapeContext& context) {
  const std::string op(context.node().op());
  const Dims& x = context.input(0).dims;
  const Dims& r = context.input(2).dims;
  kit::require(x.size() == 3 && r.size() == 3, op, ": X ", to_string(x), " and R ", to_string(r),
               " must have rank 3");
  const int64_t hidden = r[1];
  kit::require(hidden <= int64_t{1} << 59, op, ": R ", to_string(r),
               " has a dim of more than 2^59, whose gates do not fit int64");
  const int64_t directions = context.node().text("direction", "forward") == "bidirectional" ? 2 : 1;
  require_dims(context, 1, "W", {directions, x[2], 4 * hidden});
  require_dims(context, 2, "R", {directions, hidden, 4 * hidden});
  require_dims(context, 3, "B", {directions, 8 * hidden});
  require_dims(context, 4, "sequence_lens", {x[1]});
  const Dims state = {directions, x[1], hidden};
  require_dims(context, 5, "initial_h", state);
  require_dims(context, 6, "initial_c", state);
  require_dims(context, 7, "P", {directions, 3 * hidden});
  Dims y = {x[0], directions, x[1], hidden};
  checked_size(y, op);
  context.set(0, std::move(y));
  context.set(1, state);
  context.set(2, state);
}

}  // namespace

std::vector<Op> rnn_ops() {
  return {{"RNN", 1, 0, rnn_shape},
          {"GRU", 1, 0, rnn_shape},
          {"LSTM", 1, 0, rnn_shape},
          {"DynamicQuantizeLSTM", 1, 0, quantized_lstm_shape, 0, 0, "com.microsoft"}};
}

}  // namespace chipdock::runtime
