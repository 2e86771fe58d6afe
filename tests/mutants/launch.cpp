// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <mutex>

namespace chipdock::mutants {
namespace {

/// Longer waits mean that the stream waits for something that comes after this launch.
constexpr int64_t kPatienceNs = 2000000000;

const LaunchFault* g_fault = nullptr;
std::mutex g_mutex;
std::map<chipdock_kernel_instance*, Node> g_nodes;

void remember(chipdock_kernel_instance* instance, chipdock_device* device,
              const chipdock_node& given) {
  Node node;
  node.device = device;
  node.domain = given.domain;
  node.op = given.op;
  for (uint32_t i = 0; i < given.attribute_count; ++i) {
    const chipdock_attribute& attribute = *given.attributes[i];
    if (attribute.kind == CHIPDOCK_ATTRIBUTE_INT)
      node.integers[attribute.name] = {attribute.integer};
    if (attribute.kind == CHIPDOCK_ATTRIBUTE_INTS) {
      node.integers[attribute.name].assign(attribute.integers,
                                           attribute.integers + attribute.count);
    }
  }
  const std::lock_guard lock(g_mutex);
  g_nodes[instance] = std::move(node);
}

bool move_bytes(chipdock_device* device, const chipdock_tensor& tensor, uint64_t offset, void* own,
                uint64_t size, bool to_tensor) {
  if (size == 0) return true;
  if (tensor.memory == nullptr) {
    char* host = static_cast<char*>(tensor.host) + offset;
    if (tensor.host == nullptr) return false;
    std::memcpy(to_tensor ? host : own, to_tensor ? own : host, size);
    return true;
  }
  chipdock_place theirs{};
  chipdock_place ours{};
  theirs.struct_size = ours.struct_size = sizeof(theirs);
  theirs.memory = tensor.memory;
  theirs.offset = tensor.offset + offset;
  ours.host = own;
  chipdock_copy_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.source = to_tensor ? &ours : &theirs;
  desc.target = to_tensor ? &theirs : &ours;
  desc.size = size;
  return base().memory.copy(device, &desc, nullptr) == CHIPDOCK_OK;
}

std::vector<Tensor> read_all(chipdock_device* device, const chipdock_tensor* const* given,
                             uint32_t count) {
  std::vector<Tensor> tensors(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (given[i] == nullptr || given[i]->layout != 0 || given[i]->strides != nullptr) continue;
    Tensor& tensor = tensors[i];
    tensor.dtype = given[i]->dtype;
    if (given[i]->rank > 0) {
      tensor.shape.assign(given[i]->shape, given[i]->shape + given[i]->rank);
    }
    tensor.bytes.resize((tensor.count() * tensor.dtype.bits + 7) / 8);
    tensor.given = read_bytes(device, *given[i], 0, tensor.bytes.data(), tensor.bytes.size());
  }
  return tensors;
}

/// False if the stream cannot be waited for: captured, failed, or held up by someone else.
bool drained(chipdock_stream* stream) {
  if (stream == nullptr) return true;
  if (base().graph.capture_state != nullptr) {
    int32_t state = CHIPDOCK_CAPTURE_NONE;
    base().graph.capture_state(stream, &state, nullptr);
    if (state != CHIPDOCK_CAPTURE_NONE) return false;
  }
  return base().stream.sync(stream, kPatienceNs, nullptr) == CHIPDOCK_OK;
}

chipdock_status create(chipdock_device* device, const chipdock_kernel* kernel,
                       const chipdock_node* node, chipdock_kernel_instance** out,
                       chipdock_error* error) {
  const chipdock_status status = base().kernel.create(device, kernel, node, out, error);
  if (status == CHIPDOCK_OK) remember(*out, device, *node);
  return status;
}

chipdock_status destroy(chipdock_kernel_instance* instance, chipdock_error* error) {
  {
    const std::lock_guard lock(g_mutex);
    g_nodes.erase(instance);
  }
  return base().kernel.destroy(instance, error);
}

chipdock_status launch(chipdock_kernel_instance* instance, const chipdock_launch_desc* desc,
                       chipdock_error* error) {
  const Node* node = nullptr;
  {
    const std::lock_guard lock(g_mutex);
    const auto found = g_nodes.find(instance);
    if (found != g_nodes.end()) node = &found->second;
  }
  const bool whole = desc != nullptr && desc->struct_size == sizeof(*desc);
  if (node == nullptr || !whole || !g_fault->wants(*node) || !drained(desc->stream)) {
    return base().kernel.launch(instance, desc, error);
  }
  std::vector<Tensor> inputs = read_all(node->device, desc->inputs, desc->input_count);
  const chipdock_status status = base().kernel.launch(instance, desc, error);
  if (status != CHIPDOCK_OK || !drained(desc->stream)) return status;
  Launch ended{*node, *desc, std::move(inputs),
               read_all(node->device, desc->outputs, desc->output_count)};
  const std::vector<Tensor> before = ended.outputs;
  g_fault->spoil(ended);
  for (uint32_t i = 0; i < desc->output_count; ++i) {
    const Tensor& tensor = ended.outputs[i];
    if (!tensor.given || tensor.bytes == before[i].bytes) continue;
    write_bytes(node->device, *desc->outputs[i], 0, tensor.bytes.data(), tensor.bytes.size());
  }
  return status;
}

}  // namespace

uint64_t Tensor::count() const {
  uint64_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

bool Launch::is_plain_binary() const {
  return inputs.size() >= 2 && !outputs.empty() && inputs[0].given && inputs[1].given &&
         outputs[0].given && inputs[0].count() == outputs[0].count() &&
         inputs[1].count() == outputs[0].count();
}

bool read_bytes(chipdock_device* device, const chipdock_tensor& from, uint64_t offset, void* to,
                uint64_t size) {
  return move_bytes(device, from, offset, to, size, false);
}

bool write_bytes(chipdock_device* device, const chipdock_tensor& to, uint64_t offset,
                 const void* from, uint64_t size) {
  return move_bytes(device, to, offset, const_cast<void*>(from), size, true);
}

void fault_launches(Tables& tables, const LaunchFault& fault) {
  if (base().kernel.launch == nullptr) return;
  g_fault = &fault;
  tables.kernel.create = create;
  tables.kernel.destroy = destroy;
  tables.kernel.launch = launch;
}

}  // namespace chipdock::mutants
