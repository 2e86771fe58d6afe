// SPDX-License-Identifier: Apache-2.0
// An opened device as the rest of the host uses it: every operation of the memory, stream and event
// tables, native where the plugin has the slot and emulated where it has not. Callers never test
// slots. Buffers come from the device's caching allocator (allocator.hpp).
#ifndef CHIPDOCK_RUNTIME_DEVICE_HPP_
#define CHIPDOCK_RUNTIME_DEVICE_HPP_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "plugin.hpp"

namespace chipdock::runtime {

class Allocator;
class Device;
class Event;
class Operation;  // operation.hpp: one copy, fill, launch, … as data.
class Profiler;   // profiler.hpp
class Stream;

using Cause = std::shared_ptr<const Error>;

/// A piece of device memory. Given back to the allocator when the last shared_ptr goes; it is used
/// again only behind the work that was queued on the streams it was used on.
class Buffer {
 public:
  Buffer(std::shared_ptr<Device> device, chipdock_memory* memory, uint64_t offset, uint64_t size)
      : device_(std::move(device)), memory_(memory), offset_(offset), size_(size) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  chipdock_memory* memory() const { return memory_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return size_; }
  /// Host address of the first byte if the heap is HOST_VISIBLE and COHERENT, else NULL.
  void* host_address() const { return host_address_; }
  /// Says that `stream` uses the buffer; its reuse waits for the stream's work so far. NULL is
  /// ignored.
  virtual void used_on(const std::shared_ptr<Stream>& stream) = 0;

 protected:
  std::shared_ptr<Device> device_;
  chipdock_memory* memory_;
  uint64_t offset_;
  uint64_t size_;
  void* host_address_ = nullptr;
};

/// "4.0 GiB", "512 B": for messages.
std::string format_bytes(uint64_t bytes);

/// Where a copy reads or writes: part of a buffer's memory, or host memory.
struct Place {
  chipdock_memory* memory = nullptr;
  uint64_t offset = 0;
  void* host = nullptr;
  Device* device = nullptr;  ///< Owner of `memory`; NULL = the device of the call.
  bool pinned = false;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Opens device `index` of `plugin`. Throws Error.
  static std::shared_ptr<Device> open(std::shared_ptr<Plugin> plugin, int32_t index,
                                      const Options& options);
  ~Device();

  const std::shared_ptr<Plugin>& plugin() const { return plugin_; }
  const Tables& tables() const { return plugin_->tables(); }
  chipdock_device* handle() const { return handle_; }
  int32_t index() const { return index_; }
  const std::string& name() const { return name_; }  ///< "acme:0"
  const chipdock_device_info& info() const { return info_; }
  bool prefers_inline() const { return (info_.flags & CHIPDOCK_DEVICE_PREFERS_INLINE) != 0; }
  /// Default heap is HOST_VISIBLE and COHERENT and the address slot works.
  bool host_visible() const { return host_visible_.load(std::memory_order_relaxed); }
  uint64_t alignment() const {
    return alignment_;
  }  ///< max(256, heap 0's sub-allocation alignment).
  Allocator& allocator() { return *allocator_; }

  /// Memory from the caching allocator, for use on `stream` (NULL: inline work). Never size 0.
  /// Throws. Before another stream or the host uses it, work of `stream` up to now must have ended
  /// or be waited for.
  std::shared_ptr<Buffer> allocate(uint64_t size, const std::shared_ptr<Stream>& stream);

  // Copies and fills. `stream` NULL: ended on return. A host source or target of a queued copy must
  // live until the copy ended. Sizes and ranges are the caller's duty (the validate layer checks
  // them).
  void copy(const Place& source, const Place& target, uint64_t size, Stream* stream);
  void copy_2d(const Place& source, uint64_t source_pitch, const Place& target,
               uint64_t target_pitch, uint64_t row_bytes, uint64_t rows, Stream* stream);
  void fill(const Place& target, uint64_t size, const void* pattern, uint32_t pattern_size,
            Stream* stream);

  /// kernel.launch on a native stream, or queued on an emulated one (the desc is deep-copied then,
  /// host inputs too). With host outputs or an output allocator it returns when the launch has
  /// ended. `desc.stream` and `desc.correlation_id` are set here; `what` names the operation in
  /// later errors.
  void launch(chipdock_kernel_instance* instance, chipdock_launch_desc& desc, Stream* stream,
              const char* what);

  /// Runs `operation` inline (NULL) or queues it on `stream`; copy, fill and launch end here.
  void submit(Operation& operation, Stream* stream);
  void sync(int64_t timeout_ns = -1);  ///< All streams of this device. Throws the first cause.
  chipdock_memory_info memory_info(uint32_t heap = 0);
  chipdock_device_stats stats();
  chipdock_link_info link(Device& peer);  ///< Measured by a copy if the plugin cannot tell.
  void trim();
  std::shared_ptr<void> allocate_host(uint64_t size, bool* pinned);  ///< Pinned if the plugin can.

  /// A name for one operation, never 0.
  uint64_t next_correlation_id() {
    const uint64_t id = correlation_.fetch_add(1, std::memory_order_relaxed) + 1;
    others_.fetch_add(1, std::memory_order_release);
    return id;
  }
  /// The newest name given: what is queued from now on gets greater ones.
  uint64_t last_correlation_id() const { return correlation_.load(std::memory_order_relaxed); }
  /// Remembers what an id stands for, so that an asynchronous error can name its operation.
  void note_operation(uint64_t correlation_id, const char* what);
  std::string operation_name(uint64_t correlation_id) const;
  /// Throws the sticky device error if there is one, SHUTDOWN or FORKED.
  void check_alive() const {
    plugin_->check_usable();
    if (failed_.load(std::memory_order_acquire)) raise_failed();
  }
  /// As check_alive, for destructors: may slots still be called to drop handles?
  bool callable() const noexcept;
  /// Makes an error of scope device sticky; the first cause stays.
  void fail(const Error& error);
  /// Throws unless OK. The text names the operation of a correlation id; DEVICE_LOST,
  /// RESET_REQUIRED and errors of scope device become sticky.
  void check_call(chipdock_status status, const chipdock_error& error, const char* slot) {
    if (status != CHIPDOCK_OK) raise_call(status, error, slot);
  }

  /// Spans of all later operations go to `profiler`; NULL ends that. Device times where the plugin
  /// has them.
  void set_profiler(std::shared_ptr<Profiler> profiler);
  std::shared_ptr<Profiler> profiler() const;
  bool profiling() const { return profiling_.load(std::memory_order_acquire); }
  /// Device times are being recorded: the host's own spans are of category "call" then.
  bool device_times() const { return device_times_.load(std::memory_order_relaxed); }

  // For the allocator: whole blocks of heap 0, counted in stats().
  chipdock_memory* plugin_alloc(uint64_t size);  ///< Throws Error of the plugin as it is.
  void plugin_free(chipdock_memory* memory, uint64_t size) noexcept;
  /// Address of `memory` if the host may use it as a pointer, else NULL.
  void* heap_address(chipdock_memory* memory);

  // Native events for StreamMark, used again and again. NULL if the plugin gives none.
  chipdock_event* take_event() noexcept;
  void give_event(chipdock_event* event) noexcept;

  // Streams enter themselves, so that sync finds them and the allocator can ask them.
  void enter_stream(const std::shared_ptr<Stream>& stream);
  void leave_stream(Stream& stream) noexcept;
  std::vector<std::shared_ptr<Stream>> live_streams() const;

 private:
  struct State;
  Device();
  [[noreturn]] void raise_failed() const;
  [[noreturn]] void raise_call(chipdock_status status, const chipdock_error& error,
                               const char* slot);
  static void report(void* plugin, chipdock_device* device, chipdock_stream* stream,
                     const chipdock_error& error);
  void take_report(chipdock_stream* stream, const chipdock_error& error);
  std::shared_ptr<Plugin> plugin_;
  chipdock_device* handle_ = nullptr;
  int32_t index_ = 0;
  std::string name_;
  chipdock_device_info info_{};
  std::atomic<bool> host_visible_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> profiling_{false};
  std::atomic<bool> device_times_{false};
  uint64_t alignment_ = 256;
  // Two counters for three facts, since each costs as much as the rest of a launch: an inline launch
  // takes an id and does nothing else, so the ids that are not counted as others are launches.
  std::atomic<uint64_t> correlation_{0};  ///< Last id given.
  std::atomic<uint64_t> others_{0};       ///< Ids given to anything but inline launches.
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<State> state_;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_DEVICE_HPP_
