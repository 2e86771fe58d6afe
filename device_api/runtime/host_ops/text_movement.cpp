// SPDX-License-Identifier: Apache-2.0
// Operators that move, choose or compare elements, on strings: done by the numeric operator of the
// same name on the strings' ranks (exec/apply_operator.hpp). What ONNX allows for strings, no more.
#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

void by_ranks(HostCall& call) {
  std::vector<chipdock_dtype> dtypes(call.output_count());
  for (size_t i = 0; i < dtypes.size(); ++i) dtypes[i] = call.output_dtype(i);
  std::vector<TensorRef> outputs = call.apply(call.node(), call.inputs(), dtypes);
  for (size_t i = 0; i < outputs.size(); ++i) call.set(i, std::move(outputs[i]));
}

}  // namespace

std::vector<HostOp> text_movement_host_ops() {
  std::vector<HostOp> ops;
  for (const char* name :
       {"Compress", "Concat",   "DepthToSpace",    "Equal",           "Expand", "Flatten",
        "Gather",   "GatherND", "GatherElements",  "NonZero",         "OneHot", "Pad",
        "Reshape",  "Scatter",  "ScatterElements", "ScatterND",       "Slice",  "SpaceToDepth",
        "Split",    "Squeeze",  "TensorScatter",   "ReverseSequence", "Tile",   "Transpose",
        "Trilu",    "Unique",   "Unsqueeze",       "Where",           "Resize", "Upsample"}) {
    ops.push_back({name, 1, 0, by_ranks});
  }
  return ops;
}

}  // namespace chipdock::runtime
