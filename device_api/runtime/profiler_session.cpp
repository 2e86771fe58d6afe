// SPDX-License-Identifier: Apache-2.0
// See profiler_session.hpp. Records are kept in device time until the session ends: only then are
// there two clock samples far enough apart to see drift. [PRF-2]
#include "profiler_session.hpp"

#include <utility>

namespace chipdock::runtime {
namespace {

const char* category_of(int32_t kind) {
  switch (kind) {
    case CHIPDOCK_PROFILER_KERNEL:
      return "kernel";
    case CHIPDOCK_PROFILER_COPY:
      return "copy";
    case CHIPDOCK_PROFILER_FILL:
      return "fill";
    case CHIPDOCK_PROFILER_EXECUTE:
      return "execute";
    case CHIPDOCK_PROFILER_GRAPH:
      return "graph";
    case CHIPDOCK_PROFILER_COLLECTIVE:
      return "collective";
    case CHIPDOCK_PROFILER_WAIT:
      return "wait";
    case CHIPDOCK_PROFILER_DROPPED:
      return "dropped";
    default:
      return "other";
  }
}

}  // namespace

ProfilerSession::ProfilerSession(Device& device, std::shared_ptr<Profiler> profiler)
    : device_(device), profiler_(std::move(profiler)) {}

std::unique_ptr<ProfilerSession> ProfilerSession::start(Device& device,
                                                        std::shared_ptr<Profiler> profiler) {
  const chipdock_profiler_api& api = device.tables().profiler;
  if (api.start == nullptr || api.stop == nullptr || api.clock == nullptr) return nullptr;
  std::unique_ptr<ProfilerSession> session(new ProfilerSession(device, std::move(profiler)));
  session->take_clock();
  chipdock_profiler_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.sink = &ProfilerSession::sink;
  desc.context = session.get();
  desc.correlation_id = device.next_correlation_id();
  ErrorRecord error;
  if (session->clock_.empty() ||
      api.start(device.handle(), &desc, &session->session_, &error) != CHIPDOCK_OK) {
    session->session_ = nullptr;
    return nullptr;
  }
  return session;
}

ProfilerSession::~ProfilerSession() {
  if (session_ == nullptr) return;
  if (device_.callable()) {
    ErrorRecord error;
    device_.tables().profiler.stop(session_, &error);
    take_clock();
  }
  deliver();
}

void ProfilerSession::take_clock() {
  chipdock_clock_sample sample{};
  sample.struct_size = sizeof(sample);
  ErrorRecord error;
  if (device_.tables().profiler.clock(device_.handle(), &sample, &error) != CHIPDOCK_OK) return;
  const int64_t host = sample.host_before_ns + (sample.host_after_ns - sample.host_before_ns) / 2;
  clock_.push_back({sample.device_ns, host});
}

int64_t ProfilerSession::to_host(int64_t device_ns) const {
  const Sample& first = clock_.front();
  const Sample& last = clock_.back();
  const double since = static_cast<double>(device_ns - first.device_ns);
  const int64_t span = last.device_ns - first.device_ns;
  // Under 10 ms the error of the samples is larger than any drift.
  if (span < 10'000'000) return first.host_ns + (device_ns - first.device_ns);
  return first.host_ns +
         static_cast<int64_t>(since * static_cast<double>(last.host_ns - first.host_ns) /
                              static_cast<double>(span));
}

void ProfilerSession::deliver() {
  for (ProfileRecord& record : records_) {
    const int64_t start = to_host(record.start_ns);
    record.duration_ns = to_host(record.start_ns + record.duration_ns) - start;
    record.start_ns = start;
    profiler_->add(std::move(record));
  }
  records_.clear();
}

void CHIPDOCK_CALL ProfilerSession::sink(void* context,
                                         const chipdock_profiler_record* const* records,
                                         uint64_t count) {
  auto& self = *static_cast<ProfilerSession*>(context);
  const std::lock_guard<std::mutex> lock(self.mutex_);
  for (uint64_t i = 0; i < count; ++i) {
    const chipdock_profiler_record& given = *records[i];
    ProfileRecord record;
    record.category = category_of(given.kind);
    const std::string operation = self.device_.operation_name(given.correlation_id);
    record.name = !operation.empty()      ? operation
                  : given.name != nullptr ? given.name
                                          : record.category;
    record.start_ns = given.start_ns;
    record.duration_ns = given.end_ns - given.start_ns;
    record.device = self.device_.name();
    record.thread = "device engine " + std::to_string(given.engine);
    record.correlation_id = given.correlation_id;
    if (given.name != nullptr) record.args.emplace_back("kernel", given.name);
    if (given.bytes != 0) record.args.emplace_back("bytes", std::to_string(given.bytes));
    if (given.parent_id != 0) record.args.emplace_back("launch", std::to_string(given.parent_id));
    self.records_.push_back(std::move(record));
  }
}

}  // namespace chipdock::runtime
