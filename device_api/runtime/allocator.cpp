// SPDX-License-Identifier: Apache-2.0
// The fast path of the allocator, its buffers, and the public face. What happens when memory is
// short is in allocator_reclaim.cpp.
#include "allocator.hpp"

#include <algorithm>
#include <utility>

#include "allocator_state.hpp"

namespace chipdock::runtime {
namespace {

constexpr uint64_t kSmallLimit = uint64_t{1} << 20;
constexpr uint64_t kLargeRemainder = uint64_t{64}
                                     << 10;  // Smaller rests of large chunks serve nobody.
constexpr size_t kSlabBlocks = 256;

class BlockBuffer final : public Buffer {
 public:
  BlockBuffer(std::shared_ptr<Device> device, AllocatorState& state, Block* block, uint64_t size,
              uint64_t owner)
      : Buffer(std::move(device), block->chunk->memory, block->offset, size),
        state_(state),
        block_(block),
        owner_(owner) {
    if (block->chunk->host != nullptr) host_address_ = block->chunk->host + block->offset;
  }
  ~BlockBuffer() override { state_.release(block_, size_, owner_, used_); }

  void used_on(const std::shared_ptr<Stream>& stream) override {
    if (!stream || stream->id() == owner_) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (stream->id() == last_) return;
    last_ = stream->id();
    for (const auto& other : used_) {
      if (!other.owner_before(stream) && !stream.owner_before(other)) return;
    }
    used_.push_back(stream);
  }

 private:
  AllocatorState& state_;
  Block* block_;
  const uint64_t owner_;
  uint64_t last_ = 0;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> used_;
};

/// Holds a block for a graph that is being captured.
struct RetainedBlock {
  std::shared_ptr<Device> device;
  AllocatorState* state;
  Block* block;  ///< NULL: not taken over after all.
  ~RetainedBlock() {
    if (block != nullptr) state->release_retained(block);
  }
};

}  // namespace

AllocatorState::AllocatorState(Device& owner) : device(owner), alignment(owner.alignment()) {
  general.general = true;
}

AllocatorState::~AllocatorState() {
  // Every stream has gone, and with it every piece of work that used memory.
  pending.clear();
  for (Chunk* chunk : chunks) {
    device.plugin_free(chunk->memory, chunk->size);
    delete chunk;
  }
}

Block* AllocatorState::new_block() {
  if (spare == nullptr) {
    slabs.push_back(std::make_unique<Block[]>(kSlabBlocks));
    for (size_t i = 0; i < kSlabBlocks; ++i) {
      slabs.back()[i].free_next = spare;
      spare = &slabs.back()[i];
    }
  }
  Block* block = spare;
  spare = block->free_next;
  *block = Block();
  return block;
}

Pool* AllocatorState::pool_of(Stream& stream) {
  if (stream.pool_ == nullptr) {
    pools.push_back(std::make_unique<Pool>());
    pools.back()->stream = &stream;
    stream.pool_ = pools.back().get();
  }
  return static_cast<Pool*>(stream.pool_);
}

Block* AllocatorState::take(Pool& wanted, uint64_t size, bool small) {
  Block* block = take_from(wanted, wanted, size, small);
  if (block == nullptr && !wanted.general) block = take_from(general, wanted, size, small);
  return block;
}

Block* AllocatorState::take_from(Pool& pool, Pool& wanted, uint64_t size, bool small) {
  BlockIndex& index = pool.indices[small ? 1 : 0];
  Block* block = index.find(size);
  if (block == nullptr) return nullptr;
  index.remove(*block);
  stats.cached_bytes -= block->size;
  const uint64_t rest = block->size - size;
  if (rest >= (small ? alignment : kLargeRemainder)) {
    Block* tail = new_block();
    tail->chunk = block->chunk;
    tail->offset = block->offset + size;
    tail->size = rest;
    tail->previous = block;
    tail->next = block->next;
    if (tail->next != nullptr) tail->next->previous = tail;
    tail->pool = &pool;
    tail->free = true;
    block->next = tail;
    block->size = size;
    index.add(*tail);
    stats.cached_bytes += rest;
  }
  block->free = false;
  block->pool = &wanted;
  ++wanted.live;
  return block;
}

/// Makes a block free in `pool` and merges it with free neighbours of the same pool.
void AllocatorState::put(Pool& pool, Block* block) {
  BlockIndex& index = pool.indices[block->chunk->small ? 1 : 0];
  stats.cached_bytes += block->size;
  const auto swallow = [&](Block* left, Block* right) {
    left->size += right->size;
    left->next = right->next;
    if (left->next != nullptr) left->next->previous = left;
    right->free_next = spare;
    spare = right;
  };
  Block* next = block->next;
  if (next != nullptr && next->free && next->pool == &pool) {
    index.remove(*next);
    swallow(block, next);
  }
  Block* previous = block->previous;
  if (previous != nullptr && previous->free && previous->pool == &pool) {
    index.remove(*previous);
    swallow(previous, block);
    block = previous;
  }
  block->pool = &pool;
  block->free = true;
  index.add(*block);
}

/// Ends one use of `pool`; a dead pool goes with its last.
void AllocatorState::unlink_user(Pool* pool) {
  if (--pool->live != 0 || !pool->dead) return;
  pools.erase(
      std::find_if(pools.begin(), pools.end(), [&](const auto& p) { return p.get() == pool; }));
}

void AllocatorState::put_back(Block* block) {
  Pool* pool = block->pool;
  put(pool->dead ? general : *pool, block);
  unlink_user(pool);
}

void AllocatorState::absorb(Pool& pool) {
  for (BlockIndex& index : pool.indices) {
    while (Block* block = index.any()) {
      index.remove(*block);
      block->free = false;
      stats.cached_bytes -= block->size;
      put(general, block);
    }
  }
}

std::shared_ptr<Buffer> AllocatorState::allocate(uint64_t size,
                                                 const std::shared_ptr<Stream>& stream) {
  if (size == 0)
    raise(CHIPDOCK_INVALID_ARGUMENT, "alloc on ", device.name(), " needs a size of 1 byte or more");
  if (size > UINT64_MAX - (uint64_t{4} << 20)) raise_out_of_memory(size, "");
  const uint64_t rounded = (size + alignment - 1) & ~(alignment - 1);
  const bool small = rounded <= kSmallLimit;
  Block* block;
  Pool* wanted;
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++stats.allocation_count;
    wanted = stream ? pool_of(*stream) : &general;
    block = take(*wanted, rounded, small);
    if (block != nullptr) {
      stats.used_bytes += size;
      if (stats.used_bytes > stats.peak_used_bytes) stats.peak_used_bytes = stats.used_bytes;
    }
  }
  if (block == nullptr) {
    block = take_slowly(*wanted, rounded, small);
    std::lock_guard<std::mutex> lock(mutex);
    stats.used_bytes += size;
    stats.peak_used_bytes = std::max(stats.peak_used_bytes, stats.used_bytes);
  }
  return std::make_shared<BlockBuffer>(device.shared_from_this(), *this, block, size,
                                       stream ? stream->id() : 0);
}

void AllocatorState::release(Block* block, uint64_t size, uint64_t owner,
                             const std::vector<std::weak_ptr<Stream>>& used) {
  std::vector<std::shared_ptr<Stream>> streams;
  for (const auto& weak : used) {
    if (auto stream = weak.lock()) streams.push_back(std::move(stream));
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    stats.used_bytes -= size;
    if (streams.empty()) {
      put_back(block);
      return;
    }
    if (owner == 0 && streams.size() == 1) {
      // One stream used it and nobody else: it is as good as allocated there.
      Pool* origin = block->pool;
      put(*pool_of(*streams[0]), block);
      unlink_user(origin);
      return;
    }
    stats.pending_bytes += block->size;
  }
  if (owner != 0) {
    for (auto& stream : device.live_streams()) {
      if (stream->id() == owner) streams.push_back(std::move(stream));
    }
  }
  Pending entry;
  entry.block = block;
  for (const auto& stream : streams) {
    auto mark = StreamMark::record(*stream);
    if (!mark) {
      // A capture takes no marks: its graph keeps the block. If it ended meanwhile, a mark can be
      // had.
      auto retained = std::make_shared<RetainedBlock>();
      retained->device = device.shared_from_this();
      retained->state = this;
      retained->block = block;
      if (stream->retain(retained)) return;
      retained->block = nullptr;
      mark = StreamMark::record(*stream);
    }
    if (mark) entry.marks.push_back(std::move(mark));
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (block->pool->captured && !block->pool->dead) {
    stats.pending_bytes -= block->size;
    put_back(block);  // Nothing is allocated from there any more, so the marks say nothing.
    return;
  }
  pending.push_back(std::move(entry));
}

void AllocatorState::release_retained(Block* block) {
  std::lock_guard<std::mutex> lock(mutex);
  stats.pending_bytes -= block->size;
  Pool* pool = block->pool;
  put(pool->captured && !pool->dead ? *pool : general, block);
  unlink_user(pool);
}

Allocator::Allocator(Device& device) : state_(std::make_unique<AllocatorState>(device)) {}

Allocator::~Allocator() = default;

std::shared_ptr<Buffer> Allocator::allocate(uint64_t size, const std::shared_ptr<Stream>& stream) {
  return state_->allocate(size, stream);
}

AllocatorStats Allocator::stats() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->poll_pending();
  return state_->stats;
}

void Allocator::reset_peak() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->stats.peak_used_bytes = state_->stats.used_bytes;
  state_->stats.peak_reserved_bytes = state_->stats.reserved_bytes;
}

void Allocator::set_limit(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->limit = bytes;
}

uint64_t Allocator::limit() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->limit;
}

uint64_t Allocator::trim() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->poll_pending();
  state_->absorb_idle();
  return state_->trim_free_chunks(lock);
}

std::shared_ptr<void> Allocator::enter_private_pool(Stream& stream) {
  Pool* pool;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->pools.push_back(std::make_unique<Pool>());
    pool = state_->pools.back().get();
    pool->captured = true;
    pool->live = 1;  // The token's.
    pool->outer = std::exchange(stream.pool_, pool);
  }
  return {pool, [device = state_->device.shared_from_this(), state = state_.get()](void* given) {
            Pool* ended = static_cast<Pool*>(given);
            std::lock_guard<std::mutex> lock(state->mutex);
            state->absorb(*ended);
            ended->dead = true;
            state->unlink_user(ended);
          }};
}

void Allocator::leave_private_pool(Stream& stream) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  Pool* pool = static_cast<Pool*>(stream.pool_);
  if (pool != nullptr && pool->captured) stream.pool_ = pool->outer;
}

void Allocator::stream_closing(Stream& stream) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  Pool* pool = static_cast<Pool*>(stream.pool_);
  if (pool != nullptr && pool->captured) pool = static_cast<Pool*>(pool->outer);
  if (pool != nullptr) pool->stream = nullptr;
}

void Allocator::stream_gone(Stream& stream) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  Pool* pool = static_cast<Pool*>(std::exchange(stream.pool_, nullptr));
  if (pool == nullptr) return;
  pool->dead = true;
  state_->absorb(*pool);
  ++pool->live;
  state_->unlink_user(pool);
}

}  // namespace chipdock::runtime
