// SPDX-License-Identifier: Apache-2.0
// Checks of the device and profiler tables.
#include "validate.hpp"

namespace chipdock::runtime {
namespace {

using Book = Validator;

void count(Book& book, chipdock_plugin* plugin, int32_t* out_count, chipdock_error*) {
  want(plugin != nullptr && out_count != nullptr, book, "DEV-1", "plugin or out_count is NULL");
}
void counted(Book& book, chipdock_plugin*, int32_t* out_count, chipdock_error*) {
  expect(*out_count >= 0, book, "DEV-1", "returned count ", *out_count);
}

int32_t count_of(Book& book, chipdock_plugin* plugin) {
  ErrorRecord error;
  int32_t count = 0;
  check(book.inner().device.count(plugin, &count, &error), error, "device.count");
  return count;
}

void info(Book& book, chipdock_plugin* plugin, int32_t index, chipdock_device_info* out_info,
          chipdock_error*) {
  want(plugin != nullptr, book, "DEV-1", "plugin is NULL");
  out_struct(book, out_info, "out_info");
  const int32_t count = count_of(book, plugin);
  want(index >= 0 && index < count, book, "DEV-1", "index ", index, " is outside 0 to ", count,
       " - 1");
}
void informed(Book& book, chipdock_plugin*, int32_t index, chipdock_device_info* out_info,
              chipdock_error*) {
  if (!CHIPDOCK_HAS_FIELD(chipdock_device_info, peaks, out_info->struct_size)) return;
  expect(out_info->product != nullptr && out_info->architecture != nullptr &&
             out_info->driver != nullptr && out_info->pci_address != nullptr,
         book, "DEV-3", "left a string of device ", index, " NULL; an unknown one is \"\"");
  const std::string broken = broken_heap_rule(book.inner(), *out_info);
  expect(broken.empty(), book, "DEV-6", "of device ", index, ": ", broken);
}

void open(Book& book, chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
          chipdock_device** out_device, chipdock_error*) {
  want(plugin != nullptr, book, "DEV-1", "plugin is NULL");
  want(out_device != nullptr, book, "BASE-8", "out_device is NULL");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, 0, "flags");
  options_array(book, given.option_count, given.options);
  const int32_t count = count_of(book, plugin);
  want(given.index >= 0 && given.index < count, book, "DEV-1", "index ", given.index,
       " is outside 0 to ", count, " - 1");
}
void opened(Book& book, chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
            chipdock_device** out_device, chipdock_error*) {
  Handle entry;
  chipdock_device_info device{};
  device.struct_size = sizeof(device);
  ErrorRecord error;
  if (book.inner().device.info(plugin, desc->index, &device, &error) == CHIPDOCK_OK) {
    entry.size = device.heap_count;
  }
  book.add(Kind::kDevice, *out_device, entry, "device");
}

void close(Book& book, chipdock_device* device, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  const std::string left = book.children(device);
  want(left.empty(), book, "DEV-5", "device still has ", left, "; end them first");
  book.end(Kind::kDevice, device, "device");
}

void sync(Book& book, chipdock_device* device, int64_t timeout_ns, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  valid_timeout(book, timeout_ns);
}
void reset(Book& book, chipdock_device* device, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
}
void stats(Book& book, chipdock_device* device, chipdock_device_stats* out_stats, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  out_struct(book, out_stats, "out_stats");
}
void link(Book& book, chipdock_device* device, chipdock_device* peer, chipdock_link_info* out_link,
          chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kDevice, peer, "peer");
  out_struct(book, out_link, "out_link");
}
void health(Book& book, chipdock_device* device, chipdock_health* out_health, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  out_struct(book, out_health, "out_health");
}
void peer_access(Book& book, chipdock_device* device, chipdock_device* peer, int32_t enable,
                 chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kDevice, peer, "peer");
  want(device != peer, book, "DEV-4", "peer is the device itself");
  want(enable == 0 || enable == 1, book, "BASE-7", "enable is ", enable, ", it is 0 or 1");
}
void query(Book& book, chipdock_device* device, const char* key, char* buffer, uint64_t size,
           uint64_t* out_size, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(key != nullptr && out_size != nullptr, book, "BASE-8", "key or out_size is NULL");
  want(buffer != nullptr || size == 0, book, "BASE-8", "buffer is NULL and size ", size);
}

void start(Book& book, chipdock_device* device, const chipdock_profiler_desc* desc,
           chipdock_profiler_session** out_session, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_session != nullptr, book, "BASE-8", "out_session is NULL");
  const auto given = in_struct(book, desc, "desc");
  want(given.sink != nullptr, book, "PRF-4", "sink is NULL");
}
void started(Book& book, chipdock_device* device, const chipdock_profiler_desc*,
             chipdock_profiler_session** out_session, chipdock_error*) {
  Handle entry;
  entry.device = device;
  book.add(Kind::kSession, *out_session, entry, "session");
}
void stop(Book& book, chipdock_profiler_session* session, chipdock_error*) {
  book.end(Kind::kSession, session, "session");
}
void flush(Book& book, chipdock_profiler_session* session, int64_t timeout_ns, chipdock_error*) {
  book.live(Kind::kSession, session, "session");
  valid_timeout(book, timeout_ns);
}
void clock(Book& book, chipdock_device* device, chipdock_clock_sample* out_sample,
           chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  out_struct(book, out_sample, "out_sample");
}
void sampled(Book& book, chipdock_device*, chipdock_clock_sample* out_sample, chipdock_error*) {
  expect(out_sample->host_before_ns <= out_sample->host_after_ns, book, "PRF-2", "host time ",
         out_sample->host_before_ns, " before the reading is later than ",
         out_sample->host_after_ns);
}

}  // namespace

void add_device_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, device_count, count);
  CHIPDOCK_SUCCESS(checks, device_count, counted);
  CHIPDOCK_BEFORE(checks, device_info, info);
  CHIPDOCK_SUCCESS(checks, device_info, informed);
  CHIPDOCK_BEFORE(checks, device_open, open);
  CHIPDOCK_SUCCESS(checks, device_open, opened);
  CHIPDOCK_BEFORE(checks, device_close, close);
  CHIPDOCK_BEFORE(checks, device_sync, sync);
  CHIPDOCK_BEFORE(checks, device_reset, reset);
  CHIPDOCK_BEFORE(checks, device_stats, stats);
  CHIPDOCK_BEFORE(checks, device_link, link);
  CHIPDOCK_BEFORE(checks, device_health, health);
  CHIPDOCK_BEFORE(checks, device_peer_access, peer_access);
  CHIPDOCK_BEFORE(checks, device_query, query);
  CHIPDOCK_BEFORE(checks, profiler_start, start);
  CHIPDOCK_SUCCESS(checks, profiler_start, started);
  CHIPDOCK_BEFORE(checks, profiler_stop, stop);
  CHIPDOCK_BEFORE(checks, profiler_flush, flush);
  CHIPDOCK_BEFORE(checks, profiler_clock, clock);
  CHIPDOCK_SUCCESS(checks, profiler_clock, sampled);
}

}  // namespace chipdock::runtime
