// SPDX-License-Identifier: Apache-2.0
// What the allocator does when its fast path finds nothing: look again after finished work, take a
// chunk from the plugin, and on out-of-memory wait for streams, drop the cache, trim the plugin,
// try once more.
#include <algorithm>
#include <utility>

#include "allocator_state.hpp"
#include "host_queue.hpp"

namespace chipdock::runtime {
namespace {

constexpr uint64_t kChunk = uint64_t{2} << 20;

}  // namespace

void AllocatorState::poll_pending() {
  for (size_t i = 0; i < pending.size();) {
    auto& marks = pending[i].marks;
    while (!marks.empty() && marks.back()->reached()) marks.pop_back();
    if (!marks.empty()) {
      ++i;
      continue;
    }
    Block* block = pending[i].block;
    Pool* origin = block->pool;
    stats.pending_bytes -= block->size;
    put(general, block);
    unlink_user(origin);
    std::swap(pending[i], pending.back());
    pending.pop_back();
  }
}

void AllocatorState::absorb_idle() {
  for (const auto& pool : pools) {
    if (pool->stream != nullptr && !pool->captured && pool->stream->quiet()) absorb(*pool);
  }
}

uint64_t AllocatorState::trim_free_chunks(std::unique_lock<std::mutex>& lock) {
  std::vector<Chunk*> dropped;
  uint64_t bytes = 0;
  for (auto it = chunks.begin(); it != chunks.end();) {
    Chunk* chunk = *it;
    Block* block = chunk->first;
    if (!block->free || block->pool != &general || block->size != chunk->size) {
      ++it;
      continue;
    }
    general.indices[chunk->small ? 1 : 0].remove(*block);
    block->free_next = spare;
    spare = block;
    stats.cached_bytes -= chunk->size;
    stats.reserved_bytes -= chunk->size;
    bytes += chunk->size;
    dropped.push_back(chunk);
    it = chunks.erase(it);
  }
  lock.unlock();
  for (Chunk* chunk : dropped) {
    device.plugin_free(chunk->memory, chunk->size);
    delete chunk;
  }
  lock.lock();
  return bytes;
}

/// NULL and a reason if the limit or the plugin says no. Other errors of the plugin are thrown.
Chunk* AllocatorState::add_chunk(uint64_t size, bool small, std::string* reason) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (limit != 0 && (size > limit || stats.reserved_bytes > limit - size)) {
      *reason = "the memory limit of " + format_bytes(limit) + " is reached";
      return nullptr;
    }
    stats.reserved_bytes +=
        size;  // Before the call, so that two threads cannot pass the limit together.
  }
  auto chunk = std::make_unique<Chunk>();
  try {
    chunk->memory = device.plugin_alloc(size);
  } catch (const Error& error) {
    std::lock_guard<std::mutex> lock(mutex);
    stats.reserved_bytes -= size;
    if (error.code() != CHIPDOCK_OUT_OF_MEMORY) throw;
    *reason = error.what();
    return nullptr;
  }
  chunk->size = size;
  chunk->small = small;
  chunk->host = static_cast<char*>(device.heap_address(chunk->memory));
  return chunk.release();
}

/// A block of a new chunk; the whole chunk size first, then only what is needed.
Block* AllocatorState::take_new(Pool& wanted, uint64_t size, bool small, std::string* reason) {
  const uint64_t largest = device.info().heaps[0]->max_allocation;
  uint64_t whole = small ? kChunk : (size + kChunk - 1) / kChunk * kChunk;
  if (largest != 0 && whole > largest) whole = size;
  Chunk* chunk = add_chunk(whole, small, reason);
  if (chunk == nullptr && whole != size) chunk = add_chunk(size, small, reason);
  if (chunk == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  stats.peak_reserved_bytes = std::max(stats.peak_reserved_bytes, stats.reserved_bytes);
  ++stats.plugin_allocation_count;
  chunks.insert(chunk);
  Block* block = new_block();
  block->chunk = chunk;
  block->size = chunk->size;
  chunk->first = block;
  put(wanted, block);
  return take_from(wanted, wanted, size, small);
}

/// Waits until no stream uses freed memory any more. Streams in capture keep theirs.
void AllocatorState::wait_for_streams() {
  std::vector<Pending> taken;
  struct Detached {
    std::shared_ptr<Stream> stream;
    Pool* pool;
    std::vector<Block*> blocks;
  };
  std::vector<Detached> detached;
  const auto streams = device.live_streams();
  {
    std::lock_guard<std::mutex> lock(mutex);
    taken.swap(pending);
    for (const auto& stream : streams) {
      if (stream->capturing() || (stream->queue() != nullptr && stream->queue()->on_own_thread()))
        continue;
      Pool* pool = pool_of(*stream);
      if (pool->captured) continue;
      std::vector<Block*> blocks;
      // Taken out before the mark is made: what is freed later may have work behind the mark.
      for (BlockIndex& index : pool->indices) {
        while (Block* block = index.any()) {
          index.remove(*block);
          block->free = false;
          block->pool = &general;
          ++general.live;
          stats.cached_bytes -= block->size;
          stats.pending_bytes += block->size;
          blocks.push_back(block);
        }
      }
      if (!blocks.empty()) detached.push_back({stream, pool, std::move(blocks)});
    }
  }
  for (const Detached& entry : detached) {
    auto mark = StreamMark::record(*entry.stream);
    if (!mark) {
      // A capture began on it just now: the blocks go back to where only this stream gets them.
      std::lock_guard<std::mutex> lock(mutex);
      for (Block* block : entry.blocks) {
        stats.pending_bytes -= block->size;
        put(*entry.pool, block);
        unlink_user(&general);
      }
      continue;
    }
    for (Block* block : entry.blocks) taken.push_back({block, {}});
    taken.back().marks.push_back(std::move(mark));
  }
  for (auto& entry : taken) {
    for (auto& mark : entry.marks) mark->wait();
    entry.marks.clear();
  }
  std::lock_guard<std::mutex> lock(mutex);
  pending.insert(pending.end(), std::make_move_iterator(taken.begin()),
                 std::make_move_iterator(taken.end()));
  poll_pending();
}

Block* AllocatorState::take_slowly(Pool& wanted, uint64_t size, bool small) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++wanted.live;  // Keeps the pool while the lock is not held.
    poll_pending();
    absorb_idle();
    if (Block* block = take(wanted, size, small)) {
      unlink_user(&wanted);
      return block;
    }
  }
  struct Guard {
    AllocatorState& state;
    Pool* pool;
    ~Guard() {
      std::lock_guard<std::mutex> lock(state.mutex);
      state.unlink_user(pool);
    }
  } guard{*this, &wanted};
  std::string reason;
  if (Block* block = take_new(wanted, size, small, &reason)) return block;

  std::lock_guard<std::mutex> one(reclaim_mutex);
  wait_for_streams();
  {
    std::unique_lock<std::mutex> lock(mutex);
    absorb_idle();
    if (Block* block = take(wanted, size, small)) return block;
    trim_free_chunks(lock);
  }
  if (device.tables().memory.trim != nullptr) {
    ErrorRecord ignored;  // Trimming is a favour; the allocation below says how it went.
    device.tables().memory.trim(device.handle(), &ignored);
  }
  Block* block = take_new(wanted, size, small, &reason);
  if (block == nullptr) raise_out_of_memory(size, reason);
  std::lock_guard<std::mutex> lock(mutex);
  ++stats.retry_count;
  return block;
}

void AllocatorState::raise_out_of_memory(uint64_t size, const std::string& reason) {
  std::ostringstream text;
  text << "OUT_OF_MEMORY: alloc of " << format_bytes(size) << " on " << device.name()
       << " failed, ";
  {
    chipdock_memory_info info{};
    try {
      info = device.memory_info(0);
    } catch (const Error&) {
      info.total_bytes = device.info().heaps[0]->bytes;
    }
    text << format_bytes(info.free_bytes) << " of " << format_bytes(info.total_bytes) << " free";
  }
  std::lock_guard<std::mutex> lock(mutex);
  text << ", " << format_bytes(stats.used_bytes) << " in buffers of this process";
  if (limit != 0) text << ", limit " << format_bytes(limit);
  if (!reason.empty()) text << " (" << reason << ")";
  throw Error(CHIPDOCK_OUT_OF_MEMORY, text.str());
}

}  // namespace chipdock::runtime
