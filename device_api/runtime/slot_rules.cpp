// SPDX-License-Identifier: Apache-2.0
// The table of slot rules and what is done with it: naming the broken one, and closing a mask.
#include "slot_rules.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace chipdock::runtime {
namespace {

constexpr SlotInfo kSlots[] = {
#define CHIPDOCK_SLOT(table, slot, need) \
  {#table, #table "." #slot, Need::need, \
   offsetof(Tables, table) + offsetof(chipdock_##table##_api, slot)},
#include "slots.inc"
#undef CHIPDOCK_SLOT
};
static_assert(std::size(kSlots) == kSlotCount);

enum class Strength : uint8_t {
  kAlways,
  /// Binds only a slot that a mask took away: a plugin may leave it out for a reason that it alone
  /// knows.
  kWhenMasked
};

/// If any slot of `some` is there, all of `all` are.
struct Rule {
  const char* text;
  std::vector<SlotId> some;
  std::vector<SlotId> all;
  Strength strength = Strength::kAlways;
};

using S = SlotId;

const std::vector<Rule>& rules() {
  const std::vector<S> queue = {
      S::stream_create, S::stream_destroy, S::stream_sync,  S::stream_query, S::stream_wait_event,
      S::event_create,  S::event_destroy,  S::event_record, S::event_query,  S::event_sync};
  const std::vector<S> kernels = {S::kernel_list, S::kernel_supports, S::kernel_create,
                                  S::kernel_destroy, S::kernel_launch};
  const std::vector<S> capture = {S::graph_begin_capture, S::graph_end_capture,
                                  S::graph_instantiate,   S::graph_launch,
                                  S::graph_destroy_graph, S::graph_destroy_exec};
  const std::vector<S> source_door = {S::compile_compile_source, S::compile_get_function,
                                      S::compile_function_info, S::compile_launch_function,
                                      S::compile_destroy_module};
  const std::vector<S> graph_door = {S::compile_claim,   S::compile_compile,
                                     S::compile_io_info, S::compile_workspace_size,
                                     S::compile_execute, S::compile_destroy};
  const std::vector<S> blobs = {S::compile_serialize, S::compile_load, S::compile_check_compat};
  const std::vector<S> comms = {S::ccl_query, S::ccl_unique_id, S::ccl_init,   S::ccl_enqueue,
                                S::ccl_error, S::ccl_abort,     S::ccl_destroy};
  const std::vector<S> profile = {S::profiler_start, S::profiler_stop, S::profiler_flush,
                                  S::profiler_clock};
  // Never destroyed: plugins are shut down late in exit.
  static const auto& list = *new std::vector<Rule>{
      {"stream and event create, destroy, sync, query, record and wait_event come together [STR-8]",
       queue, queue},
      {"the other stream slots need stream.create [STR-8]",
       {S::stream_host_function, S::stream_value, S::stream_native, S::stream_abort},
       {S::stream_create}},
      {"the other event slots need event.create [STR-8]",
       {S::event_elapsed, S::event_native, S::event_export_ipc},
       {S::event_create}},
      {"alloc_async and free_async come together [MEM-10]",
       {S::memory_alloc_async, S::memory_free_async},
       {S::memory_alloc_async, S::memory_free_async}},
      {"alloc_async needs streams [MEM-10]", {S::memory_alloc_async}, {S::stream_create}},
      {"host_alloc and host_free come together",
       {S::memory_host_alloc, S::memory_host_free},
       {S::memory_host_alloc, S::memory_host_free}},
      {"flush and invalidate come together",
       {S::memory_flush, S::memory_invalidate},
       {S::memory_flush, S::memory_invalidate}},
      {"flush needs address", {S::memory_flush}, {S::memory_address}},
      {"kernel list, supports, create, destroy and launch come together", kernels, kernels},
      {"the other kernel slots need kernel.launch",
       {S::kernel_score, S::kernel_prepack_size, S::kernel_prepack, S::kernel_workspace_size,
        S::kernel_layout_size},
       {S::kernel_launch}},
      {"prepack_size and prepack come together",
       {S::kernel_prepack_size, S::kernel_prepack},
       {S::kernel_prepack_size, S::kernel_prepack}},
      {"begin_capture, end_capture, instantiate, launch, destroy_graph and destroy_exec come "
       "together "
       "[GRA-12]",
       capture, capture},
      {"capture needs streams [GRA-12]", {S::graph_begin_capture}, {S::stream_create}},
      {"the other graph slots need graph.begin_capture [GRA-12]",
       {S::graph_capture_state, S::graph_info, S::graph_update},
       {S::graph_begin_capture}},
      {"the slots of the source door come together [CMP-13]", source_door, source_door},
      {"the slots of the graph door come together [CMP-13]", graph_door, graph_door},
      {"both doors need compile.caps [CMP-13]",
       {S::compile_compile_source, S::compile_compile},
       {S::compile_caps}},
      {"serialize, load and check_compat come together [CMP-13]", blobs, blobs},
      {"the other slots of the graph door need compile.compile [CMP-13]",
       {S::compile_cancel, S::compile_serialize},
       {S::compile_compile}},
      {"ccl query, unique_id, init, enqueue, error, abort and destroy come together [CCL-12]",
       comms, comms},
      {"register_memory and deregister_memory come together [CCL-12]",
       {S::ccl_register_memory, S::ccl_deregister_memory},
       {S::ccl_register_memory, S::ccl_deregister_memory}},
      {"the other ccl slots need ccl.init [CCL-12]",
       {S::ccl_poll, S::ccl_split, S::ccl_shrink, S::ccl_register_memory},
       {S::ccl_init}},
      {"profiler start, stop, flush and clock come together [PRF-9]", profile, profile},
      // Kernels may ask for scratch or name layouts; without the slot they would be launched
      // wrongly.
      {"kernels need the workspace_size and layout_size of their plugin",
       {S::kernel_launch},
       {S::kernel_workspace_size, S::kernel_layout_size},
       Strength::kWhenMasked},
  };
  return list;
}

bool any_there(const Tables& tables, const std::vector<S>& slots) {
  return std::any_of(slots.begin(), slots.end(), [&](S id) { return has_slot(tables, id); });
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const SlotInfo& slot_info(SlotId id) { return kSlots[static_cast<size_t>(id)]; }

SlotId find_slot(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSlots), std::end(kSlots),
                                   [&](const SlotInfo& slot) { return name == slot.name; });
  return static_cast<SlotId>(found - std::begin(kSlots));
}

bool has_slot(const Tables& tables, SlotId id) {
  void (*function)() = nullptr;
  std::memcpy(&function, reinterpret_cast<const char*>(&tables) + slot_info(id).offset,
              sizeof(function));
  return function != nullptr;
}

void clear_slot(Tables& tables, SlotId id) {
  void (*const function)() = nullptr;
  std::memcpy(reinterpret_cast<char*>(&tables) + slot_info(id).offset, &function, sizeof(function));
}

std::string missing_required_slot(const Tables& tables) {
  for (size_t i = 0; i < kSlotCount; ++i) {
    if (kSlots[i].need == Need::kRequired && !has_slot(tables, static_cast<SlotId>(i))) {
      return std::string("required slot ") + kSlots[i].name + " is NULL";
    }
  }
  return "";
}

std::string broken_slot_rule(const Tables& tables) {
  for (const Rule& rule : rules()) {
    if (rule.strength != Strength::kAlways) continue;
    for (const S needed : rule.all) {
      if (has_slot(tables, needed)) continue;
      for (const S there : rule.some) {
        if (!has_slot(tables, there)) continue;
        return std::string(slot_info(there).name) + " is there but " + slot_info(needed).name +
               " is NULL: " + rule.text;
      }
    }
  }
  return "";
}

std::string broken_heap_rule(const Tables& tables, const chipdock_device_info& info) {
  if (info.heap_count == 0 || info.heaps == nullptr) return "it has no heap [DEV-6]";
  for (uint32_t i = 0; i < info.heap_count; ++i) {
    const std::string heap = "heap " + std::to_string(i);
    if (info.heaps[i] == nullptr) return heap + " is NULL [DEV-6]";
    const chipdock_heap& given = *info.heaps[i];
    if (given.alignment == 0 || (given.alignment & (given.alignment - 1)) != 0) {
      return heap + " has alignment " + std::to_string(given.alignment) +
             ", which is not a power of two [DEV-6]";
    }
    const bool visible = (given.flags & CHIPDOCK_HEAP_HOST_VISIBLE) != 0;
    const bool addressable = (given.flags & CHIPDOCK_HEAP_ADDRESSABLE) != 0;
    if ((visible || addressable) && tables.memory.address == nullptr) {
      return heap + (visible ? " is HOST_VISIBLE" : " is ADDRESSABLE") +
             " but memory.address is NULL";
    }
    if (visible && (given.flags & CHIPDOCK_HEAP_COHERENT) == 0 && tables.memory.flush == nullptr) {
      return heap + " is HOST_VISIBLE and not COHERENT but memory.flush is NULL";
    }
  }
  return "";
}

SlotId group_of(SlotId id) {
  for (const Rule& rule : rules()) {
    const bool together = rule.some == rule.all;
    if (together && std::find(rule.all.begin(), rule.all.end(), id) != rule.all.end()) {
      return rule.all.front();
    }
  }
  return id;
}

void close_under_rules(Tables& tables, const Tables& original) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Rule& rule : rules()) {
      if (!any_there(tables, rule.some)) continue;
      const bool broken = std::any_of(rule.all.begin(), rule.all.end(), [&](S id) {
        return !has_slot(tables, id) &&
               (rule.strength == Strength::kAlways || has_slot(original, id));
      });
      if (!broken) continue;
      for (const S id : rule.some) clear_slot(tables, id);
      changed = true;
    }
  }
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : " (did you mean '" + *best + "'?)";
}

}  // namespace chipdock::runtime
