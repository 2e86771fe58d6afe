// SPDX-License-Identifier: Apache-2.0
// The one engine behind Transpose, Slice, Expand, Tile, Concat, Split and their kin: copies a box
// of elements between two strided places. It knows bytes only; what the box means is the operator's
// business.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_STRIDED_COPY_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_STRIDED_COPY_HPP_

#include <algorithm>
#include <cstdint>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

/// Dimensions of a copy, added from the outermost to the innermost of the target. Strides count
/// elements; those of the source may be 0 (repeat) or negative (reverse). Neighbours that can be
/// are merged.
class Box {
 public:
  static constexpr int kCapacity = 2 * CHIPDOCK_MAX_RANK;

  void add(int64_t extent, int64_t from, int64_t to) {
    if (extent == 1) return;
    if (extent == 0) empty_ = true;
    if (rank_ > 0 && !empty_ && from_[rank_ - 1] == from * extent &&
        to_[rank_ - 1] == to * extent) {
      extent_[rank_ - 1] *= extent;
      from_[rank_ - 1] = from;
      to_[rank_ - 1] = to;
      return;
    }
    kit::require(rank_ < kCapacity, "a copy has more than ", kCapacity, " dimensions");
    extent_[rank_] = extent;
    from_[rank_] = from;
    to_[rank_] = to;
    ++rank_;
  }
  int rank() const { return rank_; }
  bool empty() const { return empty_; }
  int64_t extent(int i) const { return extent_[i]; }
  int64_t from(int i) const { return from_[i]; }
  int64_t to(int i) const { return to_[i]; }

 private:
  int rank_ = 0;
  bool empty_ = false;
  int64_t extent_[kCapacity], from_[kCapacity], to_[kCapacity];
};

/// Work that moves fewer bytes than this stays on the calling thread: waking another costs more.
inline constexpr int64_t kSerialBytes = int64_t{1} << 18;

/// Runs body(begin, end) over `units` of `bytes` moved bytes each, on threads only if it pays.
template <class Body>
void for_units(const Context& context, int64_t units, int64_t bytes, const Body& body) {
  bytes = std::max<int64_t>(bytes, 1);
  if (units <= 1 || units < kSerialBytes / bytes) {
    if (units > 0) body(int64_t{0}, units);
    return;
  }
  context.parallel_for(units, std::max<int64_t>(1, kSerialBytes / 2 / bytes), body);
}

/// Copies the box. `source` and `target` are the addresses of its first element; `width` is 1, 2,
/// 4, 8, 16.
void copy_box(const Context& context, const Box& box, const void* source, void* target, int width);

/// Copies bytes that lie together; nothing if both are the same memory.
void copy_bytes(const Context& context, const void* source, void* target, uint64_t bytes);

/// Copies `rows` runs of `run` bytes, each `from` and `to` bytes behind the last.
void copy_rows(const Context& context, int64_t rows, int64_t run, const char* source, int64_t from,
               char* target, int64_t to);

/// Writes `count` copies of the element at `value`, `width` bytes each, on the calling thread.
void fill_run(char* target, int64_t count, const void* value, int width);

/// The same, on several threads.
void fill_elements(const Context& context, void* target, int64_t count, const void* value,
                   int width);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_STRIDED_COPY_HPP_
