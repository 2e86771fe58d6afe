// SPDX-License-Identifier: Apache-2.0
// Opening and closing of devices, work on them, and what the host derives when a slot is absent.
// Errors and asynchronous reports: device_errors.cpp.
#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "allocator.hpp"
#include "device_state.hpp"
#include "host_queue.hpp"
#include "operation.hpp"
#include "profiler.hpp"
#include "profiler_session.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

Device::Device() : state_(std::make_unique<State>()) {}

std::shared_ptr<Device> Device::open(std::shared_ptr<Plugin> plugin, int32_t index,
                                     const Options& options) {
  plugin->check_usable();
  const int32_t count = plugin->device_count();
  if (index < 0 || index >= count) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "device ", plugin->name(), ":", index, " does not exist, ",
          plugin->name(), " has ", count, count == 1 ? " device" : " devices");
  }
  std::shared_ptr<Device> device(new Device());
  device->plugin_ = plugin;
  device->index_ = index;
  device->name_ = plugin->name() + ":" + std::to_string(index);
  device->info_ = plugin->device_info(index);

  std::vector<chipdock_option> pairs(options.size());
  std::vector<const chipdock_option*> pointers;
  for (size_t i = 0; i < options.size(); ++i) {
    pairs[i] = {sizeof(chipdock_option), 0, options[i].first.c_str(), options[i].second.c_str()};
    pointers.push_back(&pairs[i]);
  }
  chipdock_device_open_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.index = index;
  desc.option_count = static_cast<uint32_t>(pointers.size());
  desc.options = pointers.data();
  ErrorRecord error;
  check(plugin->tables().device.open(plugin->handle(), &desc, &device->handle_, &error), error,
        device->name_ + " device.open");
  if (device->handle_ == nullptr) {
    raise(CHIPDOCK_INTERNAL, device->name_, " device.open returned OK and no device [BASE-8]");
  }
  const chipdock_heap& heap = *device->info_.heaps[0];
  const uint64_t wanted =
      heap.sub_allocation_alignment != 0 ? heap.sub_allocation_alignment : heap.alignment;
  device->alignment_ = std::max<uint64_t>(256, wanted);
  const uint32_t readable = CHIPDOCK_HEAP_HOST_VISIBLE | CHIPDOCK_HEAP_COHERENT;
  device->host_visible_ =
      (heap.flags & readable) == readable && plugin->tables().memory.address != nullptr;
  device->allocator_ = std::make_unique<Allocator>(*device);
  plugin->set_report_sink(&Device::report, plugin.get());
  State::enter(*device);
  return device;
}

Device::~Device() {
  if (handle_ == nullptr) return;
  State::leave(*this);
  set_profiler(nullptr);
  allocator_.reset();
  if (!callable()) return;
  ErrorRecord error;
  for (chipdock_event* event : state_->events) tables().event.destroy(event, &error);
  tables().device.close(handle_, &error);
}

std::shared_ptr<Buffer> Device::allocate(uint64_t size, const std::shared_ptr<Stream>& stream) {
  return allocator_->allocate(size, stream);
}

void Device::submit(Operation& operation, Stream* stream) {
  if (stream != nullptr) {
    stream->submit(operation);
    return;
  }
  check_alive();
  Issue issue{*this, nullptr, next_correlation_id(), {}, CHIPDOCK_OK, {}, false};
  if (!profiling()) {
    operation.issue(issue);
    return;
  }
  const std::shared_ptr<Profiler> sink = profiler();
  ProfileScope scope(sink.get(), operation.name(), device_times() ? "call" : operation.category(),
                     name_, "", issue.correlation_id);
  if (operation.bytes() != 0) scope.add_arg("bytes", std::to_string(operation.bytes()));
  operation.issue(issue);
}

void Device::copy(const Place& source, const Place& target, uint64_t size, Stream* stream) {
  state_->copy_bytes.fetch_add(size, std::memory_order_relaxed);
  CopyOperation operation(source, target, size);
  submit(operation, stream);
}

void Device::copy_2d(const Place& source, uint64_t source_pitch, const Place& target,
                     uint64_t target_pitch, uint64_t row_bytes, uint64_t rows, Stream* stream) {
  if (source_pitch < row_bytes || target_pitch < row_bytes) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "copy_2d of rows of ", row_bytes, " bytes with pitches ",
          source_pitch, " and ", target_pitch, "; a pitch is at least as long as a row");
  }
  state_->copy_bytes.fetch_add(row_bytes * rows, std::memory_order_relaxed);
  Copy2dOperation operation(source, source_pitch, target, target_pitch, row_bytes, rows);
  submit(operation, stream);
}

void Device::fill(const Place& target, uint64_t size, const void* pattern, uint32_t pattern_size,
                  Stream* stream) {
  FillOperation operation(target, size, pattern, pattern_size);
  submit(operation, stream);
}

void Device::launch(chipdock_kernel_instance* instance, chipdock_launch_desc& desc, Stream* stream,
                    const char* what) {
  if (stream == nullptr && !profiling()) {
    // The shortest way: no operation object, for kernels that take less than a microsecond.
    check_alive();
    desc.stream = nullptr;
    desc.correlation_id = correlation_.fetch_add(1, std::memory_order_relaxed) + 1;
    ErrorRecord error;
    const chipdock_status status = tables().kernel.launch(instance, &desc, &error);
    if (status != CHIPDOCK_OK)
      raise_call(status, error, (std::string("kernel.launch of ") + what).c_str());
    return;
  }
  state_->launches.fetch_add(1, std::memory_order_relaxed);
  LaunchOperation operation(instance, desc, what);
  submit(operation, stream);
}

void Device::sync(int64_t timeout_ns) {
  check_timeout(timeout_ns);
  check_alive();
  const int64_t end = timeout_ns < 0 ? -1 : now_ns() + timeout_ns;
  const auto left = [&] { return end < 0 ? int64_t{-1} : std::max<int64_t>(0, end - now_ns()); };
  const bool native = tables().device.sync != nullptr;
  for (const auto& stream : live_streams()) {
    if (stream->capturing() || (native && !stream->emulated())) continue;
    stream->sync(left());
  }
  if (!native) return;
  ErrorRecord error;
  check_call(tables().device.sync(handle_, left(), &error), error, "device.sync");
}

chipdock_memory_info Device::memory_info(uint32_t heap) {
  check_alive();
  if (heap >= info_.heap_count) {
    raise(CHIPDOCK_INVALID_ARGUMENT, name_, " has no heap ", heap, ", it has ", info_.heap_count);
  }
  chipdock_memory_info out{};
  out.struct_size = sizeof(out);
  out.heap = heap;
  if (tables().memory.info != nullptr) {
    ErrorRecord error;
    const chipdock_status status = tables().memory.info(handle_, &out, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      check_call(status, error, "memory.info");
      return out;
    }
  }
  out.total_bytes = info_.heaps[heap]->bytes;
  const uint64_t taken = heap == 0 ? state_->allocated_bytes.load(std::memory_order_relaxed) : 0;
  out.free_bytes = out.total_bytes > taken ? out.total_bytes - taken : 0;
  return out;
}

chipdock_device_stats Device::stats() {
  check_alive();
  chipdock_device_stats out{};
  out.struct_size = sizeof(out);
  if (tables().device.stats != nullptr) {
    ErrorRecord error;
    const chipdock_status status = tables().device.stats(handle_, &out, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      check_call(status, error, "device.stats");
      return out;
    }
  }
  out.allocated_bytes = state_->allocated_bytes.load(std::memory_order_relaxed);
  out.peak_bytes = state_->peak_bytes.load(std::memory_order_relaxed);
  out.allocation_count = state_->allocation_count.load(std::memory_order_relaxed);
  // In this order: an id is taken before it is counted among the others.
  const uint64_t others = others_.load(std::memory_order_acquire);
  const uint64_t inline_launches = correlation_.load(std::memory_order_relaxed) - others;
  out.launch_count = inline_launches + state_->launches.load(std::memory_order_relaxed);
  out.copy_bytes = state_->copy_bytes.load(std::memory_order_relaxed);
  return out;
}

namespace {

/// Nanoseconds of one copy, the best of a few: noise only ever adds.
int64_t time_copy(Device& device, const Place& source, const Place& target, uint64_t size) {
  int64_t best = INT64_MAX;
  for (int round = 0; round < 4; ++round) {
    const int64_t start = now_ns();
    device.copy(source, target, size, nullptr);
    best = std::min(best, now_ns() - start);
  }
  return std::max<int64_t>(1, best);
}

Place place_of(const Buffer& buffer) {
  return {buffer.memory(), buffer.offset(), nullptr, buffer.device().get(), false};
}

}  // namespace

chipdock_link_info Device::link(Device& peer) {
  check_alive();
  peer.check_alive();
  chipdock_link_info out{};
  out.struct_size = sizeof(out);
  if (tables().device.link != nullptr && peer.plugin_ == plugin_) {
    ErrorRecord error;
    const chipdock_status status = tables().device.link(handle_, peer.handle_, &out, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      check_call(status, error, "device.link");
      return out;
    }
  }
  constexpr uint64_t kSize = uint64_t{8} << 20;
  const auto here = allocate(kSize, nullptr);
  const auto there = peer.allocate(kSize, nullptr);
  const auto rate = [](int64_t ns) {
    return static_cast<uint64_t>(static_cast<double>(kSize) * 1e9 / static_cast<double>(ns));
  };
  out.bandwidth = rate(time_copy(*this, place_of(*here), place_of(*there), kSize));
  out.reverse_bandwidth = rate(time_copy(*this, place_of(*there), place_of(*here), kSize));
  out.latency_ns = static_cast<uint64_t>(time_copy(*this, place_of(*here), place_of(*there), 8));
  const bool same = peer.plugin_ == plugin_ && peer.index_ == index_;
  out.type = same                      ? CHIPDOCK_LINK_SAME
             : peer.plugin_ != plugin_ ? CHIPDOCK_LINK_HOST
                                       : CHIPDOCK_LINK_UNKNOWN;
  return out;
}

void Device::trim() {
  allocator_->trim();
  if (tables().memory.trim == nullptr || !callable()) return;
  ErrorRecord error;
  const chipdock_status status = tables().memory.trim(handle_, &error);
  if (status != CHIPDOCK_UNSUPPORTED) check_call(status, error, "memory.trim");
}

std::shared_ptr<void> Device::allocate_host(uint64_t size, bool* pinned) {
  check_alive();
  if (size == 0) raise(CHIPDOCK_INVALID_ARGUMENT, "allocate_host needs a size of 1 byte or more");
  *pinned = false;
  if (tables().memory.host_alloc != nullptr) {
    void* host = nullptr;
    ErrorRecord error;
    const chipdock_status status = tables().memory.host_alloc(handle_, size, &host, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      check_call(status, error, "memory.host_alloc");
      *pinned = true;
      return {host, [device = shared_from_this()](void* memory) {
                if (!device->callable()) return;
                ErrorRecord ignored;
                device->tables().memory.host_free(device->handle_, memory, &ignored);
              }};
    }
  }
  void* host = ::operator new(size, std::align_val_t(64), std::nothrow);
  if (host == nullptr) {
    raise(CHIPDOCK_OUT_OF_MEMORY, "host allocation of ", format_bytes(size), " for ", name_,
          " failed");
  }
  return {host, [](void* memory) { ::operator delete(memory, std::align_val_t(64)); }};
}

chipdock_memory* Device::plugin_alloc(uint64_t size) {
  check_alive();
  const chipdock_heap& heap = *info_.heaps[0];
  chipdock_alloc_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.size = size;
  desc.alignment = heap.alignment >= alignment_ ? 0 : alignment_;
  desc.correlation_id = next_correlation_id();
  chipdock_memory* memory = nullptr;
  ErrorRecord error;
  check_call(tables().memory.alloc(handle_, &desc, &memory, &error), error, "memory.alloc");
  if (memory == nullptr) {
    raise(CHIPDOCK_INTERNAL, name_, " memory.alloc returned OK and no memory [BASE-8]");
  }
  const uint64_t now = state_->allocated_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  state_->allocation_count.fetch_add(1, std::memory_order_relaxed);
  uint64_t peak = state_->peak_bytes.load(std::memory_order_relaxed);
  while (peak < now &&
         !state_->peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void Device::plugin_free(chipdock_memory* memory, uint64_t size) noexcept {
  state_->allocated_bytes.fetch_sub(size, std::memory_order_relaxed);
  state_->allocation_count.fetch_sub(1, std::memory_order_relaxed);
  if (!callable()) return;
  ErrorRecord error;
  tables().memory.free(handle_, memory, &error);
}

void* Device::heap_address(chipdock_memory* memory) {
  if (!host_visible() || memory == nullptr) return nullptr;
  void* address = nullptr;
  ErrorRecord error;
  if (tables().memory.address(handle_, memory, &address, &error) == CHIPDOCK_OK) return address;
  host_visible_.store(false, std::memory_order_relaxed);
  return nullptr;
}

chipdock_event* Device::take_event() noexcept {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->events.empty()) {
      chipdock_event* event = state_->events.back();
      state_->events.pop_back();
      return event;
    }
  }
  chipdock_event_desc desc{};
  desc.struct_size = sizeof(desc);
  chipdock_event* event = nullptr;
  ErrorRecord error;
  return tables().event.create(handle_, &desc, &event, &error) == CHIPDOCK_OK ? event : nullptr;
}

void Device::give_event(chipdock_event* event) noexcept {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->events.push_back(event);
}

void Device::enter_stream(const std::shared_ptr<Stream>& stream) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->streams[stream.get()] = stream;
}

void Device::leave_stream(Stream& stream) noexcept {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->streams.erase(&stream);
}

std::vector<std::shared_ptr<Stream>> Device::live_streams() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<std::shared_ptr<Stream>> out;
  for (const auto& entry : state_->streams) {
    if (auto stream = entry.second.lock()) out.push_back(std::move(stream));
  }
  return out;
}

void Device::set_profiler(std::shared_ptr<Profiler> profiler) {
  std::unique_ptr<ProfilerSession> ended;  // Ends after the lock: it delivers the last records.
  std::shared_ptr<Profiler> dropped = profiler;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    ended = std::move(state_->session);
    std::swap(state_->profiler, dropped);
    device_times_.store(false, std::memory_order_relaxed);
    profiling_.store(profiler != nullptr, std::memory_order_release);
  }
  ended.reset();
  if (profiler == nullptr || !callable()) return;
  auto session = ProfilerSession::start(*this, std::move(profiler));
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->session = std::move(session);
  device_times_.store(state_->session != nullptr, std::memory_order_relaxed);
}

std::shared_ptr<Profiler> Device::profiler() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->profiler;
}

}  // namespace chipdock::runtime
