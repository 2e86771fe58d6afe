// SPDX-License-Identifier: Apache-2.0
// The device table. Virtual devices (CHIPDOCK_CPU_DEVICES) are the same cores and the same memory
// under several numbers, with handles, limits and errors of their own.
#include "device.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace chipdock::plugin::cpu {
namespace {

chipdock_status count(chipdock_plugin* plugin, int32_t* out_count, chipdock_error* error) {
  return kit::guard(error, [&] {
    const Instance& instance = Instance::of(plugin);
    deref(out_count, "out_count") = instance.settings.devices;
  });
}

void check_index(const Instance& instance, int32_t index) {
  kit::require(index >= 0 && index < instance.settings.devices, "device index ", index,
               " is out of range, this plugin has ", instance.settings.devices,
               " (CHIPDOCK_CPU_DEVICES)");
}

chipdock_status info(chipdock_plugin* plugin, int32_t index, chipdock_device_info* out_info,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    Instance& instance = Instance::of(plugin);
    check_index(instance, index);
    chipdock_device_info value{};
    value.flags = CHIPDOCK_DEVICE_PREFERS_INLINE;
    if (!instance.settings.strict) value.flags |= CHIPDOCK_DEVICE_READS_HOST;
    value.product = instance.machine.product.c_str();
    value.architecture = instance.machine.architecture.c_str();
    value.driver = instance.machine.kernel.c_str();
    std::copy(instance.machine.uuid.begin(), instance.machine.uuid.end(), value.uuid);
    value.uuid[15] = static_cast<uint8_t>(value.uuid[15] ^ index);
    value.pci_address = "";
    value.numa_node = instance.machine.numa_node;
    value.units = instance.machine.cores;
    value.l2_bytes = instance.machine.l2_bytes;
    value.heap_count = 1;
    value.heaps = instance.heaps;
    kit::write_struct(out_info, value, "out_info");
  });
}

chipdock_status open(chipdock_plugin* plugin, const chipdock_device_open_desc* given,
                     chipdock_device** out_device, chipdock_error* error) {
  return kit::guard(error, [&] {
    Instance& instance = Instance::of(plugin);
    chipdock_device*& out = deref(out_device, "out_device");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_device_open_desc, foreign_context), "open desc");
    check_index(instance, desc.index);
    check_flags(desc.flags, 0, "open desc");
    if (desc.foreign_context != nullptr) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "a CPU has no foreign context to join");
    }
    Settings settings = instance.settings;
    apply_options(desc.options, desc.option_count, true, settings);
    auto device = std::make_unique<chipdock_device>(instance, desc.index, settings);
    const std::lock_guard<std::mutex> lock(instance.mutex);
    instance.devices.insert(device.get());
    out = device.release();
  });
}

chipdock_status close(chipdock_device* device, chipdock_error* error) {
  return kit::guard(error, [&] {
    Instance& instance = deref(device, "device").instance;
    {
      const std::lock_guard<std::mutex> lock(instance.mutex);
      instance.devices.erase(device);
    }
    const size_t streams = device->streams.all().size();
    const size_t memories = device->memories.all().size();
    const int64_t others = device->others.load();
    delete device;
    if (streams != 0 || memories != 0 || others != 0) {
      kit::fail(
          CHIPDOCK_INTERNAL, "close found ", memories, " allocations, ", streams, " streams and ",
          others,
          " events, instances or other handles still live [DEV-5]; memory and streams were freed");
    }
  });
}

chipdock_status sync(chipdock_device* device, int64_t timeout_ns, chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    deref(device, "device");
    kit::require(timeout_ns >= -1, "timeout_ns ", timeout_ns, " is neither -1 nor a time [DEV-8]");
    // The lock keeps streams from being destroyed under the wait for them; a fence in each of them
    // outlives both.
    std::vector<PointPtr> fences;
    device->streams.for_each([&](chipdock_stream& stream) {
      if (PointPtr fence = stream.fence()) fences.push_back(std::move(fence));
    });
    const int64_t end = timeout_ns < 0 ? -1 : now_ns() + timeout_ns;
    for (const PointPtr& fence : fences) {
      const int64_t left = timeout_ns < 0 ? -1 : std::max<int64_t>(0, end - now_ns());
      if (!fence->wait(left)) {
        kit::fail(CHIPDOCK_TIMEOUT, "cpu:", device->index, " did not end its work within ",
                  timeout_ns, " ns; it goes on");
      }
    }
    const std::lock_guard<std::mutex> lock(device->mutex);
    if (device->errors.empty()) return;
    status = report(*device->errors.front(), CHIPDOCK_SCOPE_STREAM, error);
    device->errors.pop_front();
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

chipdock_status stats(chipdock_device* device, chipdock_device_stats* out_stats,
                      chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_device_stats value{};
    value.allocated_bytes = device->allocated.load();
    value.peak_bytes = device->peak.load();
    value.allocation_count = device->allocations.load();
    value.launch_count = device->launches.load();
    value.copy_bytes = device->copied.load();
    kit::write_struct(out_stats, value, "out_stats");
  });
}

void check_peer(chipdock_device* device, chipdock_device* peer) {
  kit::require(&deref(device, "device").instance == &deref(peer, "peer").instance,
               "peer belongs to another plugin instance");
}

chipdock_status link(chipdock_device* device, chipdock_device* peer, chipdock_link_info* out_link,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    check_peer(device, peer);
    chipdock_link_info value{};
    value.type = device->index == peer->index ? CHIPDOCK_LINK_SAME : CHIPDOCK_LINK_HOST;
    value.flags = CHIPDOCK_LINK_LOAD_STORE | CHIPDOCK_LINK_ATOMICS;
    value.sharing_group = 1;  // All of them share the memory bus.
    kit::write_struct(out_link, value, "out_link");
  });
}

chipdock_status health(chipdock_device* device, chipdock_health* out_health,
                       chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    kit::write_struct(out_health, chipdock_health{}, "out_health");
  });
}

chipdock_status peer_access(chipdock_device* device, chipdock_device* peer, int32_t enable,
                            chipdock_error* error) {
  // One address space: every device reaches the memory of every other one at all times.
  return kit::guard(error, [&] {
    check_peer(device, peer);
    kit::require(device != peer, "peer_access of a device to itself");
    kit::require(enable == 0 || enable == 1, "enable ", enable, " is neither 0 nor 1");
  });
}

/// Value of a query key, or false.
bool lookup(const chipdock_device& device, const std::string& key, std::string& value) {
  if (key == "keys")
    value = "keys\nisa\nthreads\nstrict\nmemory\nonednn";
  else if (key == "isa")
    value = isa_name(device.settings.isa);
  else if (key == "threads")
    value = std::to_string(device.settings.threads);
  else if (key == "strict")
    value = device.settings.strict ? "1" : "0";
  else if (key == "memory")
    value = std::to_string(device.memory_limit);
  else if (key == "onednn")
    value = CHIPDOCK_HAVE_ONEDNN ? "1" : "0";
  else
    return false;
  return true;
}

chipdock_status query(chipdock_device* device, const char* key, char* buffer, uint64_t size,
                      uint64_t* out_size, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    kit::require(key != nullptr && out_size != nullptr, "key or out_size is NULL");
    std::string value;
    if (!lookup(*device, key, value)) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "query key ", key, " is unknown; the key \"keys\" lists all");
    }
    *out_size = value.size() + 1;
    if (buffer == nullptr) return;
    kit::require(size > value.size(), "query needs ", value.size() + 1, " bytes, the buffer has ",
                 size);
    std::memcpy(buffer, value.c_str(), value.size() + 1);
  });
}

}  // namespace

// reset: the host process is the device; what breaks it cannot be mended from inside.
const chipdock_device_api kDeviceApi = {CHIPDOCK_TABLE(DEVICE, device),
                                        count,
                                        info,
                                        open,
                                        close,
                                        sync,
                                        stats,
                                        link,
                                        health,
                                        nullptr,
                                        peer_access,
                                        query};

}  // namespace chipdock::plugin::cpu

chipdock_device::chipdock_device(chipdock::plugin::cpu::Instance& instance_, int32_t index_,
                                 const chipdock::plugin::cpu::Settings& settings_)
    : instance(instance_),
      index(index_),
      settings(settings_),
      isa_hold(settings_.isa),
      pool(&instance_.pool),
      memory_limit(settings_.memory_limit != 0 ? settings_.memory_limit
                                               : instance_.machine.memory_bytes) {
  if (settings.threads > pool->threads()) {
    own_pool = std::make_unique<chipdock::plugin::cpu::ThreadPool>(settings.threads);
    pool = own_pool.get();
  }
}

chipdock_device::~chipdock_device() {
  for (chipdock_stream* stream : streams.all()) {
    stream->abort();  // Nobody is left who could end its waits.
    streams.take(stream);
  }
  for (chipdock_memory* memory : memories.all()) memories.take(memory);
}

void chipdock_device::stream_failed(chipdock_stream& stream,
                                    const chipdock::plugin::cpu::CausePtr& cause) {
  if (!cause->counted.exchange(true)) {
    const std::lock_guard<std::mutex> lock(mutex);
    errors.push_back(cause);
  }
  chipdock_error error{};
  error.struct_size = sizeof(error);
  chipdock::plugin::cpu::report(*cause, CHIPDOCK_SCOPE_STREAM, &error);
  instance.report(this, &stream, error);
}
