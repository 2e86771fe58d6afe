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

/// Samplers weigh elements in every mode but one.
void by_ranks_of_the_nearest(HostCall& call) {
  const kit::NodeView attributes = call.attributes();
  const bool sampler = call.node().op == "GridSample";
  const std::string mode(attributes.text("mode", sampler ? "linear" : "nearest"));
  kit::require(mode == "nearest", call.node().op, ": mode '", mode,
               "' weighs elements, which strings do not allow; use mode 'nearest'");
  const double outside = attributes.number("extrapolation_value", 0);
  kit::require(outside == 0, call.node().op, ": extrapolation_value is ", outside,
               ", outside of a tensor of strings stands \"\", which is written as 0");
  by_ranks(call);
}

}  // namespace

std::vector<HostOp> text_movement_host_ops() {
  std::vector<HostOp> ops;
  for (const char* name : {"Compress",
                           "Concat",
                           "DepthToSpace",
                           "Equal",
                           "Expand",
                           "Flatten",
                           "Gather",
                           "GatherND",
                           "GatherElements",
                           "NonZero",
                           "OneHot",
                           "Pad",
                           "Reshape",
                           "Scatter",
                           "ScatterElements",
                           "ScatterND",
                           "Slice",
                           "SpaceToDepth",
                           "Split",
                           "Squeeze",
                           "TensorScatter",
                           "ReverseSequence",
                           "Tile",
                           "Transpose",
                           "Trilu",
                           "Unique",
                           "Unsqueeze",
                           "Where"}) {
    ops.push_back({name, 1, 0, by_ranks});
  }
  for (const char* name : {"Resize", "Upsample", "GridSample"}) {
    ops.push_back({name, 1, 0, by_ranks_of_the_nearest});
  }
  return ops;
}

}  // namespace chipdock::runtime
