// SPDX-License-Identifier: Apache-2.0
// Shape of FusedAttention.
#include "ops/fused.hpp"

namespace chipdock::runtime {
namespace {

/// Q [.., L, D], K [.., D, S], V [.., S, E] and a mask that spreads over [.., L, S] make [.., L, E].
void attention_shape(ShapeContext& context) {
  const std::string_view op = context.node().op();
  const Dims& q = context.input(0).dims;
  const Dims& k = context.input(1).dims;
  const Dims& v = context.input(2).dims;
  const auto batch = [](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
  kit::require(q.size() > 1 && k.size() > 1 && v.size() > 1, op, ": Q ", to_string(q), ", K ",
               to_string(k), " and V ", to_string(v), " must have rank 2 or more");
  const int64_t rows = q[q.size() - 2];
  const int64_t columns = k.back();
  kit::require(q.back() == k[k.size() - 2] && columns == v[v.size() - 2], op, ": Q ", to_string(q),
               ", K ", to_string(k), " and V ", to_string(v),
               " must be [.., L, D], [.., D, S] and [.., S, E]");
  Dims out = broadcast(broadcast(batch(q), batch(k), op), batch(v), op);
  if (context.has_input(3)) {
    Dims mask = context.input(3).dims;
    while (mask.size() < 2) mask.insert(mask.begin(), 1);
    const int64_t mask_rows = mask[mask.size() - 2];
    kit::require(
        (mask_rows == 1 || mask_rows == rows) && (mask.back() == 1 || mask.back() == columns), op,
        ": mask ", to_string(context.input(3).dims), " must spread over ",
        to_string({rows, columns}));
    out = broadcast(out, batch(mask), op);
  }
  out.push_back(rows);
  out.push_back(v.back());
  checked_size(out, op);
  context.set(0, std::move(out));
}

}  // namespace

std::vector<Op> attention_ops() { return {fused_op("FusedAttention", attention_shape)}; }

}  // namespace chipdock::runtime
