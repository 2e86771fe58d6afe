// SPDX-License-Identifier: Apache-2.0
// The exported symbol: makes an instance and hands out its tables.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "device.hpp"
#include "kernel_list.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr uint8_t kUuid[16] = {0x6f, 0x0b, 0x1c, 0x52, 0x8e, 0x3d, 0x4a, 0x77,
                               0x9c, 0x21, 0x5d, 0x40, 0xc4, 0xe9, 0x13, 0xa8};

struct NamedTable {
  const char* name;
  const void* table;
};

/// A ccl table is not among them: the host's portable collectives are as good as any on one host.
constexpr NamedTable kTables[] = {
    {"chipdock.device", &kDeviceApi},   {"chipdock.memory", &kMemoryApi},
    {"chipdock.stream", &kStreamApi},   {"chipdock.event", &kEventApi},
    {"chipdock.kernel", &kKernelApi},   {"chipdock.graph", &kGraphApi},
    {"chipdock.compile", &kCompileApi}, {"chipdock.profiler", &kProfilerApi}};

chipdock_status get_table(chipdock_plugin* plugin, const char* table, uint32_t version,
                          const void** out_table, chipdock_error* error) {
  return kit::guard(error, [&] {
    Instance::of(plugin);
    kit::require(table != nullptr && out_table != nullptr, "table or out_table is NULL");
    for (const NamedTable& named : kTables) {
      if (std::strcmp(table, named.name) != 0) continue;
      const auto& header = *static_cast<const chipdock_table_header*>(named.table);
      if (CHIPDOCK_VERSION_MAJOR(version) != header.major) {
        kit::fail(CHIPDOCK_VERSION_MISMATCH, table, ": the host speaks major ",
                  CHIPDOCK_VERSION_MAJOR(version), ", this plugin ", header.major, ".",
                  header.minor, "; update the older one");
      }
      *out_table = named.table;
      return;
    }
    kit::fail(CHIPDOCK_UNSUPPORTED, "there is no table ", table, " in chipdock.cpu");
  });
}

chipdock_status shutdown(chipdock_plugin* plugin, chipdock_error* error) {
  return kit::guard(error, [&] {
    Instance* instance = &Instance::of(plugin);
    const size_t open = instance->devices.size();
    delete instance;
    if (open != 0) {
      kit::fail(CHIPDOCK_INTERNAL, "shutdown found ", open, " open devices; they were closed");
    }
  });
}

}  // namespace

Instance::Instance(const chipdock_host* host_, const Settings& settings_, Machine machine_)
    : host(host_),
      settings(settings_),
      machine(std::move(machine_)),
      pool(settings_.threads),
      kernels(std::make_unique<KernelList>()) {
  plugin.struct_size = sizeof(plugin);
  plugin.abi_version = CHIPDOCK_ABI_VERSION;
  plugin.id = "chipdock.cpu";
  plugin.name = "cpu";
  plugin.version = CHIPDOCK_CPU_VERSION;  // CMake's, which reads pyproject.toml
  std::memcpy(plugin.uuid, kUuid, sizeof(kUuid));
  plugin.get_table = get_table;
  plugin.shutdown = shutdown;
  plugin.state = this;

  heap.struct_size = sizeof(heap);
  heap.flags = CHIPDOCK_HEAP_COHERENT | CHIPDOCK_HEAP_ADDRESSABLE;
  if (!settings.strict) heap.flags |= CHIPDOCK_HEAP_HOST_VISIBLE;
  heap.bytes = settings.memory_limit != 0 ? settings.memory_limit : machine.memory_bytes;
  heap.alignment = kAlignment;
  heap.name = "host";
}

Instance::~Instance() {
  for (chipdock_device* device : devices) delete device;
}

void Instance::report(chipdock_device* device, chipdock_stream* stream,
                      const chipdock_error& error) const {
  if (CHIPDOCK_HAS_FIELD(chipdock_host, report, host->struct_size) && host->report != nullptr) {
    host->report(host->context, device, stream, &error);
  }
}

}  // namespace chipdock::plugin::cpu

extern "C" CHIPDOCK_EXPORT chipdock_status CHIPDOCK_CALL
chipdock_plugin_query(const chipdock_host* host, const chipdock_query_desc* given,
                      chipdock_plugin** out_plugin, chipdock_error* error) {
  using namespace chipdock::plugin::cpu;  // NOLINT(google-build-using-namespace)
  CHIPDOCK_QUERY_CHECK(host, given, out_plugin, error);
  return chipdock::kit::guard(error, [&] {
    const auto desc = chipdock::kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_query_desc, abi_max), "query desc");
    Machine machine = read_machine();
    Settings settings = settings_from_environment(static_cast<int>(machine.cores));
    apply_options(desc.options, desc.option_count, false, settings);
    auto instance = std::make_unique<Instance>(host, settings, std::move(machine));
    *out_plugin = &instance.release()->plugin;
  });
}
