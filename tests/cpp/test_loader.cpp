// SPDX-License-Identifier: Apache-2.0
// The loader against plugins that are old, new, broken or hang. Each failure of ABI.md section 1
// that shows at load has a test here whose name says it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "check.hpp"
#include "fakes.hpp"
#include "host_services.hpp"
#include "loader.hpp"
#include "negotiate.hpp"

using namespace chipdock;
using namespace chipdock::runtime;
using check::failure_of;
using check::fake_path;
using check::load_fake;

namespace {

/// The text with which loading `name` fails.
std::string load_failure(const std::string& name, const Options& options = {}) {
  return failure_of([&] { load_fake(name, "none", options); });
}

constexpr int64_t kShortNs = 100'000'000;

}  // namespace

TEST(nano_loads_with_only_the_seven_required_slots) {
  const auto plugin = load_fake("nano");
  CHECK_EQ(plugin->id(), "chipdock.nano");
  CHECK_EQ(plugin->name(), "nano");
  CHECK_EQ(plugin->device_count(), 1);
  CHECK_EQ(std::string(plugin->device_info(0).product), "Nano");
  CHECK(plugin->tables().memory.fill == nullptr);
  CHECK(plugin->tables().kernel.header.struct_size == 0);
  CHECK(plugin->notes().empty());
  CHECK_EQ(plugin->tables().memory.header.struct_size, sizeof(chipdock_memory_api));
}

TEST(two_loads_of_one_path_are_two_instances) {
  const auto a = load_fake("nano");
  const auto b = load_fake("nano");
  CHECK(a != b);
  a->shutdown();
  CHECK_EQ(b->device_count(), 1);
}

TEST(table_that_lies_about_its_size_is_refused) {
  CHECK_HAS(load_failure("lies_size"), "FAILED_PRECONDITION: plugin chipdock.lies_size (");
  CHECK_HAS(load_failure("lies_size"), "says it is 4294967288 bytes long");
}

TEST(table_that_ends_before_a_required_slot_is_refused_with_the_slot) {
  CHECK_HAS(load_failure("lies_short"), "required slot device.open is NULL");
}

TEST(table_left_zero_is_refused_with_the_plugins_name) {
  CHECK_HAS(load_failure("version_zero"), "chipdock.version_zero");
  CHECK_HAS(load_failure("version_zero"), "fill it with CHIPDOCK_TABLE");
}

TEST(newer_plugin_is_refused_with_both_versions_and_the_fix) {
  const std::string text = load_failure("too_new");
  CHECK_HAS(text, "VERSION_MISMATCH: plugin ");
  CHECK_HAS(text, "speaks ABI 2.3, this host speaks 1.0 to 1.0; update chipdock");
}

TEST(older_plugin_is_refused_with_both_versions_and_the_fix) {
  CHECK_HAS(load_failure("too_old"),
            "speaks ABI 0.9, this host speaks 1.0 to 1.0; update the plugin");
}

TEST(broken_slot_rule_is_named) {
  const std::string text = load_failure("half_stream");
  CHECK_HAS(text, "stream.create is there but stream.sync is NULL");
  CHECK_HAS(text, "[STR-8]");
}

TEST(broken_heap_rule_is_named_at_info) {
  const auto plugin = load_fake("bad_heap");
  CHECK_HAS(failure_of([&] { plugin->device_info(0); }),
            "heap 0 is HOST_VISIBLE but memory.address is NULL");
}

TEST(id_without_vendor_is_refused) {
  CHECK_HAS(load_failure("bad_id"), "has id 'Acme'; an id is vendor.plugin");
}

TEST(library_without_the_symbol_is_no_plugin) {
  CHECK_HAS(load_failure("not_a_plugin"), "exports no chipdock_plugin_query [PLG-1]");
}

TEST(text_of_dlerror_is_kept) {
  CHECK_HAS(load_failure("undefined_symbol"), "undefined symbol: acme_driver_v7");
  CHECK_HAS(load_failure("no_such_file"), "No such file");
}

TEST(exception_out_of_query_is_internal) {
  CHECK_HAS(load_failure("throws", {{"throw", "query"}}), "query let an exception out [BASE-9]");
}

TEST(exception_out_of_count_is_a_state_and_not_a_crash) {
  const LoadReport report = load_and_probe(fake_path("throws"), {"none", {}});
  CHECK(report.state == PluginState::kBroken);
  CHECK_HAS(report.cause, "the vendor's library was moved");
}

TEST(failing_count_is_unavailable_with_its_reason) {
  const LoadReport report = load_and_probe(fake_path("fails_count"), {"none", {}});
  CHECK(report.state == PluginState::kUnavailable);
  CHECK_EQ(
      report.cause,
      "UNAVAILABLE: fake device.count: the driver answered -19, its version is older than 5.2");
}

TEST(vendor_code_comes_through) {
  const auto plugin = load_fake("fails_count");
  try {
    plugin->device_count();
    CHECK(false);
  } catch (const Error& error) {
    CHECK_EQ(error.vendor_code(), -19);
    CHECK_EQ(error.code(), CHIPDOCK_UNAVAILABLE);
  }
}

TEST(hanging_count_times_out_and_leaves_others_alone) {
  const LoadReport report = load_and_probe(fake_path("hangs_count"), {"none", {}}, kShortNs);
  CHECK(report.state == PluginState::kTimeout);
  CHECK_EQ(report.code, CHIPDOCK_TIMEOUT);
  const LoadReport nano = load_and_probe(fake_path("nano"), {"none", {}});
  CHECK(nano.state == PluginState::kReady);
  CHECK_EQ(nano.products.size(), 1u);
}

TEST(hanging_open_is_a_timeout_under_run_limited) {
  const auto plugin = load_fake("hangs_open");
  const std::string text = failure_of([&] {
    run_limited(
        [plugin] {
          chipdock_device_open_desc desc{};
          desc.struct_size = sizeof(desc);
          chipdock_device* device = nullptr;
          ErrorRecord error;
          plugin->tables().device.open(plugin->handle(), &desc, &device, &error);
        },
        kShortNs, "open of fake:0");
  });
  CHECK_HAS(text, "TIMEOUT: open of fake:0 did not return within 0.1 s");
}

TEST(failing_open_passes_the_plugins_text) {
  const auto plugin = load_fake("fails_open");
  chipdock_device_open_desc desc{};
  desc.struct_size = sizeof(desc);
  chipdock_device* device = nullptr;
  ErrorRecord error;
  const auto status = plugin->tables().device.open(plugin->handle(), &desc, &device, &error);
  CHECK_EQ(failure_of([&] { runtime::check(status, error, "fake:0 open"); }),
           "BUSY: fake:0 open: the device is in exclusive mode and in use");
}

TEST(bad_probe_timeout_in_the_environment_is_reported) {
  setenv("CHIPDOCK_PROBE_TIMEOUT", "soon", 1);
  const LoadReport report = load_and_probe(fake_path("nano"), {"none", {}});
  unsetenv("CHIPDOCK_PROBE_TIMEOUT");
  CHECK_HAS(report.cause, "CHIPDOCK_PROBE_TIMEOUT is 'soon'");
}

TEST(first_load_failure_is_kept_verbatim) {
  const std::string text = load_failure("bad_id");
  load_failure("bad_id");
  const auto failures = first_load_failures();
  const auto of_path = [](const auto& entry) { return check::has(entry.first, "bad_id"); };
  CHECK_EQ(std::count_if(failures.begin(), failures.end(), of_path), 1);
  CHECK_EQ(std::find_if(failures.begin(), failures.end(), of_path)->second, text);
}

TEST(many_threads_load_at_once) {
  std::vector<std::future<std::string>> futures;
  for (int i = 0; i < 8; ++i) {
    futures.push_back(std::async(std::launch::async, [i] {
      return i % 2 == 0 ? load_fake("nano")->id() : load_fake("small_heap")->id();
    }));
  }
  for (int i = 0; i < 8; ++i) {
    CHECK_EQ(futures[i].get(), i % 2 == 0 ? "chipdock.nano" : "chipdock.small_heap");
  }
}

TEST(unknown_status_is_internal) {
  ErrorRecord error;
  CHECK_HAS(
      failure_of([&] { runtime::check(77, error, "acme:0 memory.alloc"); }),
      "INTERNAL: acme:0 memory.alloc returned status 77, which this host does not know [BASE-7]");
}

TEST(failure_without_text_still_names_the_call) {
  ErrorRecord error;
  CHECK_EQ(failure_of([&] { runtime::check(CHIPDOCK_BUSY, error, "acme:0 open"); }),
           "BUSY: acme:0 open: failed and gave no reason");
}

namespace {

// A plugin made here, to try table versions that no shared library of the tests has.
struct Made {
  chipdock_plugin plugin{};
  chipdock_device_api device{};
  chipdock_graph_api graph{};
};

chipdock_status made_table(chipdock_plugin* plugin, const char* table, uint32_t, const void** out,
                           chipdock_error* error) {
  auto* made = static_cast<Made*>(plugin->state);
  if (std::string(table) == "chipdock.device") return *out = &made->device, CHIPDOCK_OK;
  if (std::string(table) == "chipdock.graph") return *out = &made->graph, CHIPDOCK_OK;
  if (std::string(table) == "chipdock.memory" && made->plugin.version != nullptr)
    return CHIPDOCK_OK;
  return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED");
}

Made make() {
  Made made;
  made.plugin.get_table = made_table;
  made.device.header = {sizeof(chipdock_device_api), 1, 0};
  made.graph.header = {sizeof(chipdock_graph_api), CHIPDOCK_GRAPH_MAJOR, CHIPDOCK_GRAPH_MINOR};
  return made;
}

std::string read_failure(Made& made, std::vector<std::string>& notes) {
  made.plugin.state = &made;
  return failure_of([&] { read_tables(&made.plugin, "acme.made", notes); });
}

}  // namespace

TEST(stable_table_of_another_major_is_an_error) {
  Made made = make();
  made.device.header.major = 2;
  std::vector<std::string> notes;
  CHECK_HAS(read_failure(made, notes),
            "VERSION_MISMATCH: plugin acme.made: table chipdock.device has "
            "version 2.0, this host speaks 1.0");
}

TEST(unstable_table_of_another_major_is_absent_with_a_note) {
  Made made = make();
  made.graph.header.major = 7;
  std::vector<std::string> notes;
  CHECK_EQ(read_failure(made, notes), "");
  CHECK_EQ(notes.size(), 1u);
  CHECK_HAS(notes.at(0), "chipdock.graph has version 7.1");
}

TEST(newer_minor_with_a_longer_table_is_accepted) {
  struct {
    chipdock_device_api device;
    void* slot_of_the_future;
  } longer{};
  Made made = make();
  made.plugin.state = &made;
  made.plugin.get_table = [](chipdock_plugin* plugin, const char* table, uint32_t, const void** out,
                             chipdock_error* error) -> chipdock_status {
    if (std::string(table) != "chipdock.device")
      return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "");
    return *out = plugin->state, CHIPDOCK_OK;
  };
  longer.device.header = {sizeof(longer), 1, 4};
  longer.slot_of_the_future = &longer;
  made.plugin.state = &longer;
  std::vector<std::string> notes;
  const Tables tables = read_tables(&made.plugin, "acme.made", notes);
  CHECK_EQ(tables.device.header.minor, 4);
  CHECK_EQ(tables.device.header.struct_size, sizeof(chipdock_device_api));
}

TEST(null_table_with_ok_is_internal_and_names_the_slot) {
  Made made = make();
  made.plugin.version = "asks for it";
  std::vector<std::string> notes;
  CHECK_HAS(
      read_failure(made, notes),
      "INTERNAL: plugin acme.made: table chipdock.memory: get_table returned OK and a NULL table");
}

TEST(host_memory_is_counted_and_limited) {
  HostServices services;
  const chipdock_host& host = services.host();
  services.set_memory_limit(1000);
  void* first = host.allocate(host.context, 600, 64);
  CHECK(first != nullptr && reinterpret_cast<uintptr_t>(first) % 64 == 0);
  CHECK(host.allocate(host.context, 600, 64) == nullptr);
  CHECK(host.allocate(host.context, 0, 64) == nullptr);
  CHECK(host.allocate(host.context, 8, 3) == nullptr);
  CHECK_EQ(services.memory_stats().used_bytes, 600u);
  CHECK_EQ(services.memory_stats().refused_count, 3u);
  host.release(host.context, first, 600);
  host.release(host.context, nullptr, 1);
  CHECK_EQ(services.memory_stats().used_bytes, 0u);
  CHECK_EQ(services.memory_stats().peak_bytes, 600u);
  CHECK_EQ(services.memory_stats().live_count, 0u);
}

TEST(log_drops_lines_under_its_level) {
  static std::vector<std::string> lines;
  lines.clear();
  set_log_sink([](void*, int32_t, const char* plugin,
                  const char* text) { lines.push_back(std::string(plugin) + ": " + text); },
               nullptr);
  HostServices services;
  services.set_name("acme.npu");
  const chipdock_host& host = services.host();
  host.log(host.context, CHIPDOCK_LOG_INFO, "dropped");
  host.log(host.context, CHIPDOCK_LOG_ERROR, "kept");
  host.log(host.context, 99, "bad severity is an error");
  set_log_sink(nullptr, nullptr);
  CHECK_EQ(lines.size(), 2u);
  CHECK_EQ(lines.at(0), "acme.npu: kept");
}

TEST(trace_marks_reach_the_sink) {
  static std::vector<std::string> marks;
  marks.clear();
  set_trace_sink([](void*, const TraceMark& mark) { marks.emplace_back(mark.name); }, nullptr);
  HostServices services;
  services.host().trace(services.host().context, CHIPDOCK_TRACE_INSTANT, "queue full", 3);
  set_trace_sink(nullptr, nullptr);
  services.host().trace(services.host().context, CHIPDOCK_TRACE_INSTANT, "not seen", 3);
  CHECK_EQ(marks.size(), 1u);
  CHECK_EQ(marks.at(0), "queue full");
}

TEST(report_of_process_scope_makes_the_plugin_unusable_with_the_first_cause) {
  const auto plugin = load_fake("nano");
  static int seen = 0;
  seen = 0;
  plugin->set_report_sink(
      [](void*, chipdock_device*, chipdock_stream*, const chipdock_error&) { ++seen; }, nullptr);
  const chipdock_host& host = plugin->services().host();
  ErrorRecord error;
  error.scope = CHIPDOCK_SCOPE_PROCESS;
  chipdock_fail(&error, CHIPDOCK_DEVICE_LOST, "DEVICE_LOST: the driver was unloaded");
  error.scope = CHIPDOCK_SCOPE_PROCESS;
  host.report(host.context, nullptr, nullptr, &error);
  chipdock_fail(&error, CHIPDOCK_INTERNAL, "INTERNAL: later");
  error.scope = CHIPDOCK_SCOPE_PROCESS;
  host.report(host.context, nullptr, nullptr, &error);
  CHECK_EQ(seen, 2);
  CHECK_HAS(failure_of([&] { plugin->check_usable(); }), "DEVICE_LOST: the driver was unloaded");
}

TEST(plugin_is_refused_as_forked_in_a_child) {
  const auto plugin = load_fake("nano");
  const pid_t child = fork();
  if (child == 0) {
    const bool usable = failure_of([&] { plugin->device_count(); }).empty();
    const bool loadable = failure_of([&] { load_fake("nano"); }).empty();
    const bool named =
        check::has(failure_of([&] { plugin->check_usable(); }), "FORKED: plugin nano");
    plugin->shutdown();  // Must not call the plugin.
    _exit(!usable && !loadable && named ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(plugin->device_count(), 1);
}

// Last: nothing can be used after it.
TEST(zz_shutdown_of_all_is_ordered_idempotent_and_final) {
  const auto first = load_fake("nano");
  const auto second = load_fake("small_heap");
  const auto all = loaded_plugins();
  CHECK(all.at(0) == second && all.at(1) == first);
  shutdown_all_plugins();
  shutdown_all_plugins();
  CHECK_HAS(failure_of([&] { first->device_count(); }), "SHUTDOWN: plugin nano was shut down");
}
