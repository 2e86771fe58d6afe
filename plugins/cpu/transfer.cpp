// SPDX-License-Identifier: Apache-2.0
// Copies, fills, and allocation in stream order.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "memory.hpp"
#include "profiler.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace chipdock::plugin::cpu {
namespace {

/// Address of a place after its checks; NULL is possible for size 0 only.
char* resolve_place(const chipdock_place* given, uint64_t size, const char* what) {
  const auto place = kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_place, device), what);
  check_flags(place.flags, CHIPDOCK_PLACE_PINNED, what);
  kit::require(place.memory == nullptr || place.host == nullptr, what,
               " names both device memory and a host address; give one");
  if (place.memory != nullptr) return resolve(*place.memory, place.offset, size, what);
  kit::require(place.host != nullptr || size == 0, what,
               " names neither device memory nor a host address");
  kit::require(place.offset == 0, what, " has offset ", place.offset,
               " on a host address; it must be 0");
  return static_cast<char*>(place.host);
}

/// A rectangle of rows; an ordinary copy is one row.
struct CopyShape {
  uint64_t row_bytes;
  uint64_t rows;
  uint64_t source_pitch;
  uint64_t target_pitch;

  /// Bytes from the first to behind the last byte that a side touches.
  uint64_t extent(uint64_t pitch) const {
    if (row_bytes == 0 || rows == 0) return 0;
    uint64_t bytes = 0;
    const bool wraps = __builtin_mul_overflow(pitch, rows - 1, &bytes) ||
                       __builtin_add_overflow(bytes, row_bytes, &bytes);
    kit::require(!wraps, rows, " rows of pitch ", pitch, " overflow 64 bits [MEM-3]");
    return bytes;
  }
};

class CopyTask : public Task {
 public:
  CopyTask(chipdock_device& device, const CopyShape& shape, const char* source, char* target,
           uint64_t correlation_id)
      : Task(correlation_id), device_(device), shape_(shape), source_(source), target_(target) {}

  void run(const RunContext& context) override {
    const uint64_t bytes = shape_.row_bytes * shape_.rows;
    const ProfileScope scope(device_, CHIPDOCK_PROFILER_COPY, nullptr, correlation_id(), bytes,
                             context);
    device_.copied.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes == 0) return;
    for (uint64_t row = 0; row < shape_.rows; ++row) {
      // memmove: a copy onto itself is harmless then, and costs the same.
      std::memmove(target_ + row * shape_.target_pitch, source_ + row * shape_.source_pitch,
                   shape_.row_bytes);
    }
  }

  TaskPtr changed(const chipdock_graph_change& change) const override {
    if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY ||
        (change.argument != 0 && change.argument != -1)) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT,
                "a captured copy has the memory of arguments 0 and -1 to change, ",
                "asked was kind ", change.kind, ", argument ", change.argument);
    }
    const bool is_source = change.argument == 0;
    chipdock_place place{};
    place.struct_size = sizeof(place);
    place.memory = change.memory;
    place.offset = change.offset;
    place.host = change.host;
    char* address =
        resolve_place(&place, shape_.extent(is_source ? shape_.source_pitch : shape_.target_pitch),
                      is_source ? "source" : "target");
    return std::make_shared<CopyTask>(device_, shape_, is_source ? address : source_,
                                      is_source ? target_ : address, correlation_id());
  }

 private:
  chipdock_device& device_;
  const CopyShape shape_;
  const char* const source_;
  char* const target_;
};

class FillTask : public Task {
 public:
  FillTask(chipdock_device& device, const chipdock_fill_desc& desc, char* target)
      : Task(desc.correlation_id),
        device_(device),
        width_(desc.pattern_size),
        size_(desc.size),
        target_(target) {
    std::copy(std::begin(desc.pattern), std::end(desc.pattern), pattern_.begin());
  }

  void run(const RunContext& context) override {
    const ProfileScope scope(device_, CHIPDOCK_PROFILER_FILL, nullptr, correlation_id(), size_,
                             context);
    if (size_ == 0) return;
    if (width_ == 1) {
      std::memset(target_, pattern_[0], size_);
      return;
    }
    // Doubling: each step copies all that is filled already.
    std::memcpy(target_, pattern_.data(), width_);
    for (uint64_t done = width_; done < size_; done *= 2) {
      std::memcpy(target_ + done, target_, std::min(done, size_ - done));
    }
  }

  TaskPtr changed(const chipdock_graph_change& change) const override {
    if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY || change.argument != -1) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT,
                "a captured fill has the memory of argument -1 to change, asked was kind ",
                change.kind, ", argument ", change.argument);
    }
    auto copy = std::make_shared<FillTask>(*this);
    copy->target_ =
        resolve(deref(change.memory, "memory of the change"), change.offset, size_, "fill");
    return copy;
  }
  FillTask(const FillTask& other)
      : Task(other.correlation_id()),
        device_(other.device_),
        width_(other.width_),
        size_(other.size_),
        target_(other.target_),
        pattern_(other.pattern_) {}

 private:
  chipdock_device& device_;
  const uint32_t width_;
  const uint64_t size_;
  char* target_;
  std::array<uint8_t, 16> pattern_{};
};

class FreeTask : public Task {
 public:
  FreeTask(chipdock_device& device, chipdock_memory* memory)
      : Task(0), device_(device), memory_(memory) {}
  ~FreeTask() override {
    if (memory_ != nullptr) device_.memories.take(memory_);
  }
  void run(const RunContext&) override {}  // Freed with the task, whether it ran or was skipped.
  const char* uncapturable() const override { return "free_async"; }
  void disarm() { memory_ = nullptr; }

 private:
  chipdock_device& device_;
  chipdock_memory* memory_;
};

/// Runs a small task in place, or queues a heap copy of it.
template <class T, class... Args>
void dispatch(chipdock_stream* stream, Args&&... args) {
  if (stream == nullptr) {
    T(std::forward<Args>(args)...).run({});
  } else {
    stream->push(std::make_shared<T>(std::forward<Args>(args)...));
  }
}

}  // namespace

chipdock_status copy(chipdock_device* device, const chipdock_copy_desc* given,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_copy_desc, correlation_id), "copy desc");
    check_flags(desc.flags, 0, "copy desc");
    const char* source = resolve_place(desc.source, desc.size, "source of copy");
    char* target = resolve_place(desc.target, desc.size, "target of copy");
    dispatch<CopyTask>(desc.stream, *device, CopyShape{desc.size, 1, desc.size, desc.size}, source,
                       target, desc.correlation_id);
  });
}

chipdock_status copy_2d(chipdock_device* device, const chipdock_copy_2d_desc* given,
                        chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_copy_2d_desc, correlation_id), "copy_2d desc");
    check_flags(desc.flags, 0, "copy_2d desc");
    kit::require(desc.source_pitch >= desc.row_bytes && desc.target_pitch >= desc.row_bytes,
                 "pitches ", desc.source_pitch, " and ", desc.target_pitch,
                 " of copy_2d must be at least row_bytes ", desc.row_bytes);
    const CopyShape shape{desc.row_bytes, desc.rows, desc.source_pitch, desc.target_pitch};
    const char* source =
        resolve_place(desc.source, shape.extent(desc.source_pitch), "source of copy_2d");
    char* target = resolve_place(desc.target, shape.extent(desc.target_pitch), "target of copy_2d");
    dispatch<CopyTask>(desc.stream, *device, shape, source, target, desc.correlation_id);
  });
}

chipdock_status fill(chipdock_device* device, const chipdock_fill_desc* given,
                     chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_fill_desc, correlation_id), "fill desc");
    const uint32_t width = desc.pattern_size;
    kit::require(width >= 1 && width <= 16 && (width & (width - 1)) == 0, "pattern_size ", width,
                 " is not 1, 2, 4, 8 or 16");
    kit::require(
        desc.size % width == 0 && (desc.target == nullptr || desc.target->offset % width == 0),
        "pattern_size ", width, " does not divide the offset or size ", desc.size);
    char* target = resolve_place(desc.target, desc.size, "target of fill");
    dispatch<FillTask>(desc.stream, *device, desc, target);
  });
}

chipdock_status alloc_async(chipdock_device* device, const chipdock_alloc_desc* given,
                            chipdock_memory** out_memory, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_memory*& out = deref(out_memory, "out_memory");
    const auto desc = read_alloc_desc(given);
    deref(desc.stream, "stream of alloc_async").enqueue_check("alloc_async");
    out = allocate(*device, desc);
  });
}

chipdock_status free_async(chipdock_device* device, chipdock_memory* memory,
                           chipdock_stream* stream, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    deref(memory, "memory");
    deref(stream, "stream of free_async");
    auto task = std::make_shared<FreeTask>(*device, memory);
    if (stream->capture() != nullptr) task->disarm();  // The push below refuses; the memory stays.
    stream->push(std::move(task));
  });
}

void release_free_pages() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace chipdock::plugin::cpu
