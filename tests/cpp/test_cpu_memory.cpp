// SPDX-License-Identifier: Apache-2.0
// The CPU plugin's memory table: limits, copies, fills, strict mode, sharing.
#include <fcntl.h>
#include <unistd.h>

#include <numeric>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

/// Whether the process may read a byte there; asked of the system, so nothing faults.
bool readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool can = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

std::vector<uint8_t> counting(size_t count) {
  std::vector<uint8_t> values(count);
  std::iota(values.begin(), values.end(), uint8_t{0});
  return values;
}

void* address_of(Device& cpu, chipdock_memory* block) {
  void* address = nullptr;
  CHECK_EQ(cpu.memory->address(cpu.handle, block, &address, &cpu.error), CHIPDOCK_OK);
  return address;
}

TEST(alloc_aligns_small_and_large_blocks) {
  Device cpu;
  for (const uint64_t size : {uint64_t{1}, uint64_t{4096}, uint64_t{9} << 20}) {
    auto desc = sized<chipdock_alloc_desc>();
    desc.size = size;
    desc.alignment = 4096;
    chipdock_memory* block = nullptr;
    CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_OK);
    CHECK_EQ(reinterpret_cast<uintptr_t>(address_of(cpu, block)) % 4096, 0u);
    cpu.free(block);
  }
}

TEST(alloc_checks_its_desc) {
  Device cpu;
  auto desc = sized<chipdock_alloc_desc>();
  chipdock_memory* block = nullptr;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.size = 64;
  desc.heap = 1;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.heap = 0;
  desc.alignment = 48;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.alignment = 0;
  desc.usage = 1u << 31;
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_UNSUPPORTED);
  CHECK(block == nullptr);
  CHECK_EQ(cpu.memory->alloc(cpu.handle, &desc, nullptr, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
}

TEST(out_of_memory_leaves_all_as_it_was) {
  Device cpu(Options{{"memory", "1MiB"}});
  chipdock_memory* first = cpu.alloc(700 << 10);
  chipdock_memory* second = nullptr;
  CHECK_EQ(cpu.try_alloc(400 << 10, &second), CHIPDOCK_OUT_OF_MEMORY);
  CHECK(second == nullptr);
  CHECK(cpu.text_has("0.3 MiB of 1.0 MiB free"));
  CHECK_EQ(cpu.try_alloc(300 << 10, &second), CHIPDOCK_OK);
  auto info = sized<chipdock_memory_info>();
  CHECK_EQ(cpu.memory->info(cpu.handle, &info, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(info.total_bytes, uint64_t{1} << 20);
  CHECK_EQ(info.free_bytes, uint64_t{24} << 10);
  cpu.free(first);
  cpu.free(second);
  CHECK_EQ(cpu.try_alloc(UINT64_MAX, &second), CHIPDOCK_OUT_OF_MEMORY);
  CHECK_EQ(cpu.memory->trim(cpu.handle, &cpu.error), CHIPDOCK_OK);
}

TEST(copies_go_every_way) {
  Device cpu({}, Options{{"devices", "2"}});
  chipdock_device* peer = nullptr;
  CHECK_EQ(cpu.open(1, {}, &peer), CHIPDOCK_OK);
  auto desc = sized<chipdock_alloc_desc>();
  desc.size = 256;
  chipdock_memory* far = nullptr;
  CHECK_EQ(cpu.memory->alloc(peer, &desc, &far, &cpu.error), CHIPDOCK_OK);
  const std::vector<uint8_t> values = counting(256);
  chipdock_memory* near = cpu.upload(values);
  chipdock_memory* other = cpu.alloc(256);
  CHECK_EQ(cpu.copy(Device::at(near, 16), Device::at(other, 32), 200), CHIPDOCK_OK);
  chipdock_place target = Device::at(far);
  target.device = peer;
  CHECK_EQ(cpu.copy(Device::at(other, 32), target, 200), CHIPDOCK_OK);
  std::vector<uint8_t> back(200);
  CHECK_EQ(cpu.copy(Device::at(far), Device::at(back.data()), 200), CHIPDOCK_OK);
  CHECK(std::equal(back.begin(), back.end(), values.begin() + 16));
  std::vector<uint8_t> again(200);
  CHECK_EQ(cpu.copy(Device::at(back.data()), Device::at(again.data()), 200), CHIPDOCK_OK);
  CHECK(again == back);
  cpu.free(near);
  cpu.free(other);
  CHECK_EQ(cpu.memory->free(peer, far, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.device->close(peer, &cpu.error), CHIPDOCK_OK);
}

TEST(copy_checks_places_and_ranges_also_for_size_zero) {
  Device cpu;
  chipdock_memory* block = cpu.alloc(64);
  char host[64] = {};
  CHECK_EQ(cpu.copy(Device::at(block, 60), Device::at(host), 5), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.copy(Device::at(block, UINT64_MAX), Device::at(host), 2), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.copy(Device::at(block, 65), Device::at(host), 0), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.copy(Device::at(block, 64), Device::at(host), 0), CHIPDOCK_OK);
  chipdock_place both = Device::at(block);
  both.host = host;
  CHECK_EQ(cpu.copy(both, Device::at(host), 1), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.copy(sized<chipdock_place>(), Device::at(host), 1), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.copy(sized<chipdock_place>(), sized<chipdock_place>(), 0), CHIPDOCK_OK);
  cpu.free(block);
}

TEST(copy_2d_moves_rows_only) {
  Device cpu;
  const std::vector<uint8_t> values = counting(64);
  chipdock_memory* source = cpu.upload(values);
  chipdock_memory* target = cpu.upload(std::vector<uint8_t>(64, 255));
  auto desc = sized<chipdock_copy_2d_desc>();
  const chipdock_place from = Device::at(source, 1);
  const chipdock_place to = Device::at(target);
  desc.source = &from;
  desc.target = &to;
  desc.row_bytes = 3;
  desc.rows = 4;
  desc.source_pitch = 16;
  desc.target_pitch = 8;
  CHECK_EQ(cpu.memory->copy_2d(cpu.handle, &desc, &cpu.error), CHIPDOCK_OK);
  const auto got = cpu.download<uint8_t>(target, 64);
  CHECK_EQ(int{got[8]}, 17);
  CHECK_EQ(int{got[10]}, 19);
  CHECK_EQ(int{got[11]}, 255);
  CHECK_EQ(int{got[26]}, 51);
  desc.source_pitch = 2;
  CHECK_EQ(cpu.memory->copy_2d(cpu.handle, &desc, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.source_pitch = uint64_t{1} << 63;
  CHECK_EQ(cpu.memory->copy_2d(cpu.handle, &desc, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  cpu.free(source);
  cpu.free(target);
}

TEST(fill_repeats_every_pattern_size) {
  Device cpu;
  for (const uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    chipdock_memory* block = cpu.upload(std::vector<uint8_t>(160, 255));
    auto desc = sized<chipdock_fill_desc>();
    const chipdock_place to = Device::at(block, 16);
    desc.pattern_size = width;
    desc.target = &to;
    desc.size = 112;
    for (uint8_t i = 0; i < 16; ++i) desc.pattern[i] = static_cast<uint8_t>(i + 1);
    CHECK_EQ(cpu.memory->fill(cpu.handle, &desc, &cpu.error), CHIPDOCK_OK);
    const auto got = cpu.download<uint8_t>(block, 160);
    bool right = got[15] == 255 && got[128] == 255;
    for (size_t i = 0; i < 112; ++i) right = right && got[16 + i] == i % width + 1;
    CHECK(right);
    cpu.free(block);
  }
}

TEST(fill_refuses_a_pattern_that_does_not_divide) {
  Device cpu;
  chipdock_memory* block = cpu.alloc(64);
  auto desc = sized<chipdock_fill_desc>();
  chipdock_place to = Device::at(block);
  desc.target = &to;
  desc.size = 6;
  desc.pattern_size = 4;
  CHECK_EQ(cpu.memory->fill(cpu.handle, &desc, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.size = 8;
  to.offset = 2;
  CHECK_EQ(cpu.memory->fill(cpu.handle, &desc, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  desc.pattern_size = 3;
  CHECK_EQ(cpu.memory->fill(cpu.handle, &desc, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  cpu.free(block);
}

TEST(strict_device_addresses_cannot_be_read) {
  Device cpu({}, Options{{"strict", "1"}});
  auto info = sized<chipdock_device_info>();
  CHECK_EQ(cpu.device->info(cpu.plugin, 0, &info, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(info.heaps[0]->flags & CHIPDOCK_HEAP_HOST_VISIBLE, 0u);
  chipdock_memory* block = cpu.alloc(100);
  CHECK(!readable(address_of(cpu, block)));
  CHECK_EQ(int{cpu.download<uint8_t>(block, 100)[99]}, 0xcb);
  const auto values = counting(100);
  CHECK_EQ(cpu.copy(Device::at(const_cast<uint8_t*>(values.data())), Device::at(block), 100),
           CHIPDOCK_OK);
  CHECK(cpu.download<uint8_t>(block, 100) == values);
  cpu.free(block);
}

TEST(ordinary_device_addresses_can_be_read) {
  Device cpu;
  chipdock_memory* block = cpu.upload(counting(8));
  CHECK(readable(address_of(cpu, block)));
  CHECK_EQ(int{static_cast<uint8_t*>(address_of(cpu, block))[7]}, 7);
  CHECK_EQ(cpu.memory->flush(cpu.handle, block, 0, 8, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.memory->flush(cpu.handle, block, 4, 5, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
  cpu.free(block);
}

TEST(strict_import_of_host_memory_hides_its_address) {
  Device cpu({}, Options{{"strict", "1"}});
  auto values = counting(64);
  auto external = sized<chipdock_external>();
  external.kind = CHIPDOCK_EXTERNAL_POINTER;
  external.pointer = values.data();
  external.size = 64;
  chipdock_memory* block = nullptr;
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &external, &block, &cpu.error), CHIPDOCK_OK);
  CHECK(!readable(address_of(cpu, block)));
  CHECK(cpu.download<uint8_t>(block, 64) == values);
  cpu.free(block);
  CHECK_EQ(int{values[63]}, 63);
}

TEST(export_and_import_share_memory_by_fd_and_by_blob) {
  Device cpu;
  chipdock_memory* block = cpu.alloc(5000, CHIPDOCK_USAGE_SHARED);
  const auto values = counting(5000);
  CHECK_EQ(cpu.copy(Device::at(const_cast<uint8_t*>(values.data())), Device::at(block), 5000),
           CHIPDOCK_OK);
  auto by_fd = sized<chipdock_external>();
  by_fd.kind = CHIPDOCK_EXTERNAL_FD;
  CHECK_EQ(cpu.memory->export_memory(cpu.handle, block, &by_fd, &cpu.error), CHIPDOCK_OK);
  auto by_blob = sized<chipdock_external>();
  by_blob.kind = CHIPDOCK_EXTERNAL_IPC;
  CHECK_EQ(cpu.memory->export_memory(cpu.handle, block, &by_blob, &cpu.error), CHIPDOCK_OK);
  std::vector<char> blob(by_blob.blob_size);
  by_blob.blob = blob.data();
  CHECK_EQ(cpu.memory->export_memory(cpu.handle, block, &by_blob, &cpu.error), CHIPDOCK_OK);

  chipdock_memory* first = nullptr;
  chipdock_memory* second = nullptr;
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &by_fd, &first, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &by_blob, &second, &cpu.error), CHIPDOCK_OK);
  uint8_t mark = 200;
  CHECK_EQ(cpu.copy(Device::at(&mark), Device::at(first, 4999), 1), CHIPDOCK_OK);
  CHECK_EQ(int{cpu.download<uint8_t>(second, 5000)[4999]}, 200);
  CHECK_EQ(int{cpu.download<uint8_t>(block, 5000)[4998]}, int{values[4998]});
  cpu.free(second);
  cpu.free(first);
  cpu.free(block);
  // The exporter is gone: its number may name another file by now.
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &by_blob, &second, &cpu.error), CHIPDOCK_MISMATCH);
  blob[0] = 'x';
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &by_blob, &second, &cpu.error), CHIPDOCK_MISMATCH);
}

TEST(import_takes_an_fd_only_on_success) {
  Device cpu;
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  auto external = sized<chipdock_external>();
  external.kind = CHIPDOCK_EXTERNAL_FD;
  external.fd = fd;
  external.size = 64;
  chipdock_memory* block = nullptr;
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &external, &block, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(close(fd), 0);
  external.kind = 77;
  CHECK_EQ(cpu.memory->import_memory(cpu.handle, &external, &block, &cpu.error),
           CHIPDOCK_UNSUPPORTED);
}

TEST(export_wants_shared_memory) {
  Device cpu;
  chipdock_memory* block = cpu.alloc(64);
  auto external = sized<chipdock_external>();
  external.kind = CHIPDOCK_EXTERNAL_FD;
  CHECK_EQ(cpu.memory->export_memory(cpu.handle, block, &external, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  cpu.free(block);
}

TEST(pinned_host_memory_is_aligned) {
  Device cpu;
  void* host = nullptr;
  CHECK_EQ(cpu.memory->host_alloc(cpu.handle, 1000, &host, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(reinterpret_cast<uintptr_t>(host) % 64, 0u);
  CHECK_EQ(cpu.memory->host_free(cpu.handle, host, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.memory->host_alloc(cpu.handle, 0, &host, &cpu.error), CHIPDOCK_INVALID_ARGUMENT);
}

TEST(free_async_waits_for_work_in_front_of_it) {
  Device cpu;
  chipdock_stream* queue = cpu.make_stream();
  auto desc = sized<chipdock_alloc_desc>();
  desc.size = 64;
  desc.stream = queue;
  chipdock_memory* block = nullptr;
  CHECK_EQ(cpu.memory->alloc_async(cpu.handle, &desc, &block, &cpu.error), CHIPDOCK_OK);
  Gate gate;
  gate.close(cpu, queue);
  auto values = counting(64);
  std::vector<uint8_t> back(64);
  CHECK_EQ(cpu.copy(Device::at(values.data()), Device::at(block), 64, queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.copy(Device::at(block), Device::at(back.data()), 64, queue), CHIPDOCK_OK);
  CHECK_EQ(cpu.memory->free_async(cpu.handle, block, queue, &cpu.error), CHIPDOCK_OK);
  auto stats = sized<chipdock_device_stats>();
  CHECK_EQ(cpu.device->stats(cpu.handle, &stats, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(stats.allocation_count, 1u);
  gate.open();
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK(back == values);
  CHECK_EQ(cpu.device->stats(cpu.handle, &stats, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(stats.allocation_count, 0u);
  cpu.destroy(queue);
}

}  // namespace
