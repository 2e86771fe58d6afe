// SPDX-License-Identifier: Apache-2.0
// The plugin `mutants`: the base plugin's tables with the fault that CHIPDOCK_MUTANT names, or none
// of them. CHIPDOCK_MUTANT_BASE is the base's library; without it one of the name below lies beside
// this one. CHIPDOCK_MUTANT=list logs every name and starts nothing.
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "mutant.hpp"

namespace chipdock::mutants {

#define FAMILY(stem) MutantSpan stem##_mutants();
#include "families.inc"
#undef FAMILY

namespace {

constexpr char kBaseName[] = "libchipdock_cpu.so";
constexpr uint8_t kUuid[16] = {0x6d, 0x75, 0x74, 0x61, 0x6e, 0x74, 0x40, 0x01,
                               0x80, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};

struct Instance {
  chipdock_plugin shown{};
  chipdock_plugin* base = nullptr;
};

struct State {
  std::string refusal;  ///< Why nothing can be started; empty if it can.
  chipdock_plugin_query_fn query = nullptr;
  Tables base;
  Tables shown;
};
State& state() {
  static auto& value = *new State;
  return value;
}

Instance& instance_of(chipdock_plugin* plugin) { return *static_cast<Instance*>(plugin->state); }

template <class Body>
void each_mutant(Body body) {
  const MutantSpan families[] = {
#define FAMILY(stem) stem##_mutants(),
#include "families.inc"
#undef FAMILY
  };
  for (const MutantSpan& family : families) {
    for (uint64_t i = 0; i < family.count; ++i) body(family.first[i]);
  }
}

std::string base_path() {
  const char* given = std::getenv("CHIPDOCK_MUTANT_BASE");
  if (given != nullptr) return given;
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&base_path), &own);
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + kBaseName;
}

void open_base(State& all) {
  const std::string path = base_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    all.refusal = std::string("UNAVAILABLE: the base plugin cannot be loaded: ") + dlerror();
    return;
  }
  all.query = reinterpret_cast<chipdock_plugin_query_fn>(dlsym(library, CHIPDOCK_QUERY_SYMBOL));
  if (all.query == nullptr) all.refusal = "UNAVAILABLE: the base is no plugin: " + path;
}

template <class Api>
void fetch(chipdock_plugin* plugin, const char* name, uint32_t version, Api& api) {
  const void* table = nullptr;
  if (plugin->get_table(plugin, name, version, &table, nullptr) != CHIPDOCK_OK) return;
  std::memcpy(&api, table, sizeof(api));
}

/// The slots that take an instance get the base's; faults are laid over these.
void translate(Tables& tables) {
  tables.device.count = [](chipdock_plugin* plugin, int32_t* out, chipdock_error* error) {
    return base().device.count(base_plugin(plugin), out, error);
  };
  tables.device.info = [](chipdock_plugin* plugin, int32_t index, chipdock_device_info* out,
                          chipdock_error* error) {
    return base().device.info(base_plugin(plugin), index, out, error);
  };
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    return base().device.open(base_plugin(plugin), desc, out, error);
  };
}

/// Starts an instance of the base for a moment: its tables have to be there before the first host's
/// query, which may be one that has to fail.
void read_tables(State& all) {
  static constexpr chipdock_host kHost = {sizeof(chipdock_host),
                                          CHIPDOCK_ABI_VERSION,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr};
  chipdock_query_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.abi_min = desc.abi_max = CHIPDOCK_ABI_VERSION;
  chipdock_plugin* plugin = nullptr;
  if (all.query(&kHost, &desc, &plugin, nullptr) != CHIPDOCK_OK) {
    all.refusal = "UNAVAILABLE: the base plugin does not start";
    return;
  }
#define FETCH(NAME, name)          \
  fetch(plugin, "chipdock." #name, \
        CHIPDOCK_VERSION(CHIPDOCK_##NAME##_MAJOR, CHIPDOCK_##NAME##_MINOR), all.base.name)
  FETCH(DEVICE, device);
  FETCH(MEMORY, memory);
  FETCH(STREAM, stream);
  FETCH(EVENT, event);
  FETCH(KERNEL, kernel);
  FETCH(GRAPH, graph);
  FETCH(COMPILE, compile);
  FETCH(PROFILER, profiler);
#undef FETCH
  if (plugin->shutdown != nullptr) plugin->shutdown(plugin, nullptr);
}

/// Reads the switch and lays the fault over the base's tables.
void mutate(State& all) {
  all.shown = all.base;
  translate(all.shown);
  const char* wanted = std::getenv("CHIPDOCK_MUTANT");
  bool found = wanted == nullptr || std::strcmp(wanted, "none") == 0;
  each_mutant([&](const Mutant& mutant) {
    if (found || std::strcmp(mutant.name, wanted) != 0) return;
    mutant.apply(all.shown);
    found = true;
  });
  if (!found) all.refusal = std::string("UNAVAILABLE: there is no mutant '") + wanted + "'";
  if (all.shown.plugin.short_header) {
    all.shown.memory.header.struct_size = sizeof(chipdock_table_header);
  }
}

void prepare(State& all) {
  static std::once_flag once;
  std::call_once(once, [&all] {
    open_base(all);
    if (all.refusal.empty()) read_tables(all);
    if (all.refusal.empty()) mutate(all);
  });
}

bool lists_names(const chipdock_host* host) {
  const char* wanted = std::getenv("CHIPDOCK_MUTANT");
  if (wanted == nullptr || std::strcmp(wanted, "list") != 0) return false;
  if (CHIPDOCK_HAS_FIELD(chipdock_host, log, host->struct_size) && host->log != nullptr) {
    each_mutant(
        [&](const Mutant& mutant) { host->log(host->context, CHIPDOCK_LOG_INFO, mutant.name); });
  }
  return true;
}

chipdock_status get_table(chipdock_plugin* plugin, const char* table, uint32_t version,
                          const void** out_table, chipdock_error* error) {
  State& all = state();
  const PluginFaults& faults = all.shown.plugin;
  if (plugin == nullptr || table == nullptr || out_table == nullptr) {
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: get_table got NULL");
  }
  const void* theirs = nullptr;
  chipdock_plugin* inner = instance_of(plugin).base;
  const chipdock_status status = inner->get_table(inner, table, version, &theirs, error);
  const bool forgiven = status == CHIPDOCK_VERSION_MISMATCH && faults.any_major;
  if (status != CHIPDOCK_OK && !forgiven) return status;
  struct Known {
    const char* name;
    void* table;
    uint64_t size;
  } const known[] = {{"chipdock.device", &all.shown.device, sizeof(all.shown.device)},
                     {"chipdock.memory", &all.shown.memory, sizeof(all.shown.memory)},
                     {"chipdock.stream", &all.shown.stream, sizeof(all.shown.stream)},
                     {"chipdock.event", &all.shown.event, sizeof(all.shown.event)},
                     {"chipdock.kernel", &all.shown.kernel, sizeof(all.shown.kernel)},
                     {"chipdock.graph", &all.shown.graph, sizeof(all.shown.graph)},
                     {"chipdock.compile", &all.shown.compile, sizeof(all.shown.compile)},
                     {"chipdock.profiler", &all.shown.profiler, sizeof(all.shown.profiler)}};
  for (const Known& one : known) {
    if (std::strcmp(one.name, table) != 0) continue;
    theirs = one.table;
    if (faults.fresh_tables) {
      void* copy = ::operator new(one.size);
      std::memcpy(copy, one.table, one.size);
      theirs = copy;
    }
  }
  *out_table = theirs;
  return CHIPDOCK_OK;
}

chipdock_status shutdown(chipdock_plugin* plugin, chipdock_error* error) {
  if (plugin == nullptr) {
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: shutdown got NULL");
  }
  Instance* instance = &instance_of(plugin);
  const chipdock_status status = instance->base->shutdown(instance->base, error);
  delete instance;
  if (state().shown.plugin.keeps_thread) std::thread([] { pause(); }).detach();
  return status;
}

void show(Instance& instance, const PluginFaults& faults) {
  static std::atomic<uint8_t> queries{0};
  instance.shown = *instance.base;
  instance.shown.struct_size = sizeof(instance.shown);
  instance.shown.id = "chipdock.mutants";
  instance.shown.name = "mutants";
  std::memcpy(instance.shown.uuid, kUuid, sizeof(kUuid));
  if (faults.fresh_uuid) {
    instance.shown.uuid[15] = static_cast<uint8_t>(queries.fetch_add(1) + getpid());
  }
  instance.shown.get_table = get_table;
  if (instance.base->shutdown != nullptr) instance.shown.shutdown = shutdown;
  instance.shown.state = &instance;
}

}  // namespace

const Tables& base() { return state().base; }

chipdock_plugin* base_plugin(chipdock_plugin* plugin) {
  return plugin == nullptr ? nullptr : instance_of(plugin).base;
}

chipdock_status query(const chipdock_host* host, const chipdock_query_desc* desc,
                      chipdock_plugin** out_plugin, chipdock_error* error) {
  State& all = state();
  prepare(all);
  if (!all.refusal.empty()) {
    return chipdock_fail(error, CHIPDOCK_UNAVAILABLE, all.refusal.c_str());
  }
  const PluginFaults& faults = all.shown.plugin;
  if (faults.null_plugin_ok && out_plugin == nullptr) return CHIPDOCK_OK;
  chipdock_query_desc room{};
  if (faults.ignores_versions) {
    desc = edited(desc, room,
                  [](chipdock_query_desc& d) { d.abi_min = d.abi_max = CHIPDOCK_ABI_VERSION; });
  }
  chipdock_plugin* made = nullptr;
  const chipdock_status status =
      all.query(host, desc, out_plugin == nullptr ? nullptr : &made, error);
  if (status != CHIPDOCK_OK) return status;
  if (faults.signal_handler) std::signal(SIGUSR1, SIG_IGN);
  auto* instance = new Instance;
  instance->base = made;
  show(*instance, faults);
  *out_plugin = &instance->shown;
  return CHIPDOCK_OK;
}

}  // namespace chipdock::mutants

extern "C" CHIPDOCK_EXPORT chipdock_status CHIPDOCK_CALL
chipdock_plugin_query(const chipdock_host* host, const chipdock_query_desc* desc,
                      chipdock_plugin** out_plugin, chipdock_error* error) {
  using namespace chipdock::mutants;  // NOLINT(google-build-using-namespace)
  const bool named = host != nullptr && host->struct_size >= offsetof(chipdock_host, log);
  if (named && lists_names(host)) {
    return chipdock_fail(error, CHIPDOCK_UNAVAILABLE, "UNAVAILABLE: the names were logged");
  }
  return query(host, desc, out_plugin, error);
}
