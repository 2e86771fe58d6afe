// SPDX-License-Identifier: Apache-2.0
// Stream-ordered caching allocator of one device. Blocks are split and merged; a block freed while
// several streams used it waits for an event of each. On OUT_OF_MEMORY it waits for pending frees,
// drops its cache, calls the plugin's trim, and tries once more.
#ifndef CHIPDOCK_RUNTIME_ALLOCATOR_HPP_
#define CHIPDOCK_RUNTIME_ALLOCATOR_HPP_

#include <cstdint>
#include <memory>

#include "device.hpp"

namespace chipdock::runtime {

struct AllocatorStats {
  uint64_t used_bytes = 0;      ///< In buffers the host holds, as asked for.
  uint64_t pending_bytes = 0;   ///< Freed, but a stream may still use them.
  uint64_t cached_bytes = 0;    ///< Free for reuse, some of it for one stream only.
  uint64_t reserved_bytes = 0;  ///< Taken from the plugin: used + pending + cached + rounding.
  uint64_t peak_used_bytes = 0;
  uint64_t peak_reserved_bytes = 0;
  uint64_t allocation_count = 0;  ///< Calls since open.
  uint64_t plugin_allocation_count = 0;
  uint64_t retry_count = 0;  ///< Out-of-memory that a trim cured.
};

struct AllocatorState;  // allocator_state.hpp

class Allocator {
 public:
  explicit Allocator(Device& device);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Throws OUT_OF_MEMORY with size, limit, used and free; INVALID_ARGUMENT for size 0.
  std::shared_ptr<Buffer> allocate(uint64_t size, const std::shared_ptr<Stream>& stream);
  AllocatorStats stats() const;
  void reset_peak();
  /// Upper bound of reserved_bytes; 0 = none.
  void set_limit(uint64_t bytes);
  uint64_t limit() const;
  /// Gives cached blocks that no stream can be using back to the plugin, without waiting; returns
  /// the bytes.
  uint64_t trim();

  // For Stream. While a stream is captured its allocations come from a pool of its own, whose
  // memory nobody else gets before the returned token goes: addresses in the graph stay good.
  // [GRA-6]
  std::shared_ptr<void> enter_private_pool(Stream& stream);
  void leave_private_pool(Stream& stream);
  void stream_closing(Stream& stream);  ///< It may not be asked any more …
  void stream_gone(Stream& stream);     ///< … and now its work has ended.

 private:
  std::unique_ptr<AllocatorState> state_;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_ALLOCATOR_HPP_
