// SPDX-License-Identifier: Apache-2.0
// Frozen plugin binaries of other times through today's loader: older and newer minors run, another
// major is refused by name. The same binaries below the runtime: tests/abi/test_frozen.py.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "fakes.hpp"
#include "loader.hpp"

namespace {

using chipdock::runtime::Error;
using chipdock::runtime::ErrorRecord;
using chipdock::runtime::load_and_probe;
using chipdock::runtime::LoadReport;
using chipdock::runtime::Plugin;
using chipdock::runtime::PluginState;

#if defined(__linux__) && defined(__x86_64__)

std::string frozen(const std::string& name) {
  const char* folder = std::getenv("CHIPDOCK_TEST_FROZEN");
  if (folder == nullptr) throw std::runtime_error("CHIPDOCK_TEST_FROZEN is not set, run ctest");
  return (std::filesystem::path(folder) / (name + ".so")).string();
}

/// Writes bytes to a device and reads them back through a plugin's tables, as the runtime does.
void round_trip(Plugin& plugin) {
  const auto& tables = plugin.tables();
  ErrorRecord error;
  chipdock_device_open_desc open{};
  open.struct_size = sizeof(open);
  chipdock_device* device = nullptr;
  CHECK_EQ(tables.device.open(plugin.handle(), &open, &device, &error), CHIPDOCK_OK);

  chipdock_alloc_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.size = 256;
  desc.correlation_id = 7;
  chipdock_memory* memory = nullptr;
  CHECK_EQ(tables.memory.alloc(device, &desc, &memory, &error), CHIPDOCK_OK);

  std::vector<uint8_t> sent(256), back(256);
  std::iota(sent.begin(), sent.end(), uint8_t{0});
  chipdock_place inside{}, outside{};
  inside.struct_size = outside.struct_size = sizeof(chipdock_place);
  inside.memory = memory;
  outside.host = sent.data();
  chipdock_copy_desc copy{};
  copy.struct_size = sizeof(copy);
  copy.source = &outside;
  copy.target = &inside;
  copy.size = sent.size();
  copy.correlation_id = 8;
  CHECK_EQ(tables.memory.copy(device, &copy, &error), CHIPDOCK_OK);
  outside.host = back.data();
  std::swap(copy.source, copy.target);
  CHECK_EQ(tables.memory.copy(device, &copy, &error), CHIPDOCK_OK);
  CHECK(sent == back);

  CHECK_EQ(tables.memory.free(device, memory, &error), CHIPDOCK_OK);
  CHECK_EQ(tables.device.close(device, &error), CHIPDOCK_OK);
}

void runs(const std::string& name, uint32_t version) {
  for (const char* layers : {"none", "validate"}) {
    auto plugin = Plugin::load(frozen(name), {layers, {}});
    CHECK_EQ(plugin->id(), "test.frozen");
    CHECK_EQ(plugin->abi_version(), version);
    CHECK_EQ(plugin->device_count(), 1);
    const chipdock_device_info info = plugin->device_info(0);
    CHECK_EQ(info.heap_count, 1u);
    CHECK_EQ(info.heaps[0]->bytes, uint64_t{1} << 28);
    CHECK_EQ(info.peak_count, 0u);
    CHECK(plugin->tables().memory.fill == nullptr);
    CHECK(plugin->tables().device.sync == nullptr);
    CHECK(plugin->tables().stream.create == nullptr);
    round_trip(*plugin);
    plugin->shutdown();
  }
}

TEST(old_plugin_with_shorter_tables_and_structs_runs) { runs("old", CHIPDOCK_VERSION(1, 0)); }

TEST(new_plugin_with_longer_tables_and_structs_runs) { runs("new_zero", CHIPDOCK_VERSION(1, 7)); }

TEST(new_plugin_that_lists_data_behind_todays_fields_runs) {
  runs("new_data", CHIPDOCK_VERSION(1, 7));
}

TEST(other_major_is_broken_and_names_both_versions) {
  const LoadReport report = load_and_probe(frozen("major2"), {"none", {}});
  CHECK(report.state == PluginState::kBroken);
  CHECK_EQ(report.code, CHIPDOCK_VERSION_MISMATCH);
  CHECK(report.cause.find("2.7") != std::string::npos);
  CHECK(report.cause.find("1.0") != std::string::npos);
  CHECK(report.cause.find("update chipdock") != std::string::npos);
}

TEST(refused_plugin_leaves_the_others_working) {
  CHECK_THROWS(Plugin::load(frozen("major2"), {"none", {}}), Error);
  auto plugin = Plugin::load(frozen("old"), {"none", {}});
  round_trip(*plugin);
  plugin->shutdown();
}

TEST(old_and_new_work_side_by_side) {
  auto first = Plugin::load(frozen("old"), {"none", {}});
  auto second = Plugin::load(frozen("new_zero"), {"none", {}});
  first->shutdown();
  round_trip(*second);
  second->shutdown();
}

#else

TEST(frozen_binaries_are_for_linux_on_x86_64) { CHECK(true); }

#endif

TEST(unstable_table_of_another_minor_is_not_used_and_noted) {
  auto plugin = chipdock::check::load_fake("later");
  CHECK_EQ(plugin->tables().graph.header.struct_size, 0u);
  CHECK(plugin->tables().compile.header.struct_size != 0);
  CHECK_EQ(plugin->notes().size(), size_t{1});
  CHECK_HAS(plugin->notes().at(0), "table chipdock.graph has version 0." +
                                       std::to_string(CHIPDOCK_GRAPH_MINOR + 1) +
                                       ", this host speaks 0." +
                                       std::to_string(CHIPDOCK_GRAPH_MINOR) + "; it is not used");
}

}  // namespace
