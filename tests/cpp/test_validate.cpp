// SPDX-License-Identifier: Apache-2.0
// The validate layer: each duty it checks is broken once, on the caller's side and on the plugin's
// side, and the text names it.
#include <atomic>
#include <thread>
#include <vector>

#include "validate_fixture.hpp"

using namespace chipdock;
using namespace chipdock::runtime;
using check::desc_of;
using check::pretend_tables;
using check::Setup;

TEST(correct_calls_pass) {
  Setup s;
  CHECK_EQ(s.status, CHIPDOCK_OK);
  CHECK_EQ(s.copy(s.host(s.bytes), s.at(0), 128), "OK");
  CHECK_EQ(s.copy(s.at(0), s.at(64), 64), "OK");
  CHECK_EQ(s.copy(s.at(128), s.host(s.bytes), 0), "OK");
  CHECK_EQ(s.text(s.tables.memory.free(s.device, s.memory, &s.error)), "OK");
  CHECK_EQ(s.text(s.tables.device.close(s.device, &s.error)), "OK");
}

TEST(range_past_the_allocation_is_MEM_3) {
  Setup s;
  CHECK_EQ(s.copy(s.at(96), s.host(s.bytes), 64),
           "INVALID_ARGUMENT: memory.copy source range 96+64 "
           "passes the allocation's 128 bytes [MEM-3]");
  CHECK_HAS(s.copy(s.at(UINT64_MAX), s.host(s.bytes), 64), "[MEM-3]");
  CHECK_HAS(s.copy(s.host(s.bytes), s.at(8), UINT64_MAX), "[MEM-3]");
}

TEST(place_has_one_of_memory_and_host) {
  Setup s;
  auto both = s.at(0);
  both.host = s.bytes;
  CHECK_HAS(s.copy(both, s.host(s.bytes), 8), "source has memory and host");
  CHECK_HAS(s.copy(s.host(nullptr), s.at(0), 8), "source has neither memory nor host");
  CHECK_EQ(s.copy(s.host(nullptr), s.at(0), 0), "OK");
  auto flagged = s.at(0);
  flagged.flags = 8;
  CHECK_HAS(s.copy(flagged, s.host(s.bytes), 8),
            "UNSUPPORTED: memory.copy source 8 have unknown bits");
}

TEST(overlapping_copy_is_MEM_6) {
  Setup s;
  CHECK_HAS(s.copy(s.at(0), s.at(32), 64), "source 0+64 and target 32+64 overlap [MEM-6]");
  CHECK_HAS(s.copy(s.host(s.bytes), s.host(s.bytes + 1), 8), "[MEM-6]");
}

TEST(use_after_free_and_double_free_are_MEM_2) {
  Setup s;
  CHECK_EQ(s.text(s.tables.memory.free(s.device, s.memory, &s.error)), "OK");
  CHECK_HAS(s.copy(s.at(0), s.host(s.bytes), 8),
            "source is a memory that was already ended [MEM-2]");
  CHECK_HAS(s.text(s.tables.memory.free(s.device, s.memory, &s.error)), "already ended [MEM-2]");
  CHECK_HAS(s.text(s.tables.memory.free(s.device, nullptr, &s.error)), "memory is NULL [MEM-2]");
}

TEST(foreign_handles_are_told_apart) {
  Setup s;
  chipdock_device* other = s.open(1);
  CHECK_HAS(s.text(s.tables.memory.free(other, s.memory, &s.error)), "memory of another device");
  auto* nobody = reinterpret_cast<chipdock_memory*>(1);
  CHECK_HAS(s.text(s.tables.memory.free(s.device, nobody, &s.error)),
            "is no memory of this plugin instance");
  auto place = s.at(0);
  place.device = s.device;
  auto desc = desc_of<chipdock_copy_desc>();
  const auto target = s.host(s.bytes);
  desc.source = &place;
  desc.target = &target;
  desc.size = 8;
  CHECK_EQ(s.text(s.tables.memory.copy(other, &desc, &s.error)), "OK");
}

TEST(struct_sizes_are_BASE_1_to_4) {
  Setup s;
  auto desc = desc_of<chipdock_alloc_desc>();
  desc.size = 8;
  desc.struct_size = 0;
  s.alloc(desc);
  CHECK_HAS(s.text(s.status), "desc has struct_size 0, the smallest is 48 [BASE-4]");
  struct {
    chipdock_alloc_desc desc;
    uint64_t tail;
  } longer{desc, 0};
  longer.desc.struct_size = sizeof(longer);
  CHECK(s.alloc(longer.desc) != nullptr);
  longer.tail = 1;
  s.alloc(longer.desc);
  CHECK_HAS(s.text(s.status), "UNSUPPORTED: memory.alloc desc carries data behind the");
  chipdock_device_info info{};
  CHECK_HAS(s.text(s.tables.device.info(check::pretend_plugin(), 0, &info, &s.error)), "[BASE-5]");
}

TEST(alloc_arguments_are_checked) {
  Setup s;
  s.alloc(0);
  CHECK_HAS(s.text(s.status), "size is 0 [MEM-1]");
  auto desc = desc_of<chipdock_alloc_desc>();
  desc.size = 8;
  desc.heap = 3;
  s.alloc(desc);
  CHECK_HAS(s.text(s.status), "heap 3 does not exist, the device has 1 [DEV-6]");
  desc.heap = 0;
  desc.alignment = 48;
  s.alloc(desc);
  CHECK_HAS(s.text(s.status), "alignment 48 is not a power of two");
  desc.alignment = 0;
  desc.usage = 1u << 30;
  s.alloc(desc);
  CHECK_HAS(s.text(s.status), "UNSUPPORTED: memory.alloc usage bits");
}

TEST(fill_and_copy_2d_arguments_are_checked) {
  Setup s;
  auto fill = desc_of<chipdock_fill_desc>();
  const auto place = s.at(2);
  fill.target = &place;
  fill.size = 8;
  fill.pattern_size = 3;
  CHECK_HAS(s.text(s.tables.memory.fill(s.device, &fill, &s.error)), "pattern_size is 3");
  fill.pattern_size = 4;
  CHECK_HAS(s.text(s.tables.memory.fill(s.device, &fill, &s.error)), "does not divide offset 2");
  auto copy = desc_of<chipdock_copy_2d_desc>();
  const auto target = s.host(s.bytes);
  const auto source = s.at(0);
  copy.source = &source;
  copy.target = &target;
  copy.rows = 4;
  copy.row_bytes = 16;
  copy.source_pitch = 40;
  copy.target_pitch = 16;
  CHECK_HAS(s.text(s.tables.memory.copy_2d(s.device, &copy, &s.error)),
            "source range 0+136 passes");
  copy.rows = UINT64_MAX;
  CHECK_HAS(s.text(s.tables.memory.copy_2d(s.device, &copy, &s.error)), "wraps [MEM-3]");
  copy.source_pitch = 8;
  CHECK_HAS(s.text(s.tables.memory.copy_2d(s.device, &copy, &s.error)),
            "pitch 8 is under row_bytes 16");
}

TEST(pinned_flag_needs_host_alloc) {
  Setup s;
  auto place = s.host(s.bytes);
  place.flags = CHIPDOCK_PLACE_PINNED;
  CHECK_HAS(s.copy(place, s.at(0), 8),
            "is flagged PINNED and does not lie in memory from host_alloc");
  void* pinned = nullptr;
  CHECK_EQ(s.text(s.tables.memory.host_alloc(s.device, 64, &pinned, &s.error)), "OK");
  place.host = static_cast<char*>(pinned) + 32;
  CHECK_EQ(s.copy(place, s.at(0), 32), "OK");
  CHECK_HAS(s.copy(place, s.at(0), 33), "[MEM-4]");
}

TEST(close_with_live_children_is_DEV_5) {
  Setup s;
  chipdock_stream* stream = s.stream();
  CHECK_EQ(
      s.text(s.tables.device.close(s.device, &s.error)),
      "INVALID_ARGUMENT: device.close device still has 1 memory, 1 stream; end them first [DEV-5]");
  s.tables.stream.destroy(stream, nullptr);
  s.tables.memory.free(s.device, s.memory, nullptr);
  CHECK_EQ(s.text(s.tables.device.close(s.device, &s.error)), "OK");
  CHECK_HAS(s.text(s.tables.device.sync(s.device, -1, &s.error)), "already ended [DEV-5]");
}

TEST(streams_and_events_are_checked) {
  Setup s;
  chipdock_stream* stream = s.stream();
  chipdock_event* timing = s.event(CHIPDOCK_EVENT_TIMING);
  chipdock_event* plain = s.event(0);
  CHECK_HAS(s.text(s.tables.stream.sync(stream, -2, &s.error)),
            "timeout is -2 ns, it is -1 or more [DEV-8]");
  CHECK_HAS(s.text(s.tables.stream.wait_event(stream, nullptr, &s.error)), "event is NULL [EVT-3]");
  int64_t time = 0;
  CHECK_HAS(s.text(s.tables.event.elapsed(timing, plain, &time, &s.error)),
            "without TIMING [EVT-5]");
  CHECK_HAS(s.text(s.tables.event.elapsed(timing, timing, &time, &s.error)), "never recorded");
  CHECK_EQ(s.text(s.tables.event.record(timing, stream, &s.error)), "OK");
  CHECK_EQ(s.text(s.tables.event.elapsed(timing, timing, &time, &s.error)), "OK");
  chipdock_device* first = s.device;
  s.device = s.open(1);
  chipdock_stream* foreign = s.stream();
  s.device = first;
  CHECK_HAS(s.text(s.tables.event.record(timing, foreign, &s.error)), "stream of another device");
  CHECK_HAS(s.copy(s.at(0), s.host(s.bytes), 8, foreign), "stream of another device");
  s.tables.event.destroy(plain, nullptr);
  CHECK_HAS(s.text(s.tables.stream.wait_event(stream, plain, &s.error)), "already ended");
  auto function = desc_of<chipdock_host_function_desc>();
  CHECK_HAS(s.text(s.tables.stream.host_function(stream, &function, &s.error)), "[STR-7]");
  s.event(1u << 9);
  CHECK_HAS(s.text(s.status), "[BASE-10]");
  auto value = desc_of<chipdock_value_desc>();
  value.operation = 9;
  CHECK_HAS(s.text(s.tables.stream.value(stream, &value, &s.error)),
            "operation 9 is not known [BASE-7]");
}

TEST(imported_value_range_and_flush_are_MEM_3) {
  Setup s;
  CHECK_EQ(s.text(s.tables.memory.flush(s.device, s.memory, 120, 8, &s.error)), "OK");
  CHECK_HAS(s.text(s.tables.memory.invalidate(s.device, s.memory, 121, 8, &s.error)), "[MEM-3]");
  auto external = desc_of<chipdock_external>();
  external.kind = 12;
  chipdock_memory* made = nullptr;
  CHECK_HAS(s.text(s.tables.memory.import_memory(s.device, &external, &made, &s.error)),
            "UNSUPPORTED: memory.import_memory kind 12");
}

TEST(null_with_ok_is_internal_BASE_8) {
  const auto plugin = check::load_fake("null_with_ok", "validate");
  auto desc = desc_of<chipdock_device_open_desc>();
  chipdock_device* device = nullptr;
  ErrorRecord error;
  CHECK_EQ(plugin->tables().device.open(plugin->handle(), &desc, &device, &error),
           CHIPDOCK_INTERNAL);
  CHECK_HAS(error.text, "INTERNAL: device.open returned OK and a NULL device [BASE-8]");
  auto option = desc_of<chipdock_option>();
  option.key = option.value = "x";
  const chipdock_option* const options[] = {&option};
  desc.option_count = 1;
  desc.options = options;
  CHECK_EQ(plugin->tables().device.open(plugin->handle(), &desc, &device, &error), CHIPDOCK_OK);
  auto alloc = desc_of<chipdock_alloc_desc>();
  alloc.size = 8;
  chipdock_memory* memory = nullptr;
  CHECK_EQ(plugin->tables().memory.alloc(device, &alloc, &memory, &error), CHIPDOCK_INTERNAL);
  CHECK_HAS(error.text, "memory.alloc returned OK and a NULL memory [BASE-8]");
  CHECK_EQ(plugin->tables().device.close(device, nullptr), CHIPDOCK_OK);
  plugin->shutdown();
}

TEST(plugin_side_faults_are_named) {
  Tables bad = pretend_tables();
  bad.memory.trim = [](chipdock_device*, chipdock_error*) -> chipdock_status { return 99; };
  bad.device.sync = [](chipdock_device*, int64_t, chipdock_error* error) -> chipdock_status {
    chipdock_fail(error, CHIPDOCK_BUSY, "BUSY: or not");
    return CHIPDOCK_OK;
  };
  bad.device.reset = [](chipdock_device*, chipdock_error*) -> chipdock_status {
    return CHIPDOCK_BUSY;
  };
  bad.memory.address = [](chipdock_device*, chipdock_memory*, void**,
                          chipdock_error*) -> chipdock_status { return CHIPDOCK_OK; };
  bad.stream.create = [](chipdock_device*, const chipdock_stream_desc*, chipdock_stream** out,
                         chipdock_error*) -> chipdock_status {
    *out = reinterpret_cast<chipdock_stream*>(8);
    return CHIPDOCK_OK;
  };
  Setup s(bad);
  CHECK_EQ(s.tables.memory.trim(s.device, &s.error), CHIPDOCK_INTERNAL);
  CHECK_HAS(s.error.text, "memory.trim returned status 99, which does not exist [BASE-7]");
  CHECK_HAS(s.text(s.tables.device.sync(s.device, -1, &s.error)),
            "returned OK and wrote an error record");
  CHECK_EQ(s.tables.device.reset(s.device, &s.error), CHIPDOCK_BUSY);
  CHECK_HAS(s.error.text, "BUSY: device.reset failed and left its error record empty [BASE-8]");
  void* address = nullptr;
  CHECK_HAS(s.text(s.tables.memory.address(s.device, s.memory, &address, &s.error)),
            "a NULL address");
  s.stream();
  s.stream();
  CHECK_HAS(s.text(s.status), "returned a stream that is already in use [BASE-8]");
}

TEST(heap_rules_are_checked_at_info) {
  Tables bad = pretend_tables();
  bad.memory.address = nullptr;
  const Setup s(bad);
  auto info = desc_of<chipdock_device_info>();
  ErrorRecord error;
  CHECK_EQ(s.tables.device.info(check::pretend_plugin(), 0, &info, &error), CHIPDOCK_INTERNAL);
  CHECK_HAS(error.text, "heap 0 is HOST_VISIBLE but memory.address is NULL [DEV-6]");
  CHECK_EQ(s.tables.device.info(check::pretend_plugin(), 2, &info, &error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_HAS(error.text, "index 2 is outside 0 to 2 - 1 [DEV-1]");
}

TEST(calls_without_an_error_record_work) {
  Setup s;
  CHECK_EQ(s.tables.memory.free(s.device, nullptr, nullptr), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(s.tables.memory.free(s.device, s.memory, nullptr), CHIPDOCK_OK);
}

TEST(threads_share_the_book) {
  Setup s;
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        auto desc = desc_of<chipdock_alloc_desc>();
        desc.size = 8;
        chipdock_memory* memory = nullptr;
        ErrorRecord error;
        bad += s.tables.memory.alloc(s.device, &desc, &memory, &error) != CHIPDOCK_OK;
        bad += s.tables.memory.free(s.device, memory, &error) != CHIPDOCK_OK;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(bad.load(), 0);
}
