// SPDX-License-Identifier: Apache-2.0
// The objects behind the ABI's handles that every table shares: the plugin instance, an opened
// device, an allocation, a place in memory.
#ifndef CHIPDOCK_PLUGIN_CPU_DEVICE_HPP_
#define CHIPDOCK_PLUGIN_CPU_DEVICE_HPP_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abi.hpp"
#include "isa.hpp"
#include "options.hpp"
#include "stream.hpp"
#include "thread_pool.hpp"
#include "topology.hpp"

namespace chipdock::plugin::cpu {

inline constexpr uint64_t kAlignment = 64;  // A cache line, and a vector of AVX-512.

class KernelList;
class Recorder;

/// One plugin instance: what query made for one host.
struct Instance {
  Instance(const chipdock_host* host_, const Settings& settings_, Machine machine_);
  ~Instance();

  const chipdock_host* host;
  const Settings settings;
  const Machine machine;
  chipdock_plugin plugin{};
  chipdock_heap heap{};
  const chipdock_heap* heaps[1] = {&heap};
  ThreadPool pool;  ///< Shared by all devices that ask for no more threads than it has.
  const std::unique_ptr<KernelList> kernels;
  std::mutex mutex;
  std::set<chipdock_device*> devices;  ///< Guarded by mutex.

  static Instance& of(chipdock_plugin* plugin) {
    kit::require(plugin != nullptr && plugin->state != nullptr, "plugin is NULL");
    return *static_cast<Instance*>(plugin->state);
  }
  void report(chipdock_device* device, chipdock_stream* stream, const chipdock_error& error) const;
};

/// Handles of one kind that are live, so that close can free what was left.
template <class T>
class LiveSet {
 public:
  T* add(std::unique_ptr<T> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.insert(object.get());
    return object.release();
  }
  std::unique_ptr<T> take(T* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(object);
    return std::unique_ptr<T>(object);
  }
  /// Under the lock: nothing can be taken meanwhile.
  template <class Body>
  void for_each(Body body) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (T* object : objects_) body(*object);
  }
  std::vector<T*> all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {objects_.begin(), objects_.end()};
  }

 private:
  std::mutex mutex_;
  std::set<T*> objects_;
};

}  // namespace chipdock::plugin::cpu

struct chipdock_memory {
  explicit chipdock_memory(chipdock_device& device_) : device(device_) {}
  ~chipdock_memory();
  chipdock_memory(const chipdock_memory&) = delete;
  chipdock_memory& operator=(const chipdock_memory&) = delete;

  enum class Kind { kHeap, kMapped, kBorrowed };
  chipdock_device& device;
  Kind kind = Kind::kHeap;
  char* base = nullptr;    ///< What kernels and copies use.
  char* handed = nullptr;  ///< What `address` gives; without access rights in strict mode.
  uint64_t size = 0;       ///< As asked for.
  uint64_t mapped = 0;     ///< Bytes behind base and handed, whole pages if mapped.
  uint64_t charged = 0;    ///< Bytes that count against the device's limit.
  int fd = -1;             ///< Of shared memory.
};

struct chipdock_kernel_instance;
struct chipdock_module;

struct chipdock_device {
  chipdock_device(chipdock::plugin::cpu::Instance& instance_, int32_t index_,
                  const chipdock::plugin::cpu::Settings& settings_);
  ~chipdock_device();
  chipdock_device(const chipdock_device&) = delete;
  chipdock_device& operator=(const chipdock_device&) = delete;

  chipdock::plugin::cpu::Instance& instance;
  const int32_t index;
  const chipdock::plugin::cpu::Settings settings;
  const chipdock::plugin::cpu::IsaHold isa_hold;
  std::unique_ptr<chipdock::plugin::cpu::ThreadPool> own_pool;
  chipdock::plugin::cpu::ThreadPool* pool;
  uint64_t memory_limit;

  std::atomic<uint64_t> allocated{0};
  std::atomic<uint64_t> peak{0};
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copied{0};
  std::atomic<int64_t> others{
      0};  ///< Live events, instances, modules, graphs, …: counted, not freed.
  chipdock::plugin::cpu::LiveSet<chipdock_memory> memories;
  chipdock::plugin::cpu::LiveSet<chipdock_stream> streams;

  std::atomic<bool> profiling{false};  ///< Whether `recorder` is set; read without the mutex.
  std::mutex mutex;                    ///< Guards the next two.
  std::shared_ptr<chipdock::plugin::cpu::Recorder> recorder;
  std::deque<chipdock::plugin::cpu::CausePtr> errors;  ///< Asynchronous, not yet returned by sync.

  /// Keeps an asynchronous error for sync and tells the host.
  void stream_failed(chipdock_stream& stream, const chipdock::plugin::cpu::CausePtr& cause);
};

namespace chipdock::plugin::cpu {

/// The object behind a handle that must not be NULL.
template <class T>
T& deref(T* handle, const char* what) {
  if (handle == nullptr) kit::fail(CHIPDOCK_INVALID_ARGUMENT, what, " is NULL");
  return *handle;
}

/// Throws UNSUPPORTED if flag bits are set that this plugin does not know. [BASE-10]
inline void check_flags(uint32_t flags, uint32_t known, const char* what) {
  if ((flags & ~known) != 0) {
    kit::fail(CHIPDOCK_UNSUPPORTED, what, " has flags ", flags, ", this plugin knows ", known);
  }
}

/// Checks a range against its allocation [MEM-3] and returns its address for kernels and copies.
char* resolve(const chipdock_memory& memory, uint64_t offset, uint64_t size, const char* what);

extern const chipdock_device_api kDeviceApi;
extern const chipdock_memory_api kMemoryApi;
extern const chipdock_stream_api kStreamApi;
extern const chipdock_event_api kEventApi;
extern const chipdock_kernel_api kKernelApi;
extern const chipdock_graph_api kGraphApi;
extern const chipdock_compile_api kCompileApi;
extern const chipdock_profiler_api kProfilerApi;

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_DEVICE_HPP_
