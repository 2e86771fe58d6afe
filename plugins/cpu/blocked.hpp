// SPDX-License-Identifier: Apache-2.0
// The plugin's one private layout, id 1: a float32 tensor [N, C, ...] as [N, C/b, ..., b], where b
// is the number of floats in a vector of the ISA level in force (16 or 8). Channels that fill up
// the last block are zero; kernels that write the layout keep them so.
#ifndef CHIPDOCK_PLUGIN_CPU_BLOCKED_HPP_
#define CHIPDOCK_PLUGIN_CPU_BLOCKED_HPP_

#include <cstdint>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

constexpr uint32_t kBlocked = 1;

/// Channels of a block; 0 where the level in force has no use for blocks, so nothing is offered.
int64_t channel_block();

/// Blocks that hold `channels`.
inline int64_t blocks_of(int64_t channels, int64_t block) {
  return block > 0 ? (channels + block - 1) / block : 0;
}

/// Bytes of a tensor of this dtype and shape in layout `layout`. Throws UNSUPPORTED for a layout
/// that does not exist or does not fit.
uint64_t layout_bytes(uint32_t layout, chipdock_dtype dtype, int32_t rank, const int64_t* dims);

/// A blocked tensor as kernels walk through it: blocks [N * C/b] of `pixels` groups of b channels.
struct BlockedShape {
  explicit BlockedShape(const Tensor& t)
      : block(channel_block()),
        channels(t.dim(1)),
        blocks(blocks_of(channels, block)),
        pixels(t.size(2, t.rank)),
        batch(t.dim(0)) {}
  int64_t plane() const { return pixels * block; }                  ///< Floats of one block.
  int64_t total() const { return batch * blocks * plane(); }        ///< Floats of the tensor.
  int64_t used() const { return channels - (blocks - 1) * block; }  ///< Channels of the last block.
  bool full() const { return used() == block; }

  int64_t block, channels, blocks, pixels, batch;
};

/// Zeroes the channels from `used` on in `pixels` groups of `block` at `data`.
void zero_lanes(float* data, int64_t pixels, int64_t block, int64_t used);
/// Zeroes what fills up the last blocks of a tensor.
void zero_lanes(const Tensor& tensor);

/// True if the argument is given, blocked, of `rank` 3 or more, and has a known number of channels.
bool is_blocked(const chipdock_value* value);

/// `supports` of kernels that go over elements in any order: input 0 and output 0 have one layout,
/// and only float32 is blocked. Their rules are blocked_arguments({0, -1}).
int32_t supports_either_layout(const kit::NodeView& node);

/// The layout rules of a kernel: these arguments, counted as in DtypeRule, may be blocked, no others.
std::vector<LayoutRule> blocked_arguments(std::initializer_list<int32_t> arguments);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_BLOCKED_HPP_
