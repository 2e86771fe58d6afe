// SPDX-License-Identifier: Apache-2.0
// Blocking, packing and threads of our own matrix multiplication; see gemm.hpp.
#include "gemm.hpp"

#include <algorithm>
#include <cstring>

#include "simd/transpose.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

// Rows of B that a panel holds; longer sums are cut and continue from C.
constexpr int64_t kDepth = 512;
// Bytes of panels that one task keeps in the second-level cache while all its rows pass by. Several
// panels side by side make every row of C a long run: short ones cost a page walk each.
constexpr int64_t kGroupBytes = kGemmThreadBytes;
constexpr int64_t kMostPanels = 16;
// Rows of A that one task multiplies with a panel.
constexpr int64_t kChunkRows = 256;
// Multiply-adds below which another thread costs more than it saves.
constexpr int64_t kTaskWork = int64_t{64} * 1024;
// Elements to be packed below which the same holds.
constexpr int64_t kPackGrain = int64_t{32} * 1024;

}  // namespace

template <>
const GemmIsa<float>& gemm_isa<float>() {
  return CHIPDOCK_CPU_DISPATCH(gemm_isa_f32)();
}
template <>
const GemmIsa<double>& gemm_isa<double>() {
  return CHIPDOCK_CPU_DISPATCH(gemm_isa_f64)();
}

template <class T>
GemmRowBlocks gemm_row_blocks(int64_t m) {
  const int64_t most = gemm_isa<T>().rows;
  const int64_t count = std::max<int64_t>((m + most - 1) / most, 1);
  return {count, m / count, m % count};
}

template <class T>
uint64_t gemm_scratch_bytes(const Context& context) {
  static_assert(kGroupBytes % 64 == 0);
  return static_cast<uint64_t>(slot_capacity(context)) * kGroupBytes;
}

namespace {

/// to[j * to_row + i] = from[i * row + j] for i < rows, j < cols.
template <class T>
void transpose(const T* from, int64_t row, int64_t rows, int64_t cols, T* to, int64_t to_row) {
  if constexpr (sizeof(T) == sizeof(float)) {
    CHIPDOCK_CPU_DISPATCH(transpose_f32)(from, row, rows, cols, to, to_row);
  } else {
    constexpr int64_t kStep = 16;  // Columns are taken in runs of a cache line.
    for (int64_t begin = 0; begin < cols; begin += kStep) {
      const int64_t end = std::min(cols, begin + kStep);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = begin; j < end; ++j) to[j * to_row + i] = from[i * row + j];
      }
    }
  }
}

/// A block of a tile's rows.
template <class T>
void pack_rows(const T* source, int64_t row, int64_t column, int64_t rows, int64_t k, T* target) {
  if (column == 1) return transpose(source, row, rows, k, target, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = source + r * row;
    for (int64_t j = 0; j < k; ++j) target[j * rows + r] = from[j * column];
  }
}

/// How a product is cut into tasks: members, chunks of rows, groups of panels.
struct Cut {
  int64_t panels, group, groups, chunks, tasks;

  template <class T>
  static Cut of(const GemmWork<T>& work, const GemmIsa<T>& isa, int slots, int64_t blocks) {
    Cut cut;
    cut.panels = (work.n + isa.cols - 1) / isa.cols;
    const int64_t depth = std::clamp<int64_t>(work.k, 1, kDepth);
    const int64_t fits = kGroupBytes / (depth * isa.cols * static_cast<int64_t>(sizeof(T)));
    cut.chunks = (work.m + kChunkRows - 1) / kChunkRows;
    // Enough tasks for every thread come first, wide groups second, whole columns of rows last.
    const int64_t wanted = slots > 1 ? 4 * slots : 1;
    const int64_t most = work.batch * cut.chunks * cut.panels / wanted;
    cut.group = std::clamp<int64_t>(std::min(fits, most), 1, kMostPanels);
    cut.groups = (cut.panels + cut.group - 1) / cut.group;
    if (work.batch * cut.chunks * cut.groups < wanted) {
      cut.chunks = (wanted + work.batch * cut.groups - 1) / (work.batch * cut.groups);
    }
    cut.chunks = std::min(cut.chunks, blocks);
    cut.tasks = work.batch * cut.chunks * cut.groups;
    return cut;
  }
};

template <class T>
void run_task(const GemmWork<T>& work, const GemmIsa<T>& isa, const GemmRowBlocks& blocks,
              const Cut& cut, int64_t task, T* scratch) {
  const int64_t group = task % cut.groups;
  const int64_t chunk = task / cut.groups % cut.chunks;
  const int64_t member = task / cut.groups / cut.chunks;
  const int64_t first = group * cut.group;
  const int64_t count = std::min(cut.group, cut.panels - first);
  const int64_t row_end = blocks.count * (chunk + 1) / cut.chunks;
  GemmTile<T> tile;
  const T* const a = work.a(member);
  const T* bias = work.bias(member);
  tile.a = work.a_row != 0 ? scratch : a;
  tile.a_k = work.k;
  tile.c_row = work.c_row;
  tile.rows = work.m;
  tile.bias = bias;
  T* const c = work.c(member);
  const T* start = work.start(member);
  const T* column_bias = work.column_bias();
  GemmPanel<T> panels[kMostPanels];
  do {
    tile.k_end = std::min(work.k, tile.k_begin + kDepth);
    if (tile.k_end == work.k) tile.clamp = work.clamp;
    const auto columns = [&](int64_t p) {
      return static_cast<int>(std::min<int64_t>(isa.cols, work.n - (first + p) * isa.cols));
    };
    for (int64_t p = 0; p < count; ++p) {
      panels[p] = work.panel(member, tile.k_begin, tile.k_end, (first + p) * isa.cols, columns(p),
                             scratch + p * (tile.k_end - tile.k_begin) * isa.cols);
    }
    for (int64_t row = blocks.count * chunk / cut.chunks; row < row_end; ++row) {
      // Rows of C ahead of those that the tile knows of.
      const int64_t before = work.a_row != 0 ? blocks.begin(row) : 0;
      tile.row = work.a_row != 0 ? 0 : row;
      if (work.a_row != 0) {
        tile.rows = blocks.begin(row + 1) - before;
        tile.bias = bias != nullptr ? bias + before : nullptr;
        pack_rows(a + before * work.a_row, work.a_row, 1, tile.rows, work.k, scratch);
      }
      tile.row_end = tile.row + 1;
      for (int64_t p = 0; p < count; ++p) {
        tile.b = panels[p].data;
        tile.b_row = panels[p].row;
        tile.cols = columns(p);
        const int64_t at = before * work.c_row + (first + p) * isa.cols;
        tile.c = c + at;
        tile.start = start != nullptr ? start + at : nullptr;
        tile.column_bias = column_bias != nullptr ? column_bias + (first + p) * isa.cols : nullptr;
        isa.tile(tile);
      }
      if (tile.k_end < work.k) continue;
      const int64_t column = first * isa.cols;
      const int64_t begin = blocks.begin(row);
      work.finish(c + begin * work.c_row + column, blocks.begin(row + 1) - begin,
                  std::min(count * isa.cols, work.n - column));
    }
    start = c;
    tile.bias = bias = column_bias = nullptr;
    tile.k_begin = tile.k_end;
  } while (tile.k_begin < work.k);
}

}  // namespace

template <class T>
bool gemm_packs_late(const Context& context, const GemmWork<T>& work) {
  static_assert(kDepth * 32 * sizeof(T) <= kGroupBytes);  // A block of rows in a thread's scratch.
  const GemmIsa<T>& isa = gemm_isa<T>();
  const Cut cut = Cut::of(work, isa, slot_count(context), gemm_row_blocks<T>(work.m).count);
  return cut.groups == 1 && work.k <= kDepth && isa.rows <= 32;
}

template <class T>
void gemm_run(const Context& context, const GemmWork<T>& work, T* scratch) {
  if (work.m == 0 || work.n == 0 || work.batch == 0) return;
  const GemmIsa<T>& isa = *work.isa;
  const int slots = slot_count(context);
  const GemmRowBlocks blocks = gemm_row_blocks<T>(work.m);
  const Cut cut = Cut::of(work, isa, slots, blocks.count);
  const int64_t task_work = (work.m / cut.chunks + 1) * cut.group * isa.cols * (work.k + 1);
  const int64_t merge = std::clamp<int64_t>(kTaskWork / task_work, 1, cut.tasks);
  constexpr int64_t kSlot = kGroupBytes / static_cast<int64_t>(sizeof(T));
  parallel_slots(context, (cut.tasks + merge - 1) / merge, slots, [&](int64_t some, int64_t slot) {
    const int64_t end = std::min(cut.tasks, (some + 1) * merge);
    for (int64_t task = some * merge; task < end; ++task) {
      run_task(work, isa, blocks, cut, task, scratch + slot * kSlot);
    }
  });
}

template <class T>
void gemm_run_here(const GemmWork<T>& work, T* scratch) {
  if (work.m == 0 || work.n == 0 || work.batch == 0) return;
  const GemmIsa<T>& isa = *work.isa;
  const GemmRowBlocks blocks = gemm_row_blocks<T>(work.m);
  const Cut cut = Cut::of(work, isa, 1, blocks.count);
  for (int64_t task = 0; task < cut.tasks; ++task) run_task(work, isa, blocks, cut, task, scratch);
}

template <class T>
void gemm_pack_a(const T* source, int64_t row, int64_t column, int64_t m, int64_t k, T* target,
                 int64_t first, int64_t end) {
  const GemmRowBlocks blocks = gemm_row_blocks<T>(m);
  for (int64_t i = first; i < std::min(blocks.count, end); ++i) {
    const int64_t begin = blocks.begin(i);
    pack_rows(source + begin * row, row, column, blocks.begin(i + 1) - begin, k,
              target + begin * k);
  }
}

template <class T>
void gemm_pack_a(const Context& context, const T* source, int64_t count, int64_t step, int64_t row,
                 int64_t column, int64_t m, int64_t k, T scale, T* target) {
  if (m == 0) return;
  const GemmRowBlocks blocks = gemm_row_blocks<T>(m);
  const int64_t grain = std::max<int64_t>(1, kPackGrain * blocks.count / (m * k + 1));
  context.parallel_for(count * blocks.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = blocks.begin(i % blocks.count);
      const int64_t rows = blocks.begin(i % blocks.count + 1) - first;
      T* const to = target + (i / blocks.count * m + first) * k;
      pack_rows(source + i / blocks.count * step + first * row, row, column, rows, k, to);
      if (scale == T(1)) continue;
      for (int64_t j = 0; j < rows * k; ++j) to[j] *= scale;
    }
  });
}

template <class T>
void gemm_pack_panel(const T* source, int64_t row, int64_t column, int64_t k, int cols, T* target) {
  const int64_t width = gemm_isa<T>().cols;
  const size_t rest = static_cast<size_t>(width - cols) * sizeof(T);
  if (column == 1) {
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(target + i * width, source + i * row, static_cast<size_t>(cols) * sizeof(T));
      if (rest != 0) std::memset(target + i * width + cols, 0, rest);
    }
    return;
  }
  if (rest != 0) std::memset(target, 0, static_cast<size_t>(k * width) * sizeof(T));
  if (row == 1) return transpose(source, column, cols, k, target, width);
  for (int64_t i = 0; i < k; ++i) {
    for (int j = 0; j < cols; ++j) target[i * width + j] = source[i * row + j * column];
  }
}

template <class T>
int64_t gemm_packed_b_size(int64_t k, int64_t n) {
  const int64_t width = gemm_isa<T>().cols;
  return (n + width - 1) / width * width * k;
}

template <class T>
void gemm_pack_b(const T* source, int64_t row, int64_t column, int64_t k, int64_t n, T* target) {
  const int64_t width = gemm_isa<T>().cols;
  for (int64_t begin = 0; begin < n; begin += width) {
    const int cols = static_cast<int>(std::min(width, n - begin));
    gemm_pack_panel(source + begin * column, row, column, k, cols, target + begin * k);
  }
}

template <class T>
std::string gemm_layout(const char* operand) {
  return std::string("gemm1_") + operand + (sizeof(T) == 4 ? "_f32_" : "_f64_") +
         isa_name(active_isa());
}

template <class T>
GemmPanel<T> GemmB<T>::panel(int64_t m, int64_t k, int64_t k_begin, int64_t k_end, int64_t begin,
                             int cols, T* scratch) const {
  const GemmIsa<T>& isa = gemm_isa<T>();
  if (packed != nullptr) return {packed + begin * k + k_begin * isa.cols, isa.cols};
  const T* from = data + k_begin * row + begin * column;
  // Rows of B are best read where they are, unless they all fall into the same few sets of the
  // caches and are used often enough to pay for a copy.
  const bool conflicts = row * static_cast<int64_t>(sizeof(T)) % 2048 == 0 && m > 2 * isa.rows;
  const bool whole = cols == isa.cols || cols == isa.width;
  if (column == 1 && whole && !conflicts) return {from, row};
  gemm_pack_panel(from, row, column, k_end - k_begin, cols, scratch);
  return {scratch, isa.cols};
}

#define CHIPDOCK_CPU_GEMM(T)                                                                 \
  template GemmRowBlocks gemm_row_blocks<T>(int64_t);                                        \
  template uint64_t gemm_scratch_bytes<T>(const Context&);                                   \
  template bool gemm_packs_late<T>(const Context&, const GemmWork<T>&);                      \
  template void gemm_run<T>(const Context&, const GemmWork<T>&, T*);                         \
  template void gemm_run_here<T>(const GemmWork<T>&, T*);                                    \
  template void gemm_pack_a<T>(const T*, int64_t, int64_t, int64_t, int64_t, T*, int64_t,    \
                               int64_t);                                                     \
  template void gemm_pack_a<T>(const Context&, const T*, int64_t, int64_t, int64_t, int64_t, \
                               int64_t, int64_t, T, T*);                                     \
  template void gemm_pack_panel<T>(const T*, int64_t, int64_t, int64_t, int, T*);            \
  template int64_t gemm_packed_b_size<T>(int64_t, int64_t);                                  \
  template void gemm_pack_b<T>(const T*, int64_t, int64_t, int64_t, int64_t, T*);            \
  template std::string gemm_layout<T>(const char*);                                          \
  template struct GemmB<T>;
CHIPDOCK_CPU_GEMM(float)
CHIPDOCK_CPU_GEMM(double)
#undef CHIPDOCK_CPU_GEMM

}  // namespace chipdock::plugin::cpu
