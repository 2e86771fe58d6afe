// SPDX-License-Identifier: Apache-2.0
// Faults of the instance itself, and what a plugin may never do to its process: change its state,
// end it, hang it, or leak into it.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

template <bool PluginFaults::* kFault>
void plugin_fault(Tables& tables) {
  tables.plugin.*kFault = true;
}

/// Before every launch, copy or opening something happens.
template <void (*kDo)()>
void on_launch(Tables& tables) {
  if (base().kernel.launch == nullptr) return;
  tables.kernel.launch = [](chipdock_kernel_instance* instance, const chipdock_launch_desc* desc,
                            chipdock_error* error) {
    kDo();
    return base().kernel.launch(instance, desc, error);
  };
}
template <void (*kDo)()>
void on_copy(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* desc,
                          chipdock_error* error) {
    kDo();
    return base().memory.copy(device, desc, error);
  };
}
template <void (*kDo)()>
void on_open(Tables& tables) {
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    const chipdock_status status = base().device.open(base_plugin(plugin), desc, out, error);
    if (status == CHIPDOCK_OK) kDo();
    return status;
  };
}

void set_rounding() { std::fesetround(FE_UPWARD); }
void set_environment() { setenv("CHIPDOCK_MUTATED", "1", 1); }
void pin_caller() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &set);
  sched_setaffinity(0, sizeof(set), &set);
}
void leak_descriptor() {
  if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) std::abort();
}
void leak_thread() {
  std::thread([] { pause(); }).detach();
}
void leak_bytes() {
  constexpr size_t kBytes = 32 << 10;
  auto* lost = static_cast<volatile char*>(std::malloc(kBytes));
  for (size_t i = 0; lost != nullptr && i < kBytes; i += 512) lost[i] = 1;
}

void segfault_on_100th() {
  static Countdown calls(100);
  static int* volatile nowhere = nullptr;
  if (calls.due()) *nowhere = 0;
}
void hang_on_40th() {
  static Countdown calls(40);
  while (calls.due()) pause();
}

/// A status that says the caller was wrong becomes an exception.
void throws(Tables& tables) {
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* desc,
                          chipdock_error* error) {
    const chipdock_status status = base().memory.copy(device, desc, error);
    if (status == CHIPDOCK_INVALID_ARGUMENT) throw std::runtime_error("no such place");
    return status;
  };
}

void abort_in_destroy(Tables& tables) {
  if (base().event.destroy == nullptr) return;
  tables.event.destroy = [](chipdock_event* event, chipdock_error* error) {
    static Countdown calls(10);
    if (calls.due()) std::abort();
    return base().event.destroy(event, error);
  };
}

void exit_in_free(Tables& tables) {
  tables.memory.free = [](chipdock_device* device, chipdock_memory* memory, chipdock_error* error) {
    static Countdown calls(20);
    if (calls.due()) _exit(0);
    return base().memory.free(device, memory, error);
  };
}

void hang_in_sync(Tables& tables) {
  if (base().stream.sync == nullptr) return;
  tables.stream.sync = [](chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
    static Countdown calls(5);
    while (calls.due()) pause();
    return base().stream.sync(stream, timeout_ns, error);
  };
}

constexpr Mutant kMutants[] = {
    {"query_any_version", &plugin_fault<&PluginFaults::ignores_versions>},
    {"query_null_taken", &plugin_fault<&PluginFaults::null_plugin_ok>},
    {"query_new_uuid", &plugin_fault<&PluginFaults::fresh_uuid>},
    {"table_moves", &plugin_fault<&PluginFaults::fresh_tables>},
    {"table_any_major", &plugin_fault<&PluginFaults::any_major>},
    {"table_short_header", &plugin_fault<&PluginFaults::short_header>},
    {"shutdown_leaves_thread", &plugin_fault<&PluginFaults::keeps_thread>},
    {"changes_signal_action", &plugin_fault<&PluginFaults::signal_handler>},
    {"changes_rounding_mode", &on_launch<&set_rounding>},
    {"changes_environment", &on_open<&set_environment>},
    {"changes_affinity", &on_open<&pin_caller>},
    {"leaks_descriptor", &on_open<&leak_descriptor>},
    {"leaks_thread", &on_open<&leak_thread>},
    {"leaks_host_bytes", &on_launch<&leak_bytes>},
    {"segfault_in_copy", &on_copy<&segfault_on_100th>},
    {"hang_in_launch", &on_launch<&hang_on_40th>},
    {"hang_in_sync", &hang_in_sync},
    {"throws", &throws},
    {"abort_in_destroy", &abort_in_destroy},
    {"exit_in_free", &exit_in_free},
};

}  // namespace

MutantSpan process_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
