// SPDX-License-Identifier: Apache-2.0
// Copies between strided places: picks among runs of memcpy, tiles of a transpose, fills, and
// single elements. Short inner runs of 2, 4, 8 or 16 bytes become one wider element.
#include "ops/movement/strided_copy.hpp"

#include <cstring>

#include "ops/movement/element.hpp"
#include "ops/movement/transpose_tile.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1}
                           << 18;  // Bytes of one long run that a thread takes at a time.

/// A box with strides in bytes.
struct Walk {
  int rank = 0;
  // Two more than a box: blocks of a transpose and chunks of a run are dims of their own.
  int64_t extent[Box::kCapacity + 2], from[Box::kCapacity + 2], to[Box::kCapacity + 2];

  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= extent[i];
    return n;
  }
  void push(int64_t count, int64_t from_step, int64_t to_step) {
    extent[rank] = count;
    from[rank] = from_step;
    to[rank] = to_step;
    ++rank;
  }
  void drop(int dim) {
    --rank;
    for (int i = dim; i < rank; ++i) {
      extent[i] = extent[i + 1];
      from[i] = from[i + 1];
      to[i] = to[i + 1];
    }
  }
};

/// Steps through positions [begin, end) of a walk in row-major order, calling body(source, target).
template <class Body>
void visit(const Walk& walk, int64_t begin, int64_t end, const char* source, char* target,
           const Body& body) {
  int64_t at[Box::kCapacity + 2];
  int64_t rest = begin;
  for (int i = walk.rank - 1; i >= 0; --i) {
    at[i] = rest % walk.extent[i];
    rest /= walk.extent[i];
    source += at[i] * walk.from[i];
    target += at[i] * walk.to[i];
  }
  for (int64_t n = begin; n < end; ++n) {
    body(source, target);
    for (int i = walk.rank - 1; i >= 0; --i) {
      source += walk.from[i];
      target += walk.to[i];
      if (++at[i] < walk.extent[i]) break;
      source -= walk.from[i] * walk.extent[i];
      target -= walk.to[i] * walk.extent[i];
      at[i] = 0;
    }
  }
}

/// Two dims that change places, `across` contiguous in the source and the last one in the target,
/// cut into blocks of about one L1 cache, so that a single large matrix is shared out too.
template <int kWidth>
void copy_transposed(const Context& context, Walk walk, int across, const char* source,
                     char* target) {
  constexpr int64_t kSide = std::max<int64_t>(16, 64 / kWidth), kLong = 16384 / kWidth;
  const int last = walk.rank - 1;
  const int64_t columns = walk.extent[last], from = walk.from[last];
  const int64_t rows = walk.extent[across], to = walk.to[across];
  walk.drop(last);
  walk.drop(across);
  const int64_t width = std::min(columns, rows <= 4 ? kLong / 4 : 32 * kSide);
  const int64_t height = std::min(rows, columns <= 4 ? kLong / 4 : 1 * kSide);
  const int64_t across_count = (columns + width - 1) / width,
                down_count = (rows + height - 1) / height;
  walk.push(down_count, height * kWidth, height * to);
  walk.push(across_count, width * from, width * kWidth);
  for_units(context, walk.count(), 2 * width * height * kWidth, [&](int64_t begin, int64_t end) {
    int64_t unit = begin;
    visit(walk, begin, end, source, target, [&](const char* in, char* out) {
      const int64_t left = unit % across_count * width,
                    top = unit / across_count % down_count * height;
      ++unit;
      transpose_block<kWidth>(in, from, out, to, std::min(height, rows - top),
                              std::min(width, columns - left));
    });
  });
}

/// Stores of 64 bytes, then single elements.
template <int kWidth>
void fill_typed(char* target, int64_t count, const char* value) {
  constexpr int64_t kBatch = 64 / kWidth;
  char pattern[64];
  int64_t i = 0;
  if (count >= kBatch) {
    for (int64_t k = 0; k < kBatch; ++k) move_one<kWidth>(pattern + k * kWidth, value);
    for (; i + kBatch <= count; i += kBatch) std::memcpy(target + i * kWidth, pattern, 64);
  }
  for (; i < count; ++i) move_one<kWidth>(target + i * kWidth, value);
}

/// Elements without a contiguous run of their own.
template <int kWidth>
void copy_elements(const Context& context, Walk walk, const char* source, char* target) {
  const int last = walk.rank - 1;
  if (walk.to[last] == kWidth && walk.from[last] != 0) {
    for (int i = last - 1; i >= 0; --i) {
      if (walk.from[i] == kWidth) {
        copy_transposed<kWidth>(context, walk, i, source, target);
        return;
      }
    }
  }
  const int64_t count = walk.extent[last], from = walk.from[last], to = walk.to[last];
  if (walk.rank == 1) {
    for_units(context, count, 2 * kWidth, [&](int64_t begin, int64_t end) {
      if (from == 0 && to == kWidth) {
        fill_typed<kWidth>(target + begin * to, end - begin, source);
        return;
      }
      for (int64_t i = begin; i < end; ++i) move_one<kWidth>(target + i * to, source + i * from);
    });
    return;
  }
  walk.drop(last);
  for_units(context, walk.count(), 2 * kWidth * count, [&](int64_t begin, int64_t end) {
    visit(walk, begin, end, source, target, [&](const char* in, char* out) {
      if (from == 0 && to == kWidth) {
        fill_typed<kWidth>(out, count, in);
        return;
      }
      for (int64_t i = 0; i < count; ++i) move_one<kWidth>(out + i * to, in + i * from);
    });
  });
}

void copy_runs(const Context& context, Walk walk, int64_t run, const char* source, char* target) {
  const int64_t rows = walk.count();
  if (run >= 2 * kChunk) {
    // Few long runs: one more dim over chunks; the last chunk of a run is shorter.
    const int64_t chunks = (run + kChunk - 1) / kChunk;
    walk.push(chunks, kChunk, kChunk);
    for_units(context, rows * chunks, kChunk, [&](int64_t begin, int64_t end) {
      int64_t unit = begin;
      visit(walk, begin, end, source, target, [&](const char* in, char* out) {
        const int64_t first = unit++ % chunks * kChunk;
        std::memcpy(out, in, static_cast<size_t>(std::min(kChunk, run - first)));
      });
    });
    return;
  }
  for_units(context, rows, run, [&](int64_t begin, int64_t end) {
    visit(walk, begin, end, source, target,
          [run](const char* in, char* out) { std::memcpy(out, in, static_cast<size_t>(run)); });
  });
}

}  // namespace

void copy_box(const Context& context, const Box& box, const void* source, void* target, int width) {
  if (box.empty()) return;
  const char* in = static_cast<const char*>(source);
  char* out = static_cast<char*>(target);
  int64_t run = width;
  int rank = box.rank();
  if (rank > 0 && box.from(rank - 1) == 1 && box.to(rank - 1) == 1) run *= box.extent(--rank);
  if (rank == 0) {
    copy_bytes(context, in, out, static_cast<uint64_t>(run));
    return;
  }
  Walk walk;
  for (int i = 0; i < rank; ++i) walk.push(box.extent(i), box.from(i) * width, box.to(i) * width);
  switch (run) {
    case 1:
      copy_elements<1>(context, walk, in, out);
      return;
    case 2:
      copy_elements<2>(context, walk, in, out);
      return;
    case 4:
      copy_elements<4>(context, walk, in, out);
      return;
    case 8:
      copy_elements<8>(context, walk, in, out);
      return;
    case 16:
      copy_elements<16>(context, walk, in, out);
      return;
    default:
      copy_runs(context, walk, run, in, out);
      return;
  }
}

void copy_bytes(const Context& context, const void* source, void* target, uint64_t bytes) {
  if (bytes == 0 || source == target) return;
  if (bytes < static_cast<uint64_t>(kChunk)) {
    std::memcpy(target, source, bytes);
    return;
  }
  copy_runs(context, Walk(), static_cast<int64_t>(bytes), static_cast<const char*>(source),
            static_cast<char*>(target));
}

void copy_rows(const Context& context, int64_t rows, int64_t run, const char* source, int64_t from,
               char* target, int64_t to) {
  if (rows == 0 || run == 0) return;
  if (rows == 1 || (from == run && to == run)) {
    copy_bytes(context, source, target, static_cast<uint64_t>(rows * run));
    return;
  }
  Walk walk;
  walk.push(rows, from, to);
  switch (run) {
    case 1:
      copy_elements<1>(context, walk, source, target);
      return;
    case 2:
      copy_elements<2>(context, walk, source, target);
      return;
    case 4:
      copy_elements<4>(context, walk, source, target);
      return;
    case 8:
      copy_elements<8>(context, walk, source, target);
      return;
    case 16:
      copy_elements<16>(context, walk, source, target);
      return;
    default:
      copy_runs(context, walk, run, source, target);
      return;
  }
}

void fill_run(char* target, int64_t count, const void* value, int width) {
  if (count == 0) return;
  const char* one = static_cast<const char*>(value);
  if (std::all_of(one, one + width, [one](char c) { return c == one[0]; })) {
    std::memset(target, static_cast<unsigned char>(one[0]), static_cast<size_t>(count * width));
    return;
  }
  by_width(width, [&](auto bytes) { fill_typed<bytes()>(target, count, one); });
}

void fill_elements(const Context& context, void* target, int64_t count, const void* value,
                   int width) {
  char* out = static_cast<char*>(target);
  for_units(context, count, width, [&](int64_t begin, int64_t end) {
    fill_run(out + begin * width, end - begin, value, width);
  });
}

}  // namespace chipdock::plugin::cpu
