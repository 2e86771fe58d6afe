// SPDX-License-Identifier: Apache-2.0
// A plugin that forwards to another one, altered in one respect. CHIPDOCK_ALTERED_BASE is the other's
// library. CHIPDOCK_ALTERED_DELAY is SLOT:MICROSECONDS that calls take longer, kernel.launch:200,
// or several of them with commas; CHIPDOCK_ALTERED_BANDWIDTH what its device claims, in bytes per
// second; CHIPDOCK_ALTERED_HIDES operators that it lists no kernels for. Handles are the base's own.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define CHIPDOCK_PLUGIN_BUILD
#define CHIPDOCK_UNSTABLE 1
#include "chipdock/chipdock.h"

namespace {

struct Tables {
  chipdock_device_api device;
  chipdock_memory_api memory;
  chipdock_stream_api stream;
  chipdock_kernel_api kernel;
};

struct Instance {
  chipdock_plugin shown;
  chipdock_plugin* base;
};

struct State {
  chipdock_plugin_query_fn query = nullptr;
  Tables base{};
  Tables shown{};
  std::once_flag filled;
};
State& state() {
  static auto& value = *new State;
  return value;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Microseconds that a slot takes longer, 0 if it does not.
int64_t delay_of(const std::string& slot) {
  const std::string all = "," + variable("CHIPDOCK_ALTERED_DELAY") + ",";
  const size_t at = all.find("," + slot + ":");
  return at == std::string::npos ? 0 : std::atoll(all.c_str() + at + slot.size() + 2);
}

/// Spins: a sleep would take as long as the system's timers please.
void spin(int64_t microseconds) {
  if (microseconds == 0) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

chipdock_plugin* base_of(chipdock_plugin* plugin) {
  return static_cast<Instance*>(plugin->state)->base;
}

chipdock_status CHIPDOCK_CALL count(chipdock_plugin* plugin, int32_t* out, chipdock_error* error) {
  return state().base.device.count(base_of(plugin), out, error);
}

chipdock_status CHIPDOCK_CALL info(chipdock_plugin* plugin, int32_t index,
                                   chipdock_device_info* out, chipdock_error* error) {
  const chipdock_status status = state().base.device.info(base_of(plugin), index, out, error);
  const std::string claim = variable("CHIPDOCK_ALTERED_BANDWIDTH");
  if (status == CHIPDOCK_OK && !claim.empty() &&
      CHIPDOCK_HAS_FIELD(chipdock_device_info, memory_bandwidth, out->struct_size)) {
    out->memory_bandwidth = std::strtoull(claim.c_str(), nullptr, 10);
  }
  return status;
}

chipdock_status CHIPDOCK_CALL open(chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                                   chipdock_device** out, chipdock_error* error) {
  return state().base.device.open(base_of(plugin), desc, out, error);
}

chipdock_status CHIPDOCK_CALL copy(chipdock_device* device, const chipdock_copy_desc* desc,
                                   chipdock_error* error) {
  static const int64_t delay = delay_of("memory.copy");
  spin(delay);
  return state().base.memory.copy(device, desc, error);
}

chipdock_status CHIPDOCK_CALL sync(chipdock_stream* stream, int64_t timeout_ns,
                                   chipdock_error* error) {
  static const int64_t delay = delay_of("stream.sync");
  spin(delay);
  return state().base.stream.sync(stream, timeout_ns, error);
}

chipdock_status CHIPDOCK_CALL launch(chipdock_kernel_instance* instance,
                                     const chipdock_launch_desc* desc, chipdock_error* error) {
  static const int64_t delay = delay_of("kernel.launch");
  spin(delay);
  return state().base.kernel.launch(instance, desc, error);
}

/// The base's kernels without those of hidden operators.
chipdock_status CHIPDOCK_CALL list(chipdock_device* device, const chipdock_kernel* const** out,
                                   uint64_t* out_count, chipdock_error* error) {
  static const std::string hidden = "," + variable("CHIPDOCK_ALTERED_HIDES") + ",";
  static std::mutex mutex;
  using Kernels = std::vector<const chipdock_kernel*>;
  static auto& known = *new std::map<Kernels, Kernels>;
  const chipdock_status status = state().base.kernel.list(device, out, out_count, error);
  if (status != CHIPDOCK_OK || hidden == ",,") return status;
  std::lock_guard<std::mutex> lock(mutex);
  const Kernels listed(*out, *out + *out_count);
  Kernels& mine = known[listed];
  if (mine.empty()) {
    for (const chipdock_kernel* kernel : listed) {
      if (hidden.find("," + std::string(kernel->op) + ",") == std::string::npos) {
        mine.push_back(kernel);
      }
    }
  }
  *out = mine.data();
  *out_count = mine.size();
  return CHIPDOCK_OK;
}

template <class Api>
void fetch(chipdock_plugin* plugin, const char* name, uint32_t version, Api& api) {
  const void* table = nullptr;
  if (plugin->get_table(plugin, name, version, &table, nullptr) == CHIPDOCK_OK) {
    std::memcpy(&api, table, sizeof(api));
  }
}

void fill(State& all, chipdock_plugin* plugin) {
  fetch(plugin, "chipdock.device", CHIPDOCK_VERSION(CHIPDOCK_DEVICE_MAJOR, CHIPDOCK_DEVICE_MINOR),
        all.base.device);
  fetch(plugin, "chipdock.memory", CHIPDOCK_VERSION(CHIPDOCK_MEMORY_MAJOR, CHIPDOCK_MEMORY_MINOR),
        all.base.memory);
  fetch(plugin, "chipdock.stream", CHIPDOCK_VERSION(CHIPDOCK_STREAM_MAJOR, CHIPDOCK_STREAM_MINOR),
        all.base.stream);
  fetch(plugin, "chipdock.kernel", CHIPDOCK_VERSION(CHIPDOCK_KERNEL_MAJOR, CHIPDOCK_KERNEL_MINOR),
        all.base.kernel);
  all.shown = all.base;
  all.shown.device.count = count;
  all.shown.device.info = info;
  all.shown.device.open = open;
  all.shown.memory.copy = copy;
  if (all.base.stream.sync != nullptr) all.shown.stream.sync = sync;
  if (all.base.kernel.launch != nullptr) all.shown.kernel.launch = launch;
  if (all.base.kernel.list != nullptr) all.shown.kernel.list = list;
}

chipdock_status CHIPDOCK_CALL get_table(chipdock_plugin* plugin, const char* table,
                                        uint32_t version, const void** out_table,
                                        chipdock_error* error) {
  State& all = state();
  chipdock_plugin* inner = base_of(plugin);
  const chipdock_status status = inner->get_table(inner, table, version, out_table, error);
  if (status != CHIPDOCK_OK) return status;
  if (std::strcmp(table, "chipdock.device") == 0) *out_table = &all.shown.device;
  if (std::strcmp(table, "chipdock.memory") == 0) *out_table = &all.shown.memory;
  if (std::strcmp(table, "chipdock.stream") == 0) *out_table = &all.shown.stream;
  if (std::strcmp(table, "chipdock.kernel") == 0) *out_table = &all.shown.kernel;
  return CHIPDOCK_OK;
}

chipdock_status CHIPDOCK_CALL shutdown(chipdock_plugin* plugin, chipdock_error* error) {
  auto* instance = static_cast<Instance*>(plugin->state);
  const chipdock_status status = instance->base->shutdown(instance->base, error);
  delete instance;
  return status;
}

}  // namespace

extern "C" CHIPDOCK_EXPORT chipdock_status CHIPDOCK_CALL
chipdock_plugin_query(const chipdock_host* host, const chipdock_query_desc* desc,
                      chipdock_plugin** out_plugin, chipdock_error* error) {
  State& all = state();
  if (all.query == nullptr) {
    void* library = dlopen(variable("CHIPDOCK_ALTERED_BASE").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return chipdock_fail(error, CHIPDOCK_UNAVAILABLE, dlerror());
    all.query = reinterpret_cast<chipdock_plugin_query_fn>(dlsym(library, CHIPDOCK_QUERY_SYMBOL));
  }
  chipdock_plugin* made = nullptr;
  const chipdock_status status = all.query(host, desc, &made, error);
  if (status != CHIPDOCK_OK) return status;
  std::call_once(all.filled, [&] { fill(all, made); });
  auto* instance = new Instance{*made, made};
  instance->shown.struct_size = sizeof(instance->shown);
  instance->shown.id = "chipdock.altered";
  instance->shown.name = "altered";
  instance->shown.uuid[15] ^= 1;
  instance->shown.get_table = get_table;
  if (made->shutdown != nullptr) instance->shown.shutdown = shutdown;
  instance->shown.state = instance;
  *out_plugin = &instance->shown;
  return CHIPDOCK_OK;
}
