// SPDX-License-Identifier: Apache-2.0
// Devices: opening, transfers and their emulations against the plain result, what the host derives,
// sticky device errors that name their operation, profiles. Over plugins with few slots and, where
// built, the cpu's.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <sstream>
#include <thread>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "profiler.hpp"

using namespace chipdock::check;

namespace {

std::vector<uint8_t> ramp(size_t size) {
  std::vector<uint8_t> out(size);
  std::iota(out.begin(), out.end(), uint8_t{1});
  return out;
}

std::vector<std::string> all_plugins() {
  auto names = plugins_under_test();
  names.push_back("nano");
  return names;
}

}  // namespace

TEST(open_gives_what_the_plugin_says) {
  auto device = open_device("work", 1);
  CHECK_EQ(device->name(), std::string("work:1"));
  CHECK_EQ(device->index(), 1);
  CHECK(device->host_visible());
  CHECK(!device->prefers_inline());
  CHECK_EQ(device->alignment(), uint64_t{256});
  CHECK(!open_device("nano")->host_visible());
  const Error error = error_of([] { open_device("work", 2); });
  CHECK_EQ(error.code(), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(contains(error.what(), "work:2 does not exist, work has 2 devices"));
  const Error option = error_of([] { Device::open(load_plugin("nano"), 0, {{"speed", "fast"}}); });
  CHECK_EQ(option.code(), CHIPDOCK_INVALID_ARGUMENT);
}

TEST(bytes_go_through_every_kind_of_copy) {
  for (const auto& name : all_plugins()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    const auto in = ramp(1000);
    for (Stream* on : {static_cast<Stream*>(nullptr), stream.get()}) {
      auto a = device->allocate(1000, stream);
      auto b = device->allocate(1000, stream);
      std::vector<uint8_t> out(1000, 0);
      std::vector<uint8_t> last(1000, 0);
      device->copy(host(in.data()), at(*a), 1000, on);
      device->copy(at(*a, 100), at(*b, 300), 500, on);  // Sub-ranges.
      device->copy(at(*b, 300), host(out.data()), 500, on);
      device->copy(host(in.data()), host(last.data()), 1000, on);
      device->copy({}, {}, 0, on);
      stream->sync();
      CHECK(std::equal(out.begin(), out.begin() + 500, in.begin() + 100));
      CHECK(last == in);
    }
  }
}

TEST(bytes_go_between_devices_and_plugins) {
  auto here = open_device("work", 0);
  auto peer = open_device("work", 1);
  auto foreign = open_device("nano");
  auto stream = Stream::create(here);
  const auto in = ramp(100000);
  auto a = here->allocate(in.size(), nullptr);
  auto b = peer->allocate(in.size(), nullptr);
  auto c = foreign->allocate(in.size(), nullptr);
  auto d = here->allocate(in.size(), nullptr);
  std::vector<uint8_t> out(in.size());
  here->copy(host(in.data()), at(*a), in.size(), stream.get());
  here->copy(at(*a), at(*b), in.size(), stream.get());
  stream->sync();
  peer->copy(at(*b), at(*c), in.size(), nullptr);
  here->copy(at(*c), at(*d), in.size(), stream.get());
  here->copy(at(*d), host(out.data()), in.size(), stream.get());
  stream->sync();
  CHECK(out == in);
}

TEST(copy_2d_moves_a_rectangle_and_nothing_else) {
  for (const auto& name : all_plugins()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    const auto in = ramp(40 * 25);
    for (Stream* on : {static_cast<Stream*>(nullptr), stream.get()}) {
      for (const uint64_t row : {uint64_t{0}, uint64_t{7}, uint64_t{40}}) {
        auto a = device->allocate(40 * 25, stream);
        const uint8_t mark = 0xee;
        device->fill(at(*a), 40 * 25, &mark, 1, on);
        device->copy_2d(host(in.data()), 40, at(*a, 3 * (row != 40)), 40, row, 20, on);
        std::vector<uint8_t> out(40 * 25);
        device->copy(at(*a), host(out.data()), out.size(), on);
        stream->sync();
        std::vector<uint8_t> wanted(40 * 25, mark);
        for (size_t r = 0; r < 20; ++r) {
          std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(r * 40), row,
                      wanted.begin() + static_cast<std::ptrdiff_t>(r * 40 + 3 * (row != 40)));
        }
        CHECK(out == wanted);
      }
    }
    CHECK_EQ(error_of([&] { device->copy_2d({}, 3, {}, 8, 4, 1, nullptr); }).code(),
             CHIPDOCK_INVALID_ARGUMENT);
  }
}

TEST(fill_repeats_every_size_of_pattern) {
  for (const auto& name : all_plugins()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    const auto pattern = ramp(16);
    auto buffer = device->allocate(400000, stream);
    for (Stream* on : {static_cast<Stream*>(nullptr), stream.get()}) {
      for (const uint32_t bytes : {1u, 2u, 4u, 8u, 16u}) {
        for (const uint64_t size :
             {uint64_t{16}, uint64_t{48}, uint64_t{65536}, uint64_t{262160}}) {
          const uint8_t zero = 0;
          device->fill(at(*buffer), 400000, &zero, 1, on);
          device->fill(at(*buffer, 64), size, pattern.data(), bytes, on);
          std::vector<uint8_t> out(400000);
          device->copy(at(*buffer), host(out.data()), out.size(), on);
          stream->sync();
          std::vector<uint8_t> wanted(400000, 0);
          for (uint64_t i = 0; i < size; ++i) wanted[64 + i] = pattern[i % bytes];
          CHECK(out == wanted);
        }
      }
    }
    CHECK_EQ(error_of([&] { device->fill(at(*buffer), 9, pattern.data(), 3, nullptr); }).code(),
             CHIPDOCK_INVALID_ARGUMENT);
    CHECK_EQ(error_of([&] { device->fill(at(*buffer), 10, pattern.data(), 4, nullptr); }).code(),
             CHIPDOCK_INVALID_ARGUMENT);
  }
}

TEST(what_the_host_derives_adds_up) {
  auto device = open_device("nano");
  const auto before = device->memory_info();
  CHECK_EQ(before.free_bytes, before.total_bytes);
  auto buffer = device->allocate(3 << 20, nullptr);
  const auto info = device->memory_info();
  CHECK_EQ(info.free_bytes, info.total_bytes - (4 << 20));
  std::vector<char> bytes(100);
  device->copy(host(bytes.data()), at(*buffer), 100, nullptr);
  const auto stats = device->stats();
  CHECK_EQ(stats.allocated_bytes, uint64_t{4} << 20);
  CHECK_EQ(stats.peak_bytes, uint64_t{4} << 20);
  CHECK_EQ(stats.allocation_count, uint64_t{1});
  CHECK_EQ(stats.copy_bytes, uint64_t{100});
  CHECK_EQ(error_of([&] { device->memory_info(7); }).code(), CHIPDOCK_INVALID_ARGUMENT);
  const auto link = device->link(*device);
  CHECK_EQ(link.type, static_cast<int32_t>(CHIPDOCK_LINK_SAME));
  CHECK(link.bandwidth > 0 && link.reverse_bandwidth > 0 && link.latency_ns > 0);
  bool pinned = true;
  auto pageable = device->allocate_host(100, &pinned);
  CHECK(!pinned);
  CHECK_EQ(reinterpret_cast<uintptr_t>(pageable.get()) % 64, uintptr_t{0});
  device->trim();
}

TEST(a_lost_device_is_sticky_and_names_the_operation) {
  setenv("FAKE_LOST_AFTER", "1", 1);
  auto device = open_device("lost");
  auto buffer = device->allocate(64, nullptr);
  std::vector<char> bytes(64);
  device->copy(host(bytes.data()), at(*buffer), 64, nullptr);
  const Error first = error_of([&] { device->copy(host(bytes.data()), at(*buffer), 64, nullptr); });
  CHECK_EQ(first.code(), CHIPDOCK_DEVICE_LOST);
  CHECK_EQ(first.scope(), static_cast<int32_t>(CHIPDOCK_SCOPE_DEVICE));
  const Error second = error_of([&] { device->check_alive(); });
  CHECK_EQ(std::string(second.what()), std::string(first.what()));
  CHECK_EQ(error_of([&] { Stream::create(device); }).code(), CHIPDOCK_DEVICE_LOST);
  CHECK_EQ(error_of([&] { device->allocate(64 << 20, nullptr); }).code(), CHIPDOCK_DEVICE_LOST);
}

TEST(a_fault_on_a_stream_fails_the_device_with_the_operations_name) {
  auto device = open_device("work");
  auto stream = Stream::create(device);
  auto other = Stream::create(device);
  Kernel fault(device, "Fault");
  fault.launch(stream.get(), nullptr, nullptr, nullptr, 0);
  const Error error = error_of([&] { stream->sync(); });
  CHECK_EQ(error.code(), CHIPDOCK_RESET_REQUIRED);
  CHECK(contains(error.what(), "illegal address"));
  CHECK(contains(error.what(), "operation Fault"));
  CHECK_EQ(error_of([&] { other->sync(); }).code(), CHIPDOCK_RESET_REQUIRED);
  const Error again = error_of([&] { device->check_alive(); });
  CHECK(contains(again.what(), "operation Fault"));
  CHECK_EQ(again.correlation_id(), error.correlation_id());
  open_device("work")->check_alive();  // Opened devices fail one by one. [DEV-4]
}

TEST(an_inline_failure_names_the_operation_and_sticks_to_nothing) {
  auto device = open_device("work");
  Kernel fail(device, "Fail");
  const Error error = error_of([&] { fail.launch(nullptr, nullptr, nullptr, nullptr, 0); });
  CHECK_EQ(error.code(), CHIPDOCK_INTERNAL);
  CHECK(contains(error.what(), "work:0 kernel.launch of Fail: the kernel failed on purpose"));
  device->check_alive();
}

TEST(names_of_recent_operations_are_found_and_old_ones_are_not_mixed_up) {
  auto device = open_device("work");
  const std::string longer(100, 'x');
  device->note_operation(5, "MatMul");
  device->note_operation(6, longer.c_str());
  CHECK_EQ(device->operation_name(5), std::string("MatMul"));
  CHECK(longer.compare(0, 40, device->operation_name(6).substr(0, 40)) == 0);
  CHECK_EQ(device->operation_name(7), std::string());
  device->note_operation(5 + 4096, "Add");
  CHECK_EQ(device->operation_name(5), std::string());
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string mine(20, static_cast<char>('a' + t));
      for (uint64_t i = 0; i < 2000; ++i) {
        device->note_operation(t * 4096 + i % 8, mine.c_str());
        const std::string found = device->operation_name(t * 4096 + i % 8);
        if (!found.empty() && found != mine) std::abort();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(a_profile_has_a_span_for_each_operation) {
  for (const auto& name : plugins_under_test()) {
    auto device = open_device(name);
    auto stream = Stream::create(device);
    auto buffer = device->allocate(4096, stream);
    std::vector<char> bytes(4096);
    auto profiler = std::make_shared<Profiler>();
    device->copy(host(bytes.data()), at(*buffer), 4096, nullptr);
    device->set_profiler(profiler);
    device->copy(host(bytes.data()), at(*buffer), 4096, nullptr);
    device->copy(at(*buffer), host(bytes.data()), 4096, stream.get());
    stream->sync();
    device->set_profiler(nullptr);
    device->copy(host(bytes.data()), at(*buffer), 4096, nullptr);
    const auto records = profiler->records();
    CHECK(std::count_if(records.begin(), records.end(), [](const ProfileRecord& record) {
            return record.name == "copy" && record.category == "copy";
          }) == 2);
    for (const auto& record : records) {
      CHECK(record.duration_ns >= 0);
      CHECK_EQ(record.device, device->name());
      CHECK(record.correlation_id != 0);
    }
    std::ostringstream text;
    profiler->write_chrome_trace(text);
    CHECK(contains(text.str(), "\"traceEvents\""));
    CHECK(contains(text.str(), "\"name\":\"copy\""));
    CHECK(contains(text.str(), device->name()));
  }
}

TEST(a_trace_is_json_whatever_the_names_are) {
  Profiler profiler;
  ProfileRecord record;
  record.name = "quote \" slash \\ tab \t bad \xff good \xc3\xa9";
  record.start_ns = 1000;
  record.duration_ns = 1234;
  profiler.add(record);
  std::ostringstream text;
  profiler.write_chrome_trace(text);
  CHECK(contains(text.str(), R"("quote \" slash \\ tab \u0009 bad \ufffd good )"
                             "\xc3\xa9\""));
  CHECK(contains(text.str(), "\"dur\":1.234"));
  CHECK_EQ(
      error_of([&] { profiler.write_chrome_trace(std::string("/nonexistent/x.json")); }).code(),
      CHIPDOCK_UNAVAILABLE);
}

TEST(bytes_are_written_for_people) {
  CHECK_EQ(format_bytes(512), std::string("512 B"));
  CHECK_EQ(format_bytes(uint64_t{4} << 30), std::string("4.0 GiB"));
  CHECK_EQ(format_bytes(1536), std::string("1.5 KiB"));
}
