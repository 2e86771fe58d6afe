// SPDX-License-Identifier: Apache-2.0
// Streams and events of the host: native where the plugin has them, else a queue thread of ours
// that makes NULL-stream calls. Errors are sticky in the stream and keep their first cause. [STR-3]
// [STR-4]
#ifndef CHIPDOCK_RUNTIME_STREAM_HPP_
#define CHIPDOCK_RUNTIME_STREAM_HPP_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "graph.hpp"

namespace chipdock::runtime {

class Capture;      // graph_capture.hpp
class HostQueue;    // host_queue.hpp: the emulation of a stream.
struct EventState;  // host_queue.hpp: the emulation of an event.

class Event {
 public:
  static std::shared_ptr<Event> create(std::shared_ptr<Device> device, bool timing);
  ~Event();
  /// NULL: reached now. Throws FAILED_PRECONDITION if the stream has failed.
  void record(Stream* stream);
  bool query();                        ///< Throws the stream's first cause.
  void sync(int64_t timeout_ns = -1);  ///< Throws TIMEOUT or the first cause.
  /// Nanoseconds from `start` to this event. Throws NOT_READY while one is not reached.
  int64_t elapsed_since(Event& start);
  const std::shared_ptr<Device>& device() const { return device_; }
  chipdock_event* handle() const { return handle_; }  ///< NULL if emulated.

 private:
  friend class Stream;
  Event() = default;
  void refuse_captured(const char* what);
  void stamp(Stream* stream);

  std::shared_ptr<Device> device_;
  chipdock_event* handle_ = nullptr;
  bool timing_ = false;
  std::mutex mutex_;  ///< Over what follows: the last record.
  std::shared_ptr<EventState>
      state_;  ///< Emulated point, or host time of a native event without `elapsed`.
  std::weak_ptr<Capture> capture_;              ///< Recorded inside this capture …
  std::map<uint64_t, uint64_t> capture_point_;  ///< … at this point; empty otherwise.
};

/// A point in a stream for the allocator and for borrowed host memory. It owns no device and no
/// stream, so that memory which waits for it keeps nothing alive.
class StreamMark {
 public:
  StreamMark() = default;
  ~StreamMark();
  StreamMark(StreamMark&& other) noexcept;
  StreamMark& operator=(StreamMark&& other) noexcept;
  /// A point behind the stream's work so far. Of a failed stream it counts as reached: nothing runs
  /// there any more. NULL if the stream is being captured.
  static std::unique_ptr<StreamMark> record(Stream& stream);
  bool reached();
  void wait();

 private:
  friend class Stream;
  static StreamMark record_locked(Stream& stream);
  Device* device_ = nullptr;
  chipdock_event* event_ = nullptr;
  std::shared_ptr<EventState> point_;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  static std::shared_ptr<Stream> create(std::shared_ptr<Device> device, int32_t priority = 0);
  /// Wraps a stream of the vendor's API (torch, …). The caller keeps it alive.
  static std::shared_ptr<Stream> import(std::shared_ptr<Device> device, void* native);
  ~Stream();

  const std::shared_ptr<Device>& device() const { return device_; }
  chipdock_stream* handle() const { return handle_; }  ///< NULL if emulated.
  bool emulated() const { return queue_ != nullptr; }
  HostQueue* queue() const { return queue_.get(); }
  uint64_t id() const { return id_; }                  ///< Unique in the process, never 0.
  const std::string& label() const { return label_; }  ///< "acme:0 stream 3"
  /// Held by every enqueue: the host serialises enqueues on one stream.
  std::mutex& enqueue_mutex() { return mutex_; }

  void submit(Operation& operation);   ///< Device::submit ends here.
  void sync(int64_t timeout_ns = -1);  ///< Throws TIMEOUT or the first cause.
  bool query();                        ///< Whether all work has ended. Throws the first cause.
  void wait(Event& event);             ///< On the host if the two share no plugin.
  /// Runs `function` once in stream order, with the stream's state. A sync of this stream inside of
  /// it would wait for itself and throws FAILED_PRECONDITION. [STR-7]
  void host_function(std::function<void(chipdock_status)> function);
  /// Writes or waits for a 64-bit value, CHIPDOCK_VALUE_*. Throws UNSUPPORTED if neither plugin nor
  /// host can.
  void value(int32_t operation, const Place& where, uint64_t value);
  void* native();  ///< Throws UNSUPPORTED if emulated or the plugin has no such slot.
  void abort();    ///< Afterwards the stream has failed with ABORTED.

  /// Makes an error sticky here; the first cause stays.
  void fail(const Error& error);
  Cause cause() const;

  // Capture and replay. Between begin and end, work queued on this stream is recorded and not run.
  void begin_capture();
  std::shared_ptr<Graph> end_capture();  ///< Throws what doomed the capture; it is over then too.
  /// Throws FAILED_PRECONDITION on a thread that runs a host function of this stream.
  void refuse_inside_function(const char* what) const;
  /// Makes the capture fail with `error` at its end; nothing if none is going on.
  void doom_capture(const Error& error) noexcept;
  /// Keeps `memory` as long as the graph that is being captured; nothing if none is.
  void keep_in_capture(std::shared_ptr<void> memory) { retain(std::move(memory)); }
  bool capturing() const { return captured_.load(std::memory_order_acquire); }

 private:
  friend class Allocator;
  friend struct AllocatorState;
  friend class Device;
  friend class Event;
  friend class StreamMark;
  Stream();
  static std::shared_ptr<Stream> make(std::shared_ptr<Device> device, int32_t priority,
                                      void* native);
  void push(Operation& operation, uint64_t correlation_id);
  void issue_native(Operation& operation, uint64_t correlation_id);
  void capture_operation(Operation& operation);
  void enter_capture(std::shared_ptr<Capture> capture);
  void leave_capture();
  void refuse_captured(const char* what);
  void raise_if_failed(const char* what) const;
  /// For the allocator: no work is in flight. Never waits; false if it cannot tell.
  bool quiet();
  /// Keeps `memory` until the graph that is being captured goes; false if none is.
  bool retain(std::shared_ptr<void> memory);
  void drop_retired(bool all);

  std::shared_ptr<Device> device_;
  chipdock_stream* handle_ = nullptr;
  std::unique_ptr<HostQueue> queue_;
  uint64_t id_;
  std::string label_;
  std::mutex mutex_;
  std::atomic<bool> captured_{false};
  std::shared_ptr<Capture> capture_;  ///< Under mutex_.
  mutable std::mutex cause_mutex_;
  Cause cause_;  ///< Host's view of a native stream's failure.
  std::atomic<bool> has_failed_{
      false};             ///< Set behind cause_: most calls need no lock to see that.
  void* pool_ = nullptr;  ///< The allocator's, under its lock.
  std::vector<std::pair<StreamMark, std::vector<std::shared_ptr<void>>>> retired_;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_STREAM_HPP_
