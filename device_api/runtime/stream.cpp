// SPDX-License-Identifier: Apache-2.0
// See stream.hpp. Capture is in stream_capture.cpp, events and marks in event.cpp.
#include "stream.hpp"

#include <utility>

#include "allocator.hpp"
#include "graph_capture.hpp"  // NOLINT(misc-include-cleaner): completes what Stream holds
#include "host_queue.hpp"
#include "operation.hpp"
#include "profiler.hpp"

namespace chipdock::runtime {
namespace {

std::atomic<uint64_t> g_last_stream_id{0};

/// Says, for as long as it lives, that this thread runs a host function of a stream. By number: a
/// stream may go while a graph still holds its functions.
class RunningFunction {
 public:
  explicit RunningFunction(uint64_t stream) : stream_(stream), outer_(innermost()) {
    innermost() = this;
  }
  ~RunningFunction() { innermost() = outer_; }
  RunningFunction(const RunningFunction&) = delete;
  RunningFunction& operator=(const RunningFunction&) = delete;
  static bool of(uint64_t stream) {
    const RunningFunction* at = innermost();
    while (at != nullptr && at->stream_ != stream) at = at->outer_;
    return at != nullptr;
  }

 private:
  static const RunningFunction*& innermost() {
    static thread_local const RunningFunction* value = nullptr;
    return value;
  }
  uint64_t stream_;
  const RunningFunction* outer_;
};

bool native_streams(const Device& device) {
  return device.tables().stream.create != nullptr && device.tables().event.create != nullptr;
}

}  // namespace

Stream::Stream() : id_(++g_last_stream_id) {}

std::shared_ptr<Stream> Stream::make(std::shared_ptr<Device> device, int32_t priority,
                                     void* native) {
  device->check_alive();
  std::shared_ptr<Stream> stream(new Stream());
  stream->device_ = std::move(device);
  stream->label_ = stream->device_->name() + " stream " + std::to_string(stream->id_);
  Device& owner = *stream->device_;
  if (native_streams(owner)) {
    chipdock_stream_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.priority = priority;
    desc.native = native;
    ErrorRecord error;
    const chipdock_status status =
        owner.tables().stream.create(owner.handle(), &desc, &stream->handle_, &error);
    owner.check_call(status, error, "stream.create");
    if (stream->handle_ == nullptr) {
      raise(CHIPDOCK_INTERNAL, owner.name(), " stream.create returned OK and no stream [BASE-8]");
    }
  } else {
    stream->queue_ = std::make_unique<HostQueue>(stream->label_);
  }
  owner.enter_stream(stream);
  return stream;
}

std::shared_ptr<Stream> Stream::create(std::shared_ptr<Device> device, int32_t priority) {
  return make(std::move(device), priority, nullptr);
}

std::shared_ptr<Stream> Stream::import(std::shared_ptr<Device> device, void* native) {
  if (native == nullptr)
    raise(CHIPDOCK_INVALID_ARGUMENT, "import of a stream needs a native stream, got NULL");
  if (!native_streams(*device)) {
    raise(CHIPDOCK_UNSUPPORTED, device->name(),
          " has no streams of its own, so none can be imported");
  }
  return make(std::move(device), 0, native);
}

Stream::~Stream() {
  // A stream that was never made has nothing to end.
  if (!device_ || (handle_ == nullptr && !queue_)) return;
  device_->leave_stream(*this);
  device_->allocator().stream_closing(*this);
  if (queue_) {
    queue_->close();
  } else if (device_->callable()) {
    ErrorRecord error;
    const chipdock_graph_api& graphs = device_->tables().graph;
    if (capture_ && capture_->native() && capture_->begun_by(*this)) {
      chipdock_graph* graph = nullptr;
      if (graphs.end_capture(handle_, &graph, &error) == CHIPDOCK_OK)
        graphs.destroy_graph(graph, &error);
    }
    device_->tables().stream.destroy(handle_, &error);
  }
  if (capture_) leave_capture();
  drop_retired(true);
  device_->allocator().stream_gone(*this);
}

void Stream::submit(Operation& operation) {
  device_->check_alive();
  std::unique_lock<std::mutex> lock(mutex_);
  if (capture_) {
    capture_operation(operation);
    return;
  }
  const uint64_t id = device_->next_correlation_id();
  device_->note_operation(id, operation.name());
  if (queue_) {
    push(operation, id);
    lock.unlock();
    if (operation.synchronizes()) queue_->sync(-1);
    return;
  }
  raise_if_failed(operation.name());
  const std::shared_ptr<Profiler> profiler = device_->profiling() ? device_->profiler() : nullptr;
  ProfileScope scope(profiler.get(), operation.name(), "enqueue", device_->name(), label_, id);
  issue_native(operation, id);
}

void Stream::issue_native(Operation& operation, uint64_t correlation_id) {
  Issue issue{*device_, handle_, correlation_id, {}, CHIPDOCK_OK, {}, false};
  operation.issue(issue);
  drop_retired(false);
  if (!issue.keep.empty())
    retired_.emplace_back(StreamMark::record_locked(*this), std::move(issue.keep));
}

void Stream::push(Operation& operation, uint64_t correlation_id) {
  QueueTask task;
  task.name = operation.name();
  task.always = operation.always();
  task.correlation_id = correlation_id;
  HostQueue* queue = queue_.get();
  // The device is held by the task: a stream destroyed by its own task leaves a queue that still
  // runs.
  task.run = [kept = operation.keep(), device = device_, label = label_, queue,
              correlation_id](const Cause& failure) {
    Issue issue{*device, nullptr, correlation_id, {}, failure ? failure->code() : CHIPDOCK_OK,
                {},      false};
    issue.cancelled = [queue] { return queue->cause() != nullptr; };
    const std::shared_ptr<Profiler> profiler = device->profiling() ? device->profiler() : nullptr;
    ProfileScope scope(profiler.get(), kept->name(),
                       device->device_times() ? "call" : kept->category(), device->name(), label,
                       correlation_id);
    if (kept->bytes() != 0) scope.add_arg("bytes", std::to_string(kept->bytes()));
    kept->issue(issue);
  };
  queue_->push(std::move(task));
}

void Stream::drop_retired(bool all) {
  while (!retired_.empty() && (all || retired_.front().first.reached()))
    retired_.erase(retired_.begin());
}

void Stream::raise_if_failed(const char* what) const {
  const Cause first = cause();
  if (!first) return;
  std::ostringstream text;
  text << "FAILED_PRECONDITION: " << what << " was not queued, " << label_ << " has failed with "
       << first->what();
  throw Error(CHIPDOCK_FAILED_PRECONDITION, text.str(), first->vendor_code(), first->scope(),
              first->correlation_id());
}

void Stream::sync(int64_t timeout_ns) {
  check_timeout(timeout_ns);  // a plugin's complaint about it would fail the stream
  device_->check_alive();
  refuse_inside_function("sync");
  refuse_captured("sync");
  if (queue_) {
    queue_->sync(timeout_ns);
    return;
  }
  ErrorRecord error;
  const chipdock_status status = device_->tables().stream.sync(handle_, timeout_ns, &error);
  try {
    device_->check_call(status, error, "stream.sync");
  } catch (const Error& failure) {
    if (failure.code() != CHIPDOCK_TIMEOUT && failure.code() != CHIPDOCK_UNSUPPORTED) fail(failure);
    throw;
  }
  if (const Cause first = cause()) throw Error(*first);
  std::lock_guard<std::mutex> lock(mutex_);
  drop_retired(false);
}

bool Stream::retain(std::shared_ptr<void> memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!capture_) return false;
  capture_->retain(std::move(memory));
  return true;
}

bool Stream::quiet() {
  if (queue_) return queue_->quiet();
  // A query would doom a capture that begins just now; an enqueue in progress means work anyway.
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || capture_ || !device_->callable()) return false;
  ErrorRecord error;
  return device_->tables().stream.query(handle_, &error) != CHIPDOCK_NOT_READY;
}

bool Stream::query() {
  device_->check_alive();
  refuse_captured("query");
  if (queue_) return queue_->idle();
  if (const Cause first = cause()) throw Error(*first);
  ErrorRecord error;
  const chipdock_status status = device_->tables().stream.query(handle_, &error);
  if (status == CHIPDOCK_NOT_READY) return false;
  device_->check_call(status, error, "stream.query");
  return true;
}

void Stream::host_function(std::function<void(chipdock_status)> function) {
  HostFunctionOperation operation(
      [stream = id_, function = std::move(function)](chipdock_status state) {
        const RunningFunction running(stream);
        function(state);
      });
  submit(operation);
}

void Stream::refuse_inside_function(const char* what) const {
  if (!RunningFunction::of(id_)) return;
  raise(CHIPDOCK_FAILED_PRECONDITION, what, " of ", label_,
        " inside a function that runs on this stream would wait for itself; call it from another ",
        "thread, or when the function has returned [STR-7]");
}

void Stream::value(int32_t operation, const Place& where, uint64_t value) {
  const bool native = handle_ != nullptr && device_->tables().stream.value != nullptr;
  if (where.offset % 8 != 0) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "a value stands at offset ", where.offset,
          ", a multiple of 8 is needed");
  }
  if (!native && device_->heap_address(where.memory) == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, device_->name(),
          " has no stream.value, and the host cannot reach its memory ", "to do it instead");
  }
  ValueOperation work(operation, where, value);
  submit(work);
}

void* Stream::native() {
  device_->check_alive();
  if (queue_ || device_->tables().stream.native == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, label_, " has no native stream under it");
  }
  void* native = nullptr;
  ErrorRecord error;
  device_->check_call(device_->tables().stream.native(handle_, &native, &error), error,
                      "stream.native");
  return native;
}

void Stream::abort() {
  const Error aborted(CHIPDOCK_ABORTED, "ABORTED: " + label_ + " was aborted", 0,
                      CHIPDOCK_SCOPE_STREAM);
  if (queue_) {
    queue_->fail(std::make_shared<Error>(aborted));
    return;
  }
  device_->check_alive();
  if (device_->tables().stream.abort == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, label_, " cannot be aborted, its plugin has no stream.abort");
  }
  ErrorRecord error;
  device_->check_call(device_->tables().stream.abort(handle_, &error), error, "stream.abort");
  fail(aborted);
}

void Stream::fail(const Error& error) {
  if (queue_) {
    queue_->fail(std::make_shared<Error>(error));
    return;
  }
  std::lock_guard<std::mutex> lock(cause_mutex_);
  if (!cause_) cause_ = std::make_shared<Error>(error);
  has_failed_.store(true, std::memory_order_release);
}

Cause Stream::cause() const {
  if (queue_) return queue_->cause();
  if (!has_failed_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard<std::mutex> lock(cause_mutex_);
  return cause_;
}

}  // namespace chipdock::runtime
