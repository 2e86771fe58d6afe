// SPDX-License-Identifier: Apache-2.0
// Sequences: made, read, taken apart and joined. SequenceMap is a function of ONNX and needs
// nothing here.
#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

/// A position counted from the back if negative; up to `last`.
size_t position(HostCall& call, size_t input, int64_t size, int64_t last) {
  const int64_t given = call.integer(input);
  const int64_t at = given < 0 ? given + size : given;
  kit::require(at >= 0 && at <= last, "position ", given, " of a sequence of ", size,
               ", allowed are ", -size, " to ", last);
  return static_cast<size_t>(at);
}

void construct(HostCall& call) {
  std::vector<TensorRef> items;
  items.reserve(call.input_count());
  for (size_t i = 0; i < call.input_count(); ++i) items.push_back(call.own(call.input(i)));
  call.set(0, make_sequence(std::move(items)));
}

void empty(HostCall& call) { call.set(0, make_sequence({})); }

void insert(HostCall& call) {
  std::vector<TensorRef> items = call.items(0);
  const auto size = static_cast<int64_t>(items.size());
  const size_t at = call.has_input(2) ? position(call, 2, size, size) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), call.own(call.input(1)));
  call.set(0, make_sequence(std::move(items)));
}

void erase(HostCall& call) {
  std::vector<TensorRef> items = call.items(0);
  const auto size = static_cast<int64_t>(items.size());
  kit::require(size > 0, "an empty sequence has nothing to erase");
  const size_t at = call.has_input(1) ? position(call, 1, size, size - 1) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  call.set(0, make_sequence(std::move(items)));
}

void at(HostCall& call) {
  const std::vector<TensorRef>& items = call.items(0);
  const auto size = static_cast<int64_t>(items.size());
  call.set(0, call.own(items[position(call, 1, size, size - 1)]));
}

void length(HostCall& call) {
  const auto size = static_cast<int64_t>(call.items(0).size());
  call.set(0, call.tensor(kit::kInt64, {}, &size));
}

int64_t axis_of(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  kit::require(axis >= -count && axis < count, "axis ", axis, " of rank ", rank, ", allowed are ",
               -count, " to ", count - 1);
  return axis < 0 ? axis + count : axis;
}

/// Extents of the pieces along an axis of `extent`.
std::vector<int64_t> piece_lengths(HostCall& call, int64_t extent) {
  if (!call.has_input(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  std::vector<int64_t> given = call.integers(1);
  if (!call.input(1).dims.empty()) return given;
  kit::require(given[0] > 0, "pieces of ", given[0], " elements, allowed is 1 or more");
  std::vector<int64_t> lengths;
  for (int64_t from = 0; from < extent; from += given[0])
    lengths.push_back(std::min(given[0], extent - from));
  return lengths;
}

void split(HostCall& call) {
  const TensorRef& whole = call.input(0);
  const int64_t axis = axis_of(call.attributes().integer("axis", 0), whole.dims.size());
  const int64_t extent = whole.dims[static_cast<size_t>(axis)];
  std::vector<int64_t> lengths = piece_lengths(call, extent);
  if (lengths.empty()) return call.set(0, make_sequence({}));
  IrNode node;
  node.op = "Split";
  node.name = call.node().name;
  node.since_version = 13;
  node.attributes.add_integer("axis", axis);
  for (size_t i = 0; i < lengths.size(); ++i) node.outputs.push_back(static_cast<int32_t>(i));
  const TensorRef table =
      call.tensor(kit::kInt64, {static_cast<int64_t>(lengths.size())}, lengths.data());
  std::vector<TensorRef> pieces =
      call.apply(node, {&whole, &table}, std::vector<chipdock_dtype>(lengths.size(), whole.dtype));
  if (!call.has_input(1) && call.attributes().integer("keepdims", 1) == 0) {
    for (TensorRef& piece : pieces)
      piece.dims.erase(piece.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  call.set(0, make_sequence(std::move(pieces)));
}

void concat(HostCall& call) {
  std::vector<TensorRef> items = call.items(0);
  kit::require(!items.empty(), "an empty sequence cannot be joined: its shape is unknown");
  const bool new_axis = call.attributes().integer("new_axis", 0) != 0;
  const size_t rank = items[0].dims.size() + (new_axis ? 1 : 0);
  const int64_t axis = axis_of(call.attributes().integer("axis", 0), rank);
  IrNode node;
  node.op = "Concat";
  node.name = call.node().name;
  node.since_version = 13;
  node.attributes.add_integer("axis", axis);
  node.outputs = {0};
  std::vector<const TensorRef*> inputs;
  for (TensorRef& item : items) {
    if (new_axis) item.dims.insert(item.dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    inputs.push_back(&item);
  }
  call.set(0, call.apply(node, inputs, {items[0].dtype})[0]);
}

}  // namespace

std::vector<HostOp> sequence_host_ops() {
  return {{"SequenceConstruct", 11, 0, construct},
          {"SequenceEmpty", 11, 0, empty},
          {"SequenceInsert", 11, 0, insert},
          {"SequenceErase", 11, 0, erase},
          {"SequenceAt", 11, 0, at},
          {"SequenceLength", 11, 0, length},
          {"SplitToSequence", 11, 0, split},
          {"ConcatFromSequence", 11, 0, concat}};
}

}  // namespace chipdock::runtime
