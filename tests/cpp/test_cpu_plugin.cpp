// SPDX-License-Identifier: Apache-2.0
// The CPU plugin's entry, its device table, and its settings, over the raw tables.
#include <dirent.h>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

/// Sets a variable for the life of the object.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    setenv(name, value, 1);
  }
  ~Environment() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

int thread_count() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

std::string query_key(Device& cpu, const char* key) {
  uint64_t size = 0;
  CHECK_EQ(cpu.device->query(cpu.handle, key, nullptr, 0, &size, &cpu.error), CHIPDOCK_OK);
  std::string value(size, ' ');
  CHECK_EQ(cpu.device->query(cpu.handle, key, value.data(), size, &size, &cpu.error), CHIPDOCK_OK);
  value.pop_back();
  return value;
}

TEST(identity_is_the_same_in_every_instance) {
  Cpu first;
  Cpu second;
  CHECK_EQ(std::string(first.plugin->id), "chipdock.cpu");
  CHECK_EQ(std::string(first.plugin->name), "cpu");
  CHECK(std::memcmp(first.plugin->uuid, second.plugin->uuid, 16) == 0);
  CHECK(first.plugin != second.plugin);
}

TEST(loading_query_and_open_start_no_thread) {
  const int before = thread_count();
  Device cpu(Options{{"threads", "4"}});
  CHECK_EQ(cpu.open_status, CHIPDOCK_OK);
  CHECK_EQ(thread_count(), before);
}

TEST(unknown_table_and_version_are_refused) {
  Cpu cpu;
  const void* table = nullptr;
  CHECK_EQ(
      cpu.plugin->get_table(cpu.plugin, "chipdock.ccl", CHIPDOCK_VERSION(0, 1), &table, &cpu.error),
      CHIPDOCK_UNSUPPORTED);
  CHECK_EQ(cpu.plugin->get_table(cpu.plugin, "chipdock.device", CHIPDOCK_VERSION(2, 0), &table,
                                 &cpu.error),
           CHIPDOCK_VERSION_MISMATCH);
  CHECK(table == nullptr);
}

TEST(query_names_an_unknown_option) {
  Cpu cpu(Options{{"colour", "red"}});
  CHECK_EQ(cpu.status, CHIPDOCK_INVALID_ARGUMENT);
  CHECK(cpu.text_has("colour"));
  CHECK(cpu.plugin == nullptr);
}

TEST(a_host_of_another_major_is_a_version_mismatch) {
  Cpu cpu;
  auto desc = sized<chipdock_query_desc>();
  desc.abi_min = desc.abi_max = CHIPDOCK_VERSION(2, 0);
  chipdock_plugin* plugin = nullptr;
  CHECK_EQ(Cpu::entry()(&cpu.host, &desc, &plugin, &cpu.error), CHIPDOCK_VERSION_MISMATCH);
  CHECK(plugin == nullptr);
}

TEST(unknown_isa_is_invalid_and_a_missing_one_is_not_silently_lowered) {
  const Environment isa("CHIPDOCK_CPU_ISA", "sse9");
  Cpu cpu;
  CHECK_EQ(cpu.status, CHIPDOCK_INVALID_ARGUMENT);
  CHECK(cpu.text_has("sse9") && cpu.text_has("baseline"));
}

TEST(isa_cap_is_in_force_and_one_level_serves_all_open_devices) {
  Device cpu(Options{{"isa", "baseline"}});
  CHECK_EQ(cpu.open_status, CHIPDOCK_OK);
  CHECK_EQ(query_key(cpu, "isa"), "baseline");
  Cpu probe;
  if (!__builtin_cpu_supports("avx2")) return;  // Then there is one level only.
  chipdock_device* second = nullptr;
  CHECK_EQ(cpu.open(0, {{"isa", "avx2"}}, &second), CHIPDOCK_FAILED_PRECONDITION);
  CHECK(second == nullptr);
  cpu.close();
  CHECK_EQ(cpu.open(0, {{"isa", "avx2"}}, &second), CHIPDOCK_OK);
  CHECK_EQ(cpu.device->close(second, &cpu.error), CHIPDOCK_OK);
}

TEST(info_describes_machine_and_heap) {
  Device cpu;
  auto info = sized<chipdock_device_info>();
  CHECK_EQ(cpu.device->info(cpu.plugin, 0, &info, &cpu.error), CHIPDOCK_OK);
  CHECK(std::strlen(info.product) > 0 && std::strlen(info.architecture) > 0);
  CHECK((info.flags & CHIPDOCK_DEVICE_PREFERS_INLINE) != 0);
  CHECK(info.units >= 1);
  CHECK_EQ(info.heap_count, 1u);
  CHECK(info.heaps[0]->bytes > 0 && info.heaps[0]->alignment >= 64);
  CHECK((info.heaps[0]->flags & CHIPDOCK_HEAP_HOST_VISIBLE) != 0);
  CHECK_EQ(cpu.device->info(cpu.plugin, 1, &info, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
}

TEST(info_writes_no_more_than_it_was_given) {
  Cpu cpu;
  chipdock_device_info info;
  std::memset(&info, 0x5a, sizeof(info));
  info.struct_size = offsetof(chipdock_device_info, uuid);
  CHECK_EQ(cpu.device->info(cpu.plugin, 0, &info, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(info.struct_size, offsetof(chipdock_device_info, uuid));
  CHECK_EQ(int{info.uuid[0]}, 0x5a);
}

TEST(virtual_devices_have_uuids_of_their_own) {
  Device cpu({}, Options{{"devices", "4"}});
  int32_t count = 0;
  CHECK_EQ(cpu.device->count(cpu.plugin, &count, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(count, 4);
  auto first = sized<chipdock_device_info>();
  auto last = sized<chipdock_device_info>();
  CHECK_EQ(cpu.device->info(cpu.plugin, 0, &first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.device->info(cpu.plugin, 3, &last, &cpu.error), CHIPDOCK_OK);
  CHECK(std::memcmp(first.uuid, last.uuid, 16) != 0);
}

TEST(virtual_devices_are_peers) {
  Device cpu({}, Options{{"devices", "2"}});
  chipdock_device* peer = nullptr;
  CHECK_EQ(cpu.open(1, {}, &peer), CHIPDOCK_OK);
  auto link = sized<chipdock_link_info>();
  CHECK_EQ(cpu.device->link(cpu.handle, peer, &link, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(link.type, int32_t{CHIPDOCK_LINK_HOST});
  CHECK_EQ(cpu.device->peer_access(cpu.handle, peer, 1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.device->peer_access(cpu.handle, cpu.handle, 1, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  Device other;
  CHECK_EQ(cpu.device->peer_access(cpu.handle, other.handle, 1, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.device->close(peer, &cpu.error), CHIPDOCK_OK);
}

TEST(open_checks_options_and_index) {
  Device cpu;
  chipdock_device* out = nullptr;
  CHECK_EQ(cpu.open(0, {{"threads", "0"}}, &out), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.open(0, {{"memory", "lots"}}, &out), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.open(0, {{"devices", "2"}}, &out), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.open(0, {{"strict", "1"}}, &out), CHIPDOCK_FAILED_PRECONDITION);
  CHECK_EQ(cpu.open(-1, {}, &out), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.open(1, {}, &out), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(out == nullptr);
}

TEST(query_lists_its_keys_and_refuses_others) {
  Device cpu(Options{{"threads", "3"}, {"memory", "64MiB"}});
  CHECK(query_key(cpu, "keys").find("threads") != std::string::npos);
  CHECK_EQ(query_key(cpu, "threads"), "3");
  CHECK_EQ(query_key(cpu, "memory"), std::to_string(64 << 20));
  uint64_t size = 0;
  char small[1];
  CHECK_EQ(cpu.device->query(cpu.handle, "threads", small, 1, &size, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(size, 2u);
  CHECK_EQ(cpu.device->query(cpu.handle, "weather", nullptr, 0, &size, &cpu.error),
           CHIPDOCK_UNSUPPORTED);
}

TEST(stats_count_allocations_and_copies) {
  Device cpu;
  chipdock_memory* block = cpu.upload(std::vector<float>(100, 1.0f));
  auto stats = sized<chipdock_device_stats>();
  CHECK_EQ(cpu.device->stats(cpu.handle, &stats, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(stats.allocated_bytes, 400u);
  CHECK_EQ(stats.allocation_count, 1u);
  CHECK_EQ(stats.copy_bytes, 400u);
  cpu.free(block);
  CHECK_EQ(cpu.device->stats(cpu.handle, &stats, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(stats.allocated_bytes, 0u);
  CHECK_EQ(stats.peak_bytes, 400u);
  auto health = sized<chipdock_health>();
  CHECK_EQ(cpu.device->health(cpu.handle, &health, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(health.state, int32_t{CHIPDOCK_HEALTH_GOOD});
}

TEST(close_frees_what_was_left_and_says_so) {
  Device cpu;
  cpu.alloc(64);
  cpu.make_stream();
  CHECK_EQ(cpu.device->close(std::exchange(cpu.handle, nullptr), &cpu.error), CHIPDOCK_INTERNAL);
  CHECK(cpu.text_has("1 allocations, 1 streams"));
}

TEST(a_larger_desc_is_taken_if_its_tail_is_zero) {
  Device cpu;
  struct {
    chipdock_alloc_desc desc;
    uint64_t tail;
  } larger{};
  larger.desc.struct_size = sizeof(larger);
  larger.desc.size = 64;
  chipdock_memory* block = nullptr;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &larger.desc, &block, &cpu.error), CHIPDOCK_OK);
  cpu.free(std::exchange(block, nullptr));
  larger.tail = 1;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &larger.desc, &block, &cpu.error), CHIPDOCK_UNSUPPORTED);
  larger.desc.struct_size = 0;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &larger.desc, &block, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK(block == nullptr);
}

}  // namespace
