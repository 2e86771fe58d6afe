// SPDX-License-Identifier: Apache-2.0
// Blocking, packing and threads of products of bytes; see gemm_int8.hpp.
#include "gemm_int8.hpp"

#include <algorithm>
#include <cstring>

#include "simd/gemm.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

// Bytes of panels that one task keeps in the second-level cache while all its rows pass by.
constexpr int64_t kGroupBytes = int64_t{256} * 1024;
constexpr int64_t kMostPanels = 16;
constexpr int64_t kChunkRows = 256;
// Word products below which another thread costs more than it saves.
constexpr int64_t kTaskWork = int64_t{64} * 1024;
// Bytes to be packed below which the same holds.
constexpr int64_t kPackGrain = int64_t{32} * 1024;

GemmRowBlocks row_blocks(int64_t m) {
  const int64_t most = dot_isa().rows;
  const int64_t count = std::max<int64_t>((m + most - 1) / most, 1);
  return {count, m / count, m % count};
}

int64_t panel_words(int64_t words) { return std::max<int64_t>(words, 1) * dot_isa().cols; }

int64_t most_panels(int64_t words) {
  const int64_t bytes = panel_words(words) * static_cast<int64_t>(sizeof(int32_t));
  return std::clamp<int64_t>(kGroupBytes / bytes, 1, kMostPanels);
}

/// Scratch of one slot: panels, their column sums, one block of sums.
int64_t slot_words(int64_t words) {
  const DotIsa& isa = dot_isa();
  return most_panels(words) * (panel_words(words) + isa.cols) + int64_t{isa.rows} * isa.cols;
}

struct Cut {
  int64_t panels, group, groups, chunks, tasks;

  Cut(const DotWork& work, int slots, int64_t blocks) {
    const int64_t cols = dot_isa().cols;
    panels = (work.n + cols - 1) / cols;
    chunks = (work.m + kChunkRows - 1) / kChunkRows;
    // Enough tasks for every thread come first, wide groups second, whole columns of rows last.
    const int64_t wanted = slots > 1 ? 4 * slots : 1;
    const int64_t most = work.batch * chunks * panels / wanted;
    group = std::clamp<int64_t>(std::min(most_panels(work.words), most), 1, kMostPanels);
    groups = (panels + group - 1) / group;
    if (work.batch * chunks * groups < wanted) {
      chunks = (wanted + work.batch * groups - 1) / (work.batch * groups);
    }
    chunks = std::min(chunks, blocks);
    tasks = work.batch * chunks * groups;
  }
};

void run_task(const DotWork& work, const GemmRowBlocks& blocks, const Cut& cut, int64_t task,
              int32_t* scratch) {
  const DotIsa& isa = dot_isa();
  const auto run_block = work.a_signed ? isa.block_a_signed : isa.block_a_unsigned;
  const int64_t first = task % cut.groups * cut.group;
  const int64_t chunk = task / cut.groups % cut.chunks;
  const int64_t member = task / cut.groups / cut.chunks;
  const int64_t count = std::min(cut.group, cut.panels - first);
  int32_t* const column_sums = scratch + most_panels(work.words) * panel_words(work.words);
  int32_t* const sums = column_sums + most_panels(work.words) * isa.cols;
  const int32_t* const a = work.a(member);
  DotPanel panels[kMostPanels];
  DotBlock block = {};
  block.words = work.words;
  const auto set_panel = [&](int64_t p) {
    const int64_t left = work.n - (first + p) * isa.cols;
    block.b = panels[p].data;
    block.b_row = panels[p].row;
    block.narrow = left <= isa.width;
    return static_cast<int>(std::min<int64_t>(isa.cols, left));
  };
  for (int64_t p = 0; p < count; ++p) {
    const int64_t column = (first + p) * isa.cols;
    const int cols = static_cast<int>(std::min<int64_t>(isa.cols, work.n - column));
    panels[p] = work.panel(member, column, cols, scratch + p * panel_words(work.words));
    if (work.ones == nullptr) continue;
    set_panel(p);
    block.a = work.ones;
    block.rows = 1;
    block.sums = column_sums + p * isa.cols;
    run_block(block);
  }
  block.sums = sums;
  for (int64_t i = blocks.count * chunk / cut.chunks; i < blocks.count * (chunk + 1) / cut.chunks;
       ++i) {
    const int64_t row = blocks.begin(i);
    block.rows = static_cast<int>(blocks.begin(i + 1) - row);
    block.a = a + row * work.words;
    for (int64_t p = 0; p < count; ++p) {
      DotSums done = {member, row, (first + p) * isa.cols, column_sums + p * isa.cols, {}};
      done.end.cols = set_panel(p);
      done.end.narrow = block.narrow;
      done.end.rows = block.rows;
      done.end.sums = sums;
      run_block(block);
      work.end(done);
    }
  }
}

}  // namespace

const DotIsa& dot_isa() {
  if (active_isa() >= Isa::kAvx512Vnni) return *CHIPDOCK_CPU_DISPATCH(dot_isa_bytes)();
  return CHIPDOCK_CPU_DISPATCH(dot_isa_halves)();
}

DotCode dot_code(bool is_signed, bool wants_signed) {
  return {is_signed, dot_isa().parts == 4 && is_signed != wants_signed};
}

int64_t dot_words(int64_t k) { return (k + dot_isa().parts - 1) / dot_isa().parts; }

int32_t dot_filled_word(int32_t value) {
  const auto bits = static_cast<uint32_t>(value);
  const uint32_t word =
      dot_isa().parts == 4 ? (bits & 0xff) * 0x01010101U : (bits & 0xffff) * 0x00010001U;
  return static_cast<int32_t>(word);
}

uint64_t dot_scratch_bytes(const Context& context, int64_t words) {
  return static_cast<uint64_t>(slot_capacity(context)) *
         padded_bytes(slot_words(words), sizeof(int32_t));
}

void dot_run(const Context& context, const DotWork& work, void* scratch) {
  if (work.m == 0 || work.n == 0 || work.batch == 0) return;
  const int slots = slot_count(context);
  const GemmRowBlocks blocks = row_blocks(work.m);
  const Cut cut(work, slots, blocks.count);
  const int64_t task_work = (work.m / cut.chunks + 1) * cut.group * panel_words(work.words);
  const int64_t merge = std::clamp<int64_t>(kTaskWork / task_work, 1, cut.tasks);
  const uint64_t slot_bytes = padded_bytes(slot_words(work.words), sizeof(int32_t));
  parallel_slots(context, (cut.tasks + merge - 1) / merge, slots, [&](int64_t some, int64_t slot) {
    auto* const mine = reinterpret_cast<int32_t*>(static_cast<char*>(scratch) +
                                                  static_cast<uint64_t>(slot) * slot_bytes);
    const int64_t end = std::min(cut.tasks, (some + 1) * merge);
    for (int64_t task = some * merge; task < end; ++task) run_task(work, blocks, cut, task, mine);
  });
}

int64_t dot_packed_a_size(int64_t m, int64_t k) { return m * (dot_words(k) + 1); }

namespace {

/// A block of a tile's rows from `begin` on, and their sums.
void pack_rows(const uint8_t* source, int64_t row, int64_t column, int64_t m, int64_t k,
               int64_t begin, int64_t end, DotCode code, int32_t* target) {
  const DotIsa& isa = dot_isa();
  const auto sum_of = CHIPDOCK_CPU_DISPATCH(dot_sum);
  const int64_t words = dot_words(k);
  const int64_t whole = k / isa.parts;
  const int64_t rows = end - begin;
  int32_t* const sums = target + m * words;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* from = source + (begin + r) * row;
    DotRows pack = {{}, isa.parts, isa.parts * column, whole, nullptr, rows, code};
    pack.words = target + begin * words + r;
    for (int p = 0; p < isa.parts; ++p) pack.rows[p] = from + p * column;
    if (whole > 0) isa.pack(pack);
    if (whole < words) {
      for (int p = 0; p < isa.parts; ++p) pack.rows[p] += whole * pack.step;
      pack.count = static_cast<int>(k - whole * isa.parts);
      pack.words += whole * rows;
      pack.n = 1;
      isa.pack(pack);
    }
    const auto shift = static_cast<uint32_t>(k) * static_cast<uint32_t>(code.shift());
    const auto sum = static_cast<uint32_t>(sum_of(from, column, k, code.is_signed));
    sums[begin + r] = static_cast<int32_t>(sum + shift);
  }
}

}  // namespace

void dot_pack_a(const uint8_t* source, int64_t row, int64_t column, int64_t m, int64_t k,
                DotCode code, int32_t* target) {
  const GemmRowBlocks blocks = row_blocks(m);
  for (int64_t i = 0; i < blocks.count; ++i) {
    pack_rows(source, row, column, m, k, blocks.begin(i), blocks.begin(i + 1), code, target);
  }
}

void dot_pack_a(const Context& context, const uint8_t* source, int64_t count, int64_t m, int64_t k,
                DotCode code, int32_t* target) {
  if (m == 0) return;
  const GemmRowBlocks blocks = row_blocks(m);
  const int64_t grain = std::max<int64_t>(1, kPackGrain * blocks.count / (m * k + 1));
  context.parallel_for(count * blocks.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t member = i / blocks.count;
      const int64_t block = i % blocks.count;
      pack_rows(source + member * m * k, k, 1, m, k, blocks.begin(block), blocks.begin(block + 1),
                code, target + member * dot_packed_a_size(m, k));
    }
  });
}

void dot_pack_panel(const uint8_t* source, int64_t row, int64_t column, int64_t k, int cols,
                    DotCode code, int32_t* target) {
  const DotIsa& isa = dot_isa();
  const int64_t words = dot_words(k);
  if (cols < isa.cols) {
    std::memset(target, 0, static_cast<size_t>(words * isa.cols) * sizeof(int32_t));
  }
  for (int64_t w = 0; w < words; ++w) {
    const int64_t first = w * isa.parts;
    DotRows pack = {{}, 0, column, cols, target + w * isa.cols, 1, code};
    pack.count = static_cast<int>(std::min<int64_t>(isa.parts, k - first));
    for (int p = 0; p < pack.count; ++p) pack.rows[p] = source + (first + p) * row;
    isa.pack(pack);
  }
}

int64_t dot_padded_columns(int64_t n) {
  const int64_t cols = dot_isa().cols;
  return (n + cols - 1) / cols * cols;
}

int64_t dot_packed_b_size(int64_t k, int64_t n) {
  return dot_padded_columns(n) * (dot_words(k) + 1);
}

void dot_pack_b(const uint8_t* source, int64_t row, int64_t column, int64_t k, int64_t n,
                DotCode code, int32_t* target) {
  const int64_t width = dot_isa().cols;
  const int64_t padded = dot_padded_columns(n);
  const auto sum_of = CHIPDOCK_CPU_DISPATCH(dot_sum);
  int32_t* const sums = target + padded * dot_words(k);
  for (int64_t begin = 0; begin < n; begin += width) {
    const int cols = static_cast<int>(std::min(width, n - begin));
    dot_pack_panel(source + begin * column, row, column, k, cols, code,
                   target + begin * dot_words(k));
  }
  const auto shift = static_cast<uint32_t>(k) * static_cast<uint32_t>(code.shift());
  for (int64_t j = 0; j < n; ++j) {
    const auto sum = static_cast<uint32_t>(sum_of(source + j * column, row, k, code.is_signed));
    sums[j] = static_cast<int32_t>(sum + shift);
  }
  std::fill(sums + n, sums + padded, 0);
}

std::string dot_layout(const char* operand, DotCode code) {
  return std::string("dot1_") + operand + (code.is_signed ? "_s" : "_u") +
         (code.flip ? "f_" : "_") + isa_name(active_isa());
}

void DotResult::write(const DotEnd& sums, int64_t at, int64_t y_row, int64_t row,
                      int64_t column) const {
  if (y32 != nullptr) {
    CHIPDOCK_CPU_DISPATCH(dot_store)(sums, y32 + at, y_row);
    return;
  }
  DotBytes to = bytes;
  to.y += at;
  to.y_row = y_row;
  to.row_scale += row;
  to.zero += row;
  if (to.column_scale != nullptr) to.column_scale += column;
  CHIPDOCK_CPU_DISPATCH(dot_requantize)(sums, to);
}

}  // namespace chipdock::plugin::cpu
