// SPDX-License-Identifier: Apache-2.0
// Free blocks by size: bins of 1/16 octave with bitmaps, so that finding, adding and removing take
// a few instructions however many blocks there are. Which blocks are neighbours and may merge is
// the allocator's.
#ifndef CHIPDOCK_RUNTIME_BLOCK_INDEX_HPP_
#define CHIPDOCK_RUNTIME_BLOCK_INDEX_HPP_

#include <array>
#include <cstdint>

#include "chipdock/base.h"

namespace chipdock::runtime {

struct Pool;  // allocator_state.hpp

/// One allocation of the plugin; blocks tile it.
struct Chunk {
  chipdock_memory* memory = nullptr;
  uint64_t size = 0;
  char* host = nullptr;  ///< NULL if the host cannot read it in place.
  bool small =
      false;  ///< Serves requests of up to 1 MiB only, so that they do not pepper large chunks.
  struct Block* first = nullptr;  ///< At offset 0; splitting and merging keep it.
};

struct Block {
  Chunk* chunk = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  Block* previous = nullptr;  ///< Neighbours in the chunk.
  Block* next = nullptr;
  Block* free_previous = nullptr;  ///< Neighbours in the bin.
  Block* free_next = nullptr;
  Pool* pool = nullptr;  ///< Where it is free, or where it goes when freed.
  bool free = false;
};

class BlockIndex {
 public:
  void add(Block& block) {
    const uint32_t bin = bin_of(block.size);
    block.free_previous = nullptr;
    block.free_next = heads_[bin];
    if (heads_[bin] != nullptr) heads_[bin]->free_previous = &block;
    heads_[bin] = &block;
    words_[bin / 64] |= uint64_t{1} << (bin % 64);
  }

  void remove(Block& block) {
    const uint32_t bin = bin_of(block.size);
    if (block.free_previous != nullptr) {
      block.free_previous->free_next = block.free_next;
    } else {
      heads_[bin] = block.free_next;
      if (heads_[bin] == nullptr) words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
    }
    if (block.free_next != nullptr) block.free_next->free_previous = block.free_previous;
  }

  /// A block of at least `size`: the best of the first few in its own bin, else the first of the
  /// next.
  Block* find(uint64_t size) const {
    const uint32_t bin = bin_of(size);
    Block* best = nullptr;
    int looked = 0;
    for (Block* block = heads_[bin]; block != nullptr && looked < 16;
         block = block->free_next, ++looked) {
      if (block->size == size) return block;
      if (block->size > size && (best == nullptr || block->size < best->size)) best = block;
    }
    return best != nullptr ? best : first_from(bin + 1);
  }

  /// Any block, to empty the index; NULL if there is none.
  Block* any() const { return first_from(0); }

 private:
  static constexpr uint32_t kShift = 8;  // Sizes are multiples of 256 bytes or more.
  static constexpr uint32_t kWords = 11;

  static uint32_t bin_of(uint64_t size) {
    const uint64_t units = size >> kShift;
    if (units < 16) return static_cast<uint32_t>(units);
    const uint32_t top = 63 - static_cast<uint32_t>(__builtin_clzll(units));
    const uint32_t bin = (top - 3) * 16 + static_cast<uint32_t>((units >> (top - 4)) & 15);
    return bin < kWords * 64 ? bin : kWords * 64 - 1;
  }

  Block* first_from(uint32_t bin) const {
    if (bin >= kWords * 64) return nullptr;
    uint64_t word = words_[bin / 64] & (~uint64_t{0} << (bin % 64));
    for (uint32_t i = bin / 64;;) {
      if (word != 0) return heads_[i * 64 + static_cast<uint32_t>(__builtin_ctzll(word))];
      if (++i == kWords) return nullptr;
      word = words_[i];
    }
  }

  std::array<uint64_t, kWords> words_{};
  std::array<Block*, size_t{kWords} * 64> heads_{};
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_BLOCK_INDEX_HPP_
