// SPDX-License-Identifier: Apache-2.0
// Faults of private layouts: sizes, Reorders, and kernels that work in one. What a layout looks
// like is the base's own; bytes behind the elements' number are taken for what fills blocks up.
#include <algorithm>
#include <vector>

#include "launch.hpp"

namespace chipdock::mutants {
namespace {

using Bytes = std::vector<unsigned char>;

bool is_reorder(const Node& node) { return node.domain == "ai.chipdock" && node.op == "Reorder"; }
bool is_none(const Node& node) { return !is_reorder(node); }

uint64_t count_of(const chipdock_tensor& tensor) {
  uint64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= static_cast<uint64_t>(tensor.shape[i]);
  return count;
}

/// What a tensor in a layout has, as bytes.
struct Inside {
  Inside(chipdock_device* device, const chipdock_tensor* tensor) : device_(device) {
    if (tensor == nullptr || tensor->layout == 0 || tensor->memory == nullptr) return;
    elements = count_of(*tensor) * tensor->dtype.bits / 8;
    chipdock_value value{};
    value.struct_size = sizeof(value);
    value.dtype = tensor->dtype;
    value.rank = tensor->rank;
    value.layout = tensor->layout;
    value.dims = tensor->shape;
    uint64_t size = 0;
    if (elements == 0 || base().kernel.layout_size(device, &value, &size, nullptr) != CHIPDOCK_OK) {
      return;
    }
    bytes.resize(size);
    if (read_bytes(device, *tensor, 0, bytes.data(), size)) tensor_ = tensor;
  }
  bool given() const { return tensor_ != nullptr; }
  bool padded() const { return given() && bytes.size() > elements; }
  void write() { write_bytes(device_, *tensor_, 0, bytes.data(), bytes.size()); }

  Bytes bytes;
  uint64_t elements = 0;

 private:
  chipdock_device* device_;
  const chipdock_tensor* tensor_ = nullptr;
};

/// The end of the last block of channels is zero where it is no channel's.
void garbage(Launch& launch) {
  if (launch.outputs.empty()) return;
  Inside inside(launch.node.device, launch.desc.outputs[0]);
  if (!inside.padded()) return;
  std::fill(inside.bytes.end() - 4, inside.bytes.end(), static_cast<unsigned char>(0x5a));
  inside.write();
}

/// Channels that fill no block whole: the end of the last one stays empty.
void last_block_left_out(Launch& launch) {
  if (launch.outputs.empty()) return;
  Inside inside(launch.node.device, launch.desc.outputs[0]);
  if (!inside.padded()) return;
  const chipdock_tensor& tensor = *launch.desc.outputs[0];
  const uint64_t places = count_of(tensor) / static_cast<uint64_t>(tensor.shape[0]) /
                          static_cast<uint64_t>(tensor.shape[1]);
  const auto gone = std::min<uint64_t>(inside.bytes.size(), places * 8 * sizeof(float));
  std::fill_n(inside.bytes.end() - static_cast<int64_t>(gone), gone, static_cast<unsigned char>(0));
  inside.write();
}

void behind_layout(Launch& launch) {
  if (launch.outputs.empty()) return;
  const Inside inside(launch.node.device, launch.desc.outputs[0]);
  if (!inside.given()) return;
  const unsigned char byte = 0xee;
  write_bytes(launch.node.device, *launch.desc.outputs[0], inside.bytes.size(), &byte, 1);
}

/// The way back leaves its source empty.
void source_emptied(Launch& launch) {
  if (launch.inputs.empty()) return;
  Inside inside(launch.node.device, launch.desc.inputs[0]);
  if (!inside.given()) return;
  std::fill(inside.bytes.begin(), inside.bytes.end(), static_cast<unsigned char>(0));
  inside.write();
}

/// NaNs that leave a layout are all the same one.
void payload_lost(Launch& launch) {
  if (launch.outputs.empty() || !launch.outputs[0].is_f32()) return;
  launch.outputs[0].each<uint32_t>(
      [](uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits; });
}

/// An image is taken for the first one, where there are more.
void first_image_only(Launch& launch) {
  if (launch.outputs.empty() || !launch.outputs[0].given) return;
  Tensor& output = launch.outputs[0];
  if (output.shape.empty() || output.shape[0] < 2) return;
  const auto one = static_cast<int64_t>(output.bytes.size()) / output.shape[0];
  std::copy_n(output.bytes.begin(), one, output.bytes.begin() + one);
}

template <bool (*kWants)(const Node&), void (*kSpoil)(Launch&)>
void launches(Tables& tables) {
  static constexpr LaunchFault kFault = {kWants, kSpoil};
  if (base().kernel.layout_size != nullptr) fault_launches(tables, kFault);
}

/// What layout_size answered, changed.
template <uint64_t (*kChange)(uint64_t)>
void size(Tables& tables) {
  if (base().kernel.layout_size == nullptr) return;
  tables.kernel.layout_size = [](chipdock_device* device, const chipdock_value* value,
                                 uint64_t* out, chipdock_error* error) {
    const chipdock_status status = base().kernel.layout_size(device, value, out, error);
    if (status == CHIPDOCK_OK) *out = kChange(*out);
    return status;
  };
}
uint64_t four_less(uint64_t size) { return size - 4; }
uint64_t half(uint64_t size) { return size / 2; }

/// A question that has no answer gets one.
template <chipdock_status kForgiven>
void size_of_anything(Tables& tables) {
  if (base().kernel.layout_size == nullptr) return;
  tables.kernel.layout_size = [](chipdock_device* device, const chipdock_value* value,
                                 uint64_t* out, chipdock_error* error) {
    if (device == nullptr || value == nullptr || out == nullptr) {
      return base().kernel.layout_size(device, value, out, error);
    }
    return forgiving(kForgiven, error, [&](chipdock_error* own) {
      return base().kernel.layout_size(device, value, out, own);
    });
  };
}

constexpr Mutant kMutants[] = {
    {"reorder_garbage_in_padding", &launches<&is_reorder, &garbage>},
    {"reorder_past_end", &launches<&is_reorder, &behind_layout>},
    {"reorder_empties_source", &launches<&is_reorder, &source_emptied>},
    {"reorder_payload_lost", &launches<&is_reorder, &payload_lost>},
    {"reorder_first_image_only", &launches<&is_reorder, &first_image_only>},
    {"layout_kernel_garbage", &launches<&is_none, &garbage>},
    {"layout_kernel_last_block", &launches<&is_none, &last_block_left_out>},
    {"layout_kernel_past_end", &launches<&is_none, &behind_layout>},
    {"layout_size_short", &size<&four_less>},
    {"layout_size_half", &size<&half>},
    {"layout_size_unknown", &size_of_anything<CHIPDOCK_UNSUPPORTED>},
    {"layout_size_no_dims", &size_of_anything<CHIPDOCK_INVALID_ARGUMENT>},
};

}  // namespace

MutantSpan layout_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
