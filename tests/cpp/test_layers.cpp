// SPDX-License-Identifier: Apache-2.0
// The layer spec, the trampolines, and the layers trace, fault, latency and mask. Validate:
// test_validate.cpp.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "check.hpp"
#include "fakes.hpp"
#include "host_services.hpp"
#include "pretend.hpp"

using namespace chipdock;
using namespace chipdock::runtime;
using check::failure_of;
using check::load_fake;
using check::pretend_tables;

namespace {

std::string spec_failure(const std::string& spec) {
  return failure_of([&] {
    Tables tables = pretend_tables();
    apply_layers(tables, spec, {"acme", nullptr});
  });
}

/// One pretended plugin with layers on it.
struct Layered {
  explicit Layered(const std::string& spec)
      : tables(pretend_tables()), stack(apply_layers(tables, spec, {"acme", &services})) {}
  ~Layered() {
    if (stack != nullptr) stack->finish();
  }
  HostServices services;
  Tables tables;
  std::unique_ptr<LayerStack> stack;
};

auto* const kDevice = reinterpret_cast<chipdock_device*>(64);
auto* const kMemory = reinterpret_cast<chipdock_memory*>(128);

chipdock_status alloc(const Tables& tables, ErrorRecord& error) {
  chipdock_alloc_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.size = 64;
  chipdock_memory* memory = nullptr;
  return tables.memory.alloc(kDevice, &desc, &memory, &error);
}

std::string slots_of(const Tables& tables) {
  std::string text;
  for (size_t i = 0; i < kSlotCount; ++i)
    text += has_slot(tables, static_cast<SlotId>(i)) ? '1' : '0';
  return text;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST(spec_errors_say_what_is_there) {
  CHECK_HAS(spec_failure("valdate"),
            "unknown layer 'valdate' (did you mean 'validate'?); layers are "
            "validate, trace, record, fault, latency, mask, none");
  CHECK_HAS(spec_failure("fault=memory.aloc:3"), "(did you mean 'memory.alloc'?)");
  CHECK_HAS(spec_failure("fault=memory.alloc"), "is not SLOT:N or SLOT:N:CODE");
  CHECK_HAS(spec_failure("fault=memory.alloc:0"), "has '0' where a whole number");
  CHECK_HAS(spec_failure("fault=memory.alloc:3:DEVICE_LOSS"), "(did you mean 'DEVICE_LOST'?)");
  CHECK_HAS(spec_failure("latency=5"), "has '5' where a time belongs");
  CHECK_HAS(spec_failure("latency=99s"), "at most 60s");
  CHECK_HAS(spec_failure("validate,validate"), "has 'validate' twice");
  CHECK_HAS(spec_failure("validate=1"), "takes no value");
  CHECK_HAS(spec_failure("mask"), "lacks its value");
  CHECK_HAS(spec_failure("mask=memory.copy"), "takes memory.copy away, which is required");
  CHECK_HAS(spec_failure("mask=seed:x"), "has 'x' where a whole number");
  CHECK_HAS(spec_failure("none,validate"), "beside other layers");
  CHECK_HAS(spec_failure("validate,"), "unknown layer ''");
  CHECK_HAS(spec_failure("trace=/no/such/folder/t.json"), "cannot write '/no/such/folder/t.json'");
}

TEST(environment_gives_the_spec_and_none_overrules_it) {
  setenv("CHIPDOCK_LAYERS", "trace", 1);
  const Layered from_environment("");
  const Layered none("none");
  unsetenv("CHIPDOCK_LAYERS");
  CHECK(from_environment.stack != nullptr);
  CHECK(none.stack == nullptr);
}

TEST(trampolines_reach_every_slot_and_leave_absent_ones_null) {
  Tables tables = pretend_tables();
  tables.device.health = nullptr;
  const std::string before = slots_of(tables);
  const auto stack = apply_layers(tables, "trace", {"acme", nullptr});
  CHECK_EQ(slots_of(tables), before);
  CHECK(tables.device.count != check::pretend_count);
  const uint64_t calls = check::g_calls;
  int32_t count = 0;
  CHECK_EQ(tables.device.count(check::pretend_plugin(), &count, nullptr), CHIPDOCK_OK);
  CHECK_EQ(count, 2);
  CHECK_EQ(check::g_calls, calls + 1);
  stack->finish();
  ErrorRecord error;
  CHECK_EQ(tables.device.count(check::pretend_plugin(), &count, &error), CHIPDOCK_SHUTDOWN);
  CHECK_HAS(error.text, "SHUTDOWN");
}

TEST(attachments_run_out_with_a_clear_error_and_come_back) {
  std::vector<std::unique_ptr<Layered>> layered;
  for (size_t i = 0; i < LayerStack::kAttachments; ++i) {
    layered.push_back(std::make_unique<Layered>("trace"));
  }
  CHECK_HAS(spec_failure("trace"), "at most 16 loaded plugins can have layers at one time");
  std::set<void (*)()> distinct;
  for (const auto& one : layered) {
    distinct.insert(reinterpret_cast<void (*)()>(one->tables.memory.copy));
  }
  CHECK_EQ(distinct.size(), LayerStack::kAttachments);
  layered.pop_back();
  CHECK_EQ(Layered("trace").stack == nullptr, false);
}

TEST(attachments_do_not_mix) {
  Layered failing("fault=memory.alloc:1");
  Layered good("fault=memory.alloc:2");
  ErrorRecord error;
  CHECK_EQ(alloc(good.tables, error), CHIPDOCK_OK);
  CHECK_EQ(alloc(failing.tables, error), CHIPDOCK_OUT_OF_MEMORY);
}

TEST(fault_fails_the_nth_call_only) {
  Layered layered("fault=memory.alloc:3");
  std::vector<chipdock_status> got;
  for (int i = 0; i < 5; ++i) {
    ErrorRecord error;
    got.push_back(alloc(layered.tables, error));
    if (i == 2) CHECK_HAS(error.text, "OUT_OF_MEMORY: memory.alloc failed on purpose: call 3");
  }
  CHECK((got == std::vector<chipdock_status>{0, 0, CHIPDOCK_OUT_OF_MEMORY, 0, 0}));
}

TEST(fault_code_and_wildcard) {
  Layered layered("fault=*:2:DEVICE_LOST");
  ErrorRecord error;
  CHECK_EQ(alloc(layered.tables, error), CHIPDOCK_OK);
  CHECK_EQ(layered.tables.memory.trim(kDevice, &error), CHIPDOCK_DEVICE_LOST);
  CHECK_EQ(error.scope, CHIPDOCK_SCOPE_DEVICE);
  CHECK_EQ(alloc(layered.tables, error), CHIPDOCK_OK);
}

TEST(fault_in_a_call_that_ends_a_handle_still_ends_it) {
  Layered layered("fault=memory.free:1");
  const uint64_t calls = check::g_calls;
  ErrorRecord error;
  CHECK_EQ(layered.tables.memory.free(kDevice, kMemory, &error), CHIPDOCK_INTERNAL);
  CHECK_EQ(check::g_calls, calls + 1);
}

TEST(fault_fails_the_nth_host_allocation) {
  const Layered layered("fault=host.allocate:2");
  const chipdock_host& host = layered.services.host();
  void* first = host.allocate(host.context, 8, 8);
  void* second = host.allocate(host.context, 8, 8);
  void* third = host.allocate(host.context, 8, 8);
  CHECK(first != nullptr && second == nullptr && third != nullptr);
  host.release(host.context, first, 8);
  host.release(host.context, third, 8);
}

TEST(latency_delays_its_slot) {
  Layered layered("latency=memory.trim:2ms");
  ErrorRecord error;
  const auto start = std::chrono::steady_clock::now();
  layered.tables.memory.trim(kDevice, &error);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(2));
}

TEST(trace_keeps_the_last_calls_of_each_thread) {
  const auto plugin = load_fake("nano", "trace");
  plugin->device_count();
  std::thread([&] { plugin->device_info(0); }).join();
  const auto calls = last_calls(*plugin);
  CHECK_EQ(calls.size(), 2u);
  CHECK_EQ(std::string(slot_info(calls.at(0).slot).name), "device.count");
  CHECK_EQ(std::string(slot_info(calls.at(1).slot).name), "device.info");
  CHECK(calls.at(0).thread != calls.at(1).thread);
  CHECK(calls.at(0).start_ns <= calls.at(1).start_ns);
  for (int i = 0; i < 300; ++i) plugin->device_count();
  CHECK_EQ(last_calls(*plugin).size(), 256u);
  plugin->shutdown();
}

TEST(trace_file_is_written_at_shutdown) {
  const std::string file = "/tmp/chipdock_trace_" + std::to_string(getpid()) + ".json";
  const auto plugin = load_fake("nano", "trace=" + file);
  plugin->device_count();
  failure_of([&] { plugin->device_info(9); });
  plugin->shutdown();
  const std::string text = read_file(file);
  CHECK_HAS(text, "\"name\":\"device.count\",\"cat\":\"device\",\"ph\":\"X\"");
  CHECK_HAS(text, "\"status\":\"INVALID_ARGUMENT\"");
  CHECK_HAS(text, "\n]}\n");
  std::remove(file.c_str());
}

TEST(exception_out_of_a_slot_is_internal_under_layers) {
  const auto plugin = load_fake("throws", "trace");
  CHECK_HAS(failure_of([&] { plugin->device_count(); }), "an exception left device.count");
  plugin->shutdown();
}

TEST(mask_required_leaves_the_seven) {
  Tables tables = pretend_tables();
  apply_mask(tables, "required");
  const std::string slots = slots_of(tables);
  CHECK_EQ(std::count(slots.begin(), slots.end(), '1'), 7);
  CHECK_EQ(missing_required_slot(tables), "");
  CHECK_EQ(broken_slot_rule(tables), "");
}

TEST(mask_by_name_takes_what_depends_on_it_too) {
  Tables tables = pretend_tables();
  apply_mask(tables, "memory.fill+event.sync");
  CHECK(tables.memory.fill == nullptr && tables.event.sync == nullptr);
  CHECK(tables.stream.create == nullptr && tables.graph.launch == nullptr);
  CHECK(tables.memory.alloc_async == nullptr && tables.memory.copy_2d != nullptr);
  CHECK(tables.kernel.launch != nullptr);
  apply_mask(tables, "*");
  const std::string slots = slots_of(tables);
  CHECK_EQ(std::count(slots.begin(), slots.end(), '1'), 7);
}

TEST(mask_of_workspace_size_takes_kernels_that_may_need_it) {
  Tables tables = pretend_tables();
  apply_mask(tables, "kernel.workspace_size");
  CHECK(tables.kernel.launch == nullptr && tables.kernel.list == nullptr);
  Tables without = pretend_tables();
  without.kernel.workspace_size = nullptr;
  apply_mask(without, "memory.fill");
  CHECK(without.kernel.launch != nullptr);
}

TEST(masks_of_200_seeds_are_closed_and_repeatable) {
  std::set<std::string> distinct;
  std::string there(kSlotCount, '0');
  std::string gone(kSlotCount, '0');
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Tables tables = pretend_tables();
    Tables again = pretend_tables();
    apply_mask(tables, "seed:" + std::to_string(seed));
    apply_mask(again, "seed:" + std::to_string(seed));
    CHECK_EQ(slots_of(tables), slots_of(again));
    CHECK_EQ(broken_slot_rule(tables), "");
    CHECK_EQ(missing_required_slot(tables), "");
    const std::string slots = slots_of(tables);
    distinct.insert(slots);
    for (size_t i = 0; i < kSlotCount; ++i) (slots[i] == '1' ? there : gone)[i] = '1';
  }
  CHECK(distinct.size() > 100);
  // Every optional slot is there under some seed and gone under another.
  for (size_t i = 0; i < kSlotCount; ++i) {
    const SlotInfo& slot = slot_info(static_cast<SlotId>(i));
    if (there[i] != '1') check::fail(slot.name, 0, "no seed of 200 leaves it");
    if (slot.need == Need::kOptional && gone[i] != '1') check::fail(slot.name, 0, "never masked");
  }
}

TEST(mask_of_one_seed_is_the_same_on_every_machine) {
  Tables tables = pretend_tables();
  apply_mask(tables, "seed:8");
  std::string left;
  for (size_t i = 0; i < kSlotCount; ++i) {
    const SlotInfo& slot = slot_info(static_cast<SlotId>(i));
    const bool optional = slot.need == Need::kOptional && std::string(slot.table) == "memory";
    if (optional && has_slot(tables, static_cast<SlotId>(i))) left += std::string(" ") + slot.name;
  }
  CHECK_EQ(left,
           " memory.trim memory.host_alloc memory.host_free memory.address memory.export_memory"
           " memory.import_memory");
}

TEST(masked_address_takes_the_heap_flags_back) {
  Layered layered("mask=memory.address");
  chipdock_device_info info{};
  info.struct_size = sizeof(info);
  CHECK_EQ(layered.tables.device.info(check::pretend_plugin(), 0, &info, nullptr), CHIPDOCK_OK);
  CHECK_EQ(info.heaps[0]->flags, static_cast<uint32_t>(CHIPDOCK_HEAP_COHERENT));
  CHECK_EQ(info.heaps[0]->bytes, uint64_t{1} << 20);
  CHECK_EQ(broken_heap_rule(layered.tables, info), "");
}

TEST(masked_door_takes_the_compilers_flag_back) {
  Layered layered("mask=compile.get_function");
  chipdock_compile_caps caps{};
  caps.struct_size = sizeof(caps);
  caps.flags = CHIPDOCK_COMPILE_SOURCE | CHIPDOCK_COMPILE_GRAPH;
  CHECK_EQ(layered.tables.compile.caps(kDevice, &caps, nullptr), CHIPDOCK_OK);
  CHECK_EQ(caps.flags, static_cast<uint32_t>(CHIPDOCK_COMPILE_GRAPH));
}

TEST(mask_alone_needs_no_trampoline) {
  Tables tables = pretend_tables();
  CHECK(apply_layers(tables, "mask=memory.fill", {"acme", nullptr}) == nullptr);
  CHECK(tables.memory.fill == nullptr);
  CHECK(tables.device.count == check::pretend_count);
}

TEST(threads_call_through_one_attachment) {
  Layered layered("trace,fault=memory.trim:500");
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        ErrorRecord error;
        if (layered.tables.memory.trim(kDevice, &error) != CHIPDOCK_OK) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(failures.load(), 1);
}
