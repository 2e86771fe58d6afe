// SPDX-License-Identifier: Apache-2.0
// What a call costs through the host, and through the function pointer that the plugin itself gave:
// a launch of a kernel that does nothing, an Add of four floats, an address, a stream's query.
//   abi_call NOOP_PLUGIN CPU_PLUGIN ROUNDS CALLS
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "device.hpp"
#include "stream.hpp"
#include "turns.hpp"

namespace {

using namespace chipdock::runtime;  // NOLINT(google-build-using-namespace)
using chipdock::bench::blur;
using chipdock::bench::take_turns;

struct Setup {
  int rounds;
  uint64_t calls;
};

/// The plugin's own table, which no host has copied or wrapped.
template <class Table>
const Table& raw_table(const Plugin& plugin, const char* name, uint32_t version) {
  const void* table = nullptr;
  ErrorRecord error;
  check(plugin.handle()->get_table(plugin.handle(), name, version, &table, &error), error, name);
  return *static_cast<const Table*>(table);
}

chipdock_kernel_instance* make_kernel(Device& device, const char* domain, const char* op) {
  const chipdock_kernel_api& api = device.tables().kernel;
  const chipdock_kernel* const* list = nullptr;
  uint64_t count = 0;
  ErrorRecord error;
  check(api.list(device.handle(), &list, &count, &error), error, "list");
  const int64_t length = 4;
  chipdock_value value{};
  value.struct_size = sizeof(value);
  value.dtype = chipdock::kit::kFloat32;
  value.rank = 1;
  value.dims = &length;
  const chipdock_value* values[] = {&value, &value};
  for (uint64_t i = 0; i < count; ++i) {
    if (std::strcmp(list[i]->op, op) != 0 || std::strcmp(list[i]->domain, domain) != 0) continue;
    chipdock_node node{};
    node.struct_size = sizeof(node);
    node.op = op;
    node.domain = domain;
    node.since_version = list[i]->since_version;
    node.input_count = 2;
    node.output_count = 1;
    node.inputs = values;
    node.outputs = values;
    chipdock_kernel_instance* instance = nullptr;
    check(api.create(device.handle(), list[i], &node, &instance, &error), error, "create");
    return instance;
  }
  throw std::runtime_error(std::string("no kernel for ") + op);
}

/// A launch of `op` on four floats each: raw is what a program without a host would write.
void launch(const char* what, const std::string& path, const char* domain, const char* op,
            const Setup& setup) {
  const auto plugin = Plugin::load(path, {"none", {}});
  const auto device = Device::open(plugin, 0, {});
  const auto& raw =
      raw_table<chipdock_kernel_api>(*plugin, "chipdock.kernel", CHIPDOCK_VERSION(1, 0));
  chipdock_kernel_instance* instance = make_kernel(*device, domain, op);
  float numbers[3][4] = {{1, 2, 3, 4}, {1, 2, 3, 4}, {}};
  const int64_t length = 4;
  chipdock_tensor tensors[3]{};
  for (int i = 0; i < 3; ++i) {
    tensors[i].struct_size = sizeof(chipdock_tensor);
    tensors[i].dtype = chipdock::kit::kFloat32;
    tensors[i].rank = 1;
    tensors[i].shape = &length;
    tensors[i].host = numbers[i];
  }
  const chipdock_tensor* inputs[] = {&tensors[0], &tensors[1]};
  const chipdock_tensor* outputs[] = {&tensors[2]};
  chipdock_launch_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.inputs = inputs;
  desc.input_count = 2;
  desc.outputs = outputs;
  desc.output_count = 1;
  desc.max_threads = 1;
  auto* pointer = raw.launch;
  ErrorRecord error;
  take_turns(what,
             {{"raw pointer",
               [&](uint64_t calls) {
                 for (uint64_t i = 0; i < calls; ++i) {
                   blur(pointer);
                   if (pointer(instance, &desc, &error) != CHIPDOCK_OK) std::abort();
                 }
               },
               {}},
              {"chipdock",
               [&](uint64_t calls) {
                 for (uint64_t i = 0; i < calls; ++i) {
                   Device* target = device.get();
                   blur(target);
                   target->launch(instance, desc, nullptr, op);
                 }
               },
               {}}},
             setup.rounds, setup.calls);
  check(raw.destroy(instance, &error), error, "destroy");
}

void address(const std::string& path, const Setup& setup) {
  const auto plugin = Plugin::load(path, {"none", {}});
  const auto device = Device::open(plugin, 0, {});
  const auto buffer = device->allocate(256, nullptr);
  auto* pointer =
      raw_table<chipdock_memory_api>(*plugin, "chipdock.memory", CHIPDOCK_VERSION(1, 0)).address;
  ErrorRecord error;
  take_turns("memory.address",
             {{"raw pointer",
               [&](uint64_t calls) {
                 void* found = nullptr;
                 for (uint64_t i = 0; i < calls; ++i) {
                   blur(pointer);
                   pointer(device->handle(), buffer->memory(), &found, &error);
                   blur(found);
                 }
               },
               {}},
              {"chipdock",
               [&](uint64_t calls) {
                 for (uint64_t i = 0; i < calls; ++i) {
                   void* found = device->heap_address(buffer->memory());
                   blur(found);
                 }
               },
               {}}},
             setup.rounds, setup.calls);
}

void query(const std::string& path, const Setup& setup) {
  const auto plugin = Plugin::load(path, {"none", {}});
  const auto device = Device::open(plugin, 0, {});
  const auto stream = Stream::create(device);
  auto* pointer =
      raw_table<chipdock_stream_api>(*plugin, "chipdock.stream", CHIPDOCK_VERSION(1, 0)).query;
  ErrorRecord error;
  take_turns("stream.query",
             {{"raw pointer",
               [&](uint64_t calls) {
                 for (uint64_t i = 0; i < calls; ++i) {
                   blur(pointer);
                   if (pointer(stream->handle(), &error) != CHIPDOCK_OK) std::abort();
                 }
               },
               {}},
              {"chipdock",
               [&](uint64_t calls) {
                 for (uint64_t i = 0; i < calls; ++i) {
                   if (!stream->query()) std::abort();
                 }
               },
               {}}},
             setup.rounds, setup.calls);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: abi_call NOOP_PLUGIN CPU_PLUGIN ROUNDS CALLS\n");
    return 2;
  }
  const Setup setup{std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10)};
  try {
    launch("launch of nothing", argv[1], "bench", "Nothing", setup);
    launch("launch of Add, 4 floats", argv[2], "", "Add", setup);
    address(argv[2], setup);
    query(argv[2], setup);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  shutdown_all_plugins();
  return 0;
}
