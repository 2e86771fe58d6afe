// SPDX-License-Identifier: Apache-2.0
// Rows of tensors, of strings too: what Loop and Scan take apart and put together.
#include <algorithm>

#include "exec/control_flow.hpp"
#include "exec/node_runner.hpp"

namespace chipdock::runtime {
namespace {

TensorRef stack_strings(const std::vector<TensorRef>& rows, Dims dims) {
  std::vector<std::string> all;
  for (const TensorRef& row : rows)
    all.insert(all.end(), row.object->strings.begin(), row.object->strings.end());
  return make_strings(std::move(dims), std::move(all));
}

}  // namespace

void own_state(std::vector<TensorRef>& state, Device& device) {
  for (TensorRef& tensor : state) tensor = move_tensor(tensor, device, nullptr);
}

TensorRef take_row(const TensorRef& tensor, int64_t index) {
  Dims dims(tensor.dims.begin() + 1, tensor.dims.end());
  if (is_kind(tensor, HostKind::kStrings)) {
    const auto from = tensor.object->strings.begin() + index * element_count(dims);
    return make_strings(dims, {from, from + element_count(dims)});
  }
  TensorRef row = tensor;
  row.dims = std::move(dims);
  row.offset += static_cast<uint64_t>(index) * row.bytes();
  return row;
}

TensorRef stack_rows(Device& device, const std::vector<TensorRef>& rows, const Plan& body,
                     size_t output, const IrNode& node) {
  const IrValue& formal = body.graph().values[static_cast<size_t>(body.graph().outputs[output])];
  Dims dims = rows.empty() ? formal.dims : rows[0].dims;
  for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
  const Dims row_dims = dims;
  dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
  for (const TensorRef& row : rows) {
    if (row.object != nullptr && !is_kind(row, HostKind::kStrings)) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "scan output of ", describe(node), " is ", kind_name(row),
            ", tensors are wanted");
    }
    if (row.dims != row_dims) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "scan output of ", describe(node), " changes shape from ",
            to_string(row_dims), " to ", to_string(row.dims));
    }
  }
  if (is_host_dtype(formal.dtype)) return stack_strings(rows, std::move(dims));
  TensorRef out = make_tensor(device, formal.dtype, dims, nullptr);
  for (size_t i = 0; i < rows.size(); ++i) {
    TensorRef target = take_row(out, static_cast<int64_t>(i));
    if (target.bytes() > 0) device.copy(rows[i].place(), target.place(), target.bytes(), nullptr);
  }
  return out;
}

}  // namespace chipdock::runtime
