// SPDX-License-Identifier: Apache-2.0
// The profiler table. Device time is CLOCK_MONOTONIC: the clock of the threads that do the work.
#include "profiler.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace chipdock::plugin::cpu {

/// What a session keeps until flush or stop hands it to the sink.
class Recorder {
 public:
  Recorder(chipdock_device& device, const chipdock_profiler_desc& desc)
      : device_(device),
        kinds_(desc.kinds),
        sink_(desc.sink),
        context_(desc.context),
        room_(desc.buffer_bytes != 0 ? std::max<uint64_t>(1, desc.buffer_bytes / sizeof(Entry))
                                     : kDefaultRoom) {}

  chipdock_device& device() const { return device_; }

  bool wants(int32_t kind) const { return kinds_ == 0 || (kinds_ >> kind & 1u) != 0; }

  void add(const chipdock_profiler_record& record) {
    // The name may die with its module before the sink sees it.
    Entry entry{record, record.name != nullptr ? record.name : ""};
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.size() >= room_) {
      ++dropped_;
    } else {
      entries_.push_back(std::move(entry));
    }
  }

  /// Waits for another delivery in progress; never two at once. [PRF-4]
  void deliver() {
    const std::lock_guard<std::mutex> turn(sink_mutex_);
    std::vector<Entry> entries;
    uint64_t dropped = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      entries.swap(entries_);
      dropped = std::exchange(dropped_, 0);
    }
    if (dropped != 0) {
      chipdock_profiler_record record{};
      record.struct_size = sizeof(record);
      record.kind = CHIPDOCK_PROFILER_DROPPED;
      record.bytes = dropped;
      record.device = &device_;
      entries.push_back({record, ""});
    }
    if (entries.empty()) return;
    std::vector<const chipdock_profiler_record*> records;
    for (Entry& entry : entries) {
      if (entry.record.name != nullptr) entry.record.name = entry.name.c_str();
      records.push_back(&entry.record);
    }
    sink_(context_, records.data(), records.size());
  }

 private:
  static constexpr uint64_t kDefaultRoom = uint64_t{1} << 20;
  struct Entry {
    chipdock_profiler_record record;
    std::string name;
  };

  chipdock_device& device_;
  const uint32_t kinds_;
  void(CHIPDOCK_CALL* const sink_)(void*, const chipdock_profiler_record* const*, uint64_t);
  void* const context_;
  const uint64_t room_;
  std::mutex sink_mutex_;
  std::mutex mutex_;  // Guards the next two.
  std::vector<Entry> entries_;
  uint64_t dropped_ = 0;
};

void ProfileScope::open(chipdock_device& device, int32_t kind, const char* name,
                        uint64_t correlation_id, uint64_t bytes, const RunContext& context) {
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    recorder_ = device.recorder;
  }
  if (recorder_ != nullptr && !recorder_->wants(kind)) recorder_.reset();
  if (recorder_ == nullptr) return;
  record_ = {};
  record_.struct_size = sizeof(record_);
  record_.kind = kind;
  record_.correlation_id = correlation_id;
  record_.parent_id = context.parent_id;
  record_.bytes = bytes;
  record_.name = name;
  record_.device = &device;
  record_.stream = context.stream;
  record_.start_ns = now_ns();
}

void ProfileScope::close() {
  record_.end_ns = now_ns();
  try {
    recorder_->add(record_);
  } catch (const std::bad_alloc&) {
    // A record less is better than work that fails for want of one.
  }
}

}  // namespace chipdock::plugin::cpu

struct chipdock_profiler_session {
  std::shared_ptr<chipdock::plugin::cpu::Recorder> recorder;
};

namespace chipdock::plugin::cpu {
namespace {

constexpr uint32_t kKnownKinds = (1u << (CHIPDOCK_PROFILER_DROPPED + 1)) - 2;

chipdock_status start(chipdock_device* device, const chipdock_profiler_desc* given,
                      chipdock_profiler_session** out_session, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_profiler_session*& out = deref(out_session, "out_session");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_profiler_desc, correlation_id), "profiler desc");
    kit::require(desc.sink != nullptr, "sink is NULL");
    check_flags(desc.kinds, kKnownKinds, "kinds of profiler desc");
    auto session = std::make_unique<chipdock_profiler_session>();
    session->recorder = std::make_shared<Recorder>(*device, desc);
    const std::lock_guard<std::mutex> lock(device->mutex);
    if (device->recorder != nullptr) {
      kit::fail(CHIPDOCK_BUSY, "cpu:", device->index,
                " has a profiler session already; stop it first");
    }
    device->recorder = session->recorder;
    device->profiling.store(true);
    device->others.fetch_add(1);
    out = session.release();
  });
}

chipdock_status stop(chipdock_profiler_session* session, chipdock_error* error) {
  return kit::guard(error, [&] {
    const std::unique_ptr<chipdock_profiler_session> owned(&deref(session, "session"));
    chipdock_device& device = owned->recorder->device();
    {
      const std::lock_guard<std::mutex> lock(device.mutex);
      device.profiling.store(false);
      device.recorder.reset();
    }
    device.others.fetch_sub(1);
    owned->recorder->deliver();
  });
}

chipdock_status flush(chipdock_profiler_session* session, int64_t timeout_ns,
                      chipdock_error* error) {
  // Work hands its record over before it counts as ended, so there is nothing to wait for.
  return kit::guard(error, [&] {
    kit::require(timeout_ns >= -1, "timeout_ns ", timeout_ns, " is neither -1 nor a time [DEV-8]");
    deref(session, "session").recorder->deliver();
  });
}

chipdock_status clock(chipdock_device* device, chipdock_clock_sample* out_sample,
                      chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_clock_sample value{};
    value.host_before_ns = now_ns();
    value.device_ns = now_ns();
    value.host_after_ns = now_ns();
    kit::write_struct(out_sample, value, "out_sample");
  });
}

}  // namespace

const chipdock_profiler_api kProfilerApi = {CHIPDOCK_TABLE(PROFILER, profiler), start, stop, flush,
                                            clock};

}  // namespace chipdock::plugin::cpu
