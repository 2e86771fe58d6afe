// SPDX-License-Identifier: Apache-2.0
// Kernels that write what is not theirs, leave out what is, or share what they may not.
#include <chrono>
#include <thread>

#include "launch.hpp"

namespace chipdock::mutants {
namespace {

bool any(const Node& node) { return node.domain.empty(); }
bool arithmetic(const Node& node) { return node.is_one_of("Add Sub Mul Relu Neg MatMul"); }

/// The byte behind the end, if it is inside the allocation.
void past_end(Launch& launch) {
  for (uint32_t i = 0; i < launch.outputs.size(); ++i) {
    const Tensor& output = launch.outputs[i];
    if (!output.given || launch.desc.outputs[i]->memory == nullptr) continue;
    const unsigned char byte = 0xee;
    write_bytes(launch.node.device, *launch.desc.outputs[i], output.bytes.size(), &byte, 1);
  }
}

void before_begin(Launch& launch) {
  const chipdock_tensor* given = launch.outputs.empty() ? nullptr : launch.desc.outputs[0];
  if (given == nullptr || given->memory == nullptr || given->offset == 0) return;
  chipdock_tensor shifted = *given;
  shifted.offset -= 1;
  const unsigned char byte = 0xee;
  write_bytes(launch.node.device, shifted, 0, &byte, 1);
}

void last_left_out(Launch& launch) {
  if (launch.outputs.empty() || !launch.outputs[0].is_f32()) return;
  Tensor& output = launch.outputs[0];
  if (output.count() > 4) output.set<uint32_t>(output.count() - 1, 0xcbcbcbcbu);
}

void input_damaged(Launch& launch) {
  for (uint32_t i = 0; i < launch.inputs.size(); ++i) {
    const chipdock_tensor* input = launch.desc.inputs[i];
    if (!launch.inputs[i].given || launch.inputs[i].bytes.empty()) continue;
    bool aliased = false;
    for (uint32_t k = 0; k < launch.desc.output_count; ++k) {
      const chipdock_tensor* output = launch.desc.outputs[k];
      aliased = aliased || (output != nullptr && output->memory == input->memory);
    }
    // Host memory may be a constant of the caller that cannot be written.
    if (aliased || input->memory == nullptr) continue;
    const unsigned char byte = launch.inputs[i].bytes[0] ^ 0x01;
    write_bytes(launch.node.device, *input, 0, &byte, 1);
  }
}

void extents_wrong(Launch& launch) {
  if (launch.desc.extents == nullptr) return;
  for (uint32_t i = 0; i < launch.desc.output_count; ++i) {
    const chipdock_tensor* extents = launch.desc.extents[i];
    if (extents == nullptr) continue;
    const uint64_t last = launch.outputs[i].shape.empty() ? 0 : launch.outputs[i].shape.size() - 1;
    int64_t extent = 0;
    read_bytes(launch.node.device, *extents, last * sizeof(extent), &extent, sizeof(extent));
    if (extent == 0) continue;
    --extent;
    write_bytes(launch.node.device, *extents, last * sizeof(extent), &extent, sizeof(extent));
  }
}

/// Results of all threads pass through one buffer.
void shared_scratch(Launch& launch) {
  static unsigned char scratch[4096];
  if (launch.outputs.empty() || launch.outputs[0].bytes.size() > sizeof(scratch)) return;
  auto& bytes = launch.outputs[0].bytes;
  std::memcpy(scratch, bytes.data(), bytes.size());
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  std::memcpy(bytes.data(), scratch, bytes.size());
}

void workspace_past_end(Launch& launch) {
  if (launch.desc.workspace == nullptr || launch.desc.workspace_size == 0) return;
  chipdock_tensor workspace{};
  workspace.memory = launch.desc.workspace;
  workspace.offset = launch.desc.workspace_offset;
  unsigned char bytes[64];
  std::memset(bytes, 0xee, sizeof(bytes));
  write_bytes(launch.node.device, workspace, launch.desc.workspace_size, bytes, sizeof(bytes));
}

template <bool (*kWants)(const Node&), void (*kSpoil)(Launch&)>
void launches(Tables& tables) {
  static constexpr LaunchFault kFault = {kWants, kSpoil};
  fault_launches(tables, kFault);
}

constexpr Mutant kMutants[] = {
    {"launch_past_end", &launches<&arithmetic, &past_end>},
    {"launch_before_begin", &launches<&arithmetic, &before_begin>},
    {"launch_last_left_out", &launches<&arithmetic, &last_left_out>},
    {"launch_damages_input", &launches<&arithmetic, &input_damaged>},
    {"launch_extents_wrong", &launches<&any, &extents_wrong>},
    {"launch_shared_scratch", &launches<&arithmetic, &shared_scratch>},
    {"launch_workspace_past_end", &launches<&any, &workspace_past_end>},
};

}  // namespace

MutantSpan kernel_writes_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
