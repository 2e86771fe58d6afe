// SPDX-License-Identifier: Apache-2.0
// The inside of the allocator: pools, pending frees, and the steps of an allocation.
//
// Locks: `mutex` guards all data here and is never held across a call that may wait, nor while a
// stream's lock is taken; a stream's lock may be held when `mutex` is taken.
#ifndef CHIPDOCK_RUNTIME_ALLOCATOR_STATE_HPP_
#define CHIPDOCK_RUNTIME_ALLOCATOR_STATE_HPP_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "allocator.hpp"
#include "block_index.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

/// Free blocks that one stream may use at once; the general pool (no stream) serves everyone.
struct Pool {
  Stream* stream = nullptr;  ///< NULL: general, private, or the stream is going.
  bool general = false;
  bool captured = false;  ///< Belongs to a graph; nothing leaves it before the graph goes.
  bool dead = false;      ///< Blocks that come back go to the general pool.
  uint64_t live = 0;      ///< Allocated blocks that return here.
  void* outer = nullptr;  ///< Captured: the stream's pool before.
  BlockIndex indices[2];  ///< Large, small.
};

/// A freed block that streams may still be using.
struct Pending {
  Block* block = nullptr;
  std::vector<std::unique_ptr<StreamMark>> marks;
};

struct AllocatorState {
  explicit AllocatorState(Device& owner);
  ~AllocatorState();

  std::shared_ptr<Buffer> allocate(uint64_t size, const std::shared_ptr<Stream>& stream);
  /// A buffer has gone. `owner` is the stream it was allocated for, 0 for none; `used` the others.
  void release(Block* block, uint64_t size, uint64_t owner,
               const std::vector<std::weak_ptr<Stream>>& used);
  /// A block that was kept for a graph is free for everyone.
  void release_retained(Block* block);
  uint64_t trim_free_chunks(std::unique_lock<std::mutex>& lock);
  void absorb_idle();
  void poll_pending();

  // Under `mutex`:
  Pool* pool_of(Stream& stream);
  Block* take(Pool& wanted, uint64_t size, bool small);
  Block* take_from(Pool& pool, Pool& wanted, uint64_t size, bool small);
  void put(Pool& pool, Block* block);
  void put_back(Block* block);
  void unlink_user(Pool* pool);
  void absorb(Pool& pool);
  Block* new_block();

  // Not under `mutex`; may wait:
  Block* take_slowly(Pool& wanted, uint64_t size, bool small);
  Block* take_new(Pool& wanted, uint64_t size, bool small, std::string* reason);
  Chunk* add_chunk(uint64_t size, bool small, std::string* reason);
  void wait_for_streams();
  [[noreturn]] void raise_out_of_memory(uint64_t size, const std::string& reason);

  Device& device;
  const uint64_t alignment;
  mutable std::mutex mutex;
  std::mutex reclaim_mutex;  ///< One thread waits for streams; others then find what it freed.
  Pool general;
  std::vector<std::unique_ptr<Pool>> pools;
  std::vector<Pending> pending;
  std::unordered_set<Chunk*> chunks;
  std::vector<std::unique_ptr<Block[]>> slabs;
  Block* spare = nullptr;  ///< Unused Block records, linked by free_next.
  AllocatorStats stats;
  uint64_t limit = 0;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_ALLOCATOR_STATE_HPP_
