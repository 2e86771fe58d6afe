// SPDX-License-Identifier: Apache-2.0
// What is known of slots as such: their names, which are required, and which oblige others. The
// loader checks a plugin against the rules; the mask layer closes what it takes away under the same
// rules.
#ifndef CHIPDOCK_RUNTIME_SLOT_RULES_HPP_
#define CHIPDOCK_RUNTIME_SLOT_RULES_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugin.hpp"

namespace chipdock::runtime {

enum class SlotId : uint16_t {
#define CHIPDOCK_SLOT(table, slot, need) table##_##slot,
#include "slots.inc"
#undef CHIPDOCK_SLOT
  kCount
};
inline constexpr size_t kSlotCount = static_cast<size_t>(SlotId::kCount);

enum class Need : uint8_t { kRequired, kOptional };

struct SlotInfo {
  const char* table;  ///< "memory"
  const char* name;   ///< "memory.copy"
  Need need;
  size_t offset;  ///< Of the function pointer inside Tables.
};

/// The type of a slot and its place in Tables.
template <SlotId>
struct SlotTraits;
#define CHIPDOCK_SLOT(table_, slot_, need_)                              \
  template <>                                                            \
  struct SlotTraits<SlotId::table_##_##slot_> {                          \
    using Function = decltype(chipdock_##table_##_api::slot_);           \
    static Function& get(Tables& tables) { return tables.table_.slot_; } \
  };
#include "slots.inc"
#undef CHIPDOCK_SLOT

const SlotInfo& slot_info(SlotId id);
/// The slot called "table.slot", or SlotId::kCount.
SlotId find_slot(std::string_view name);
bool has_slot(const Tables& tables, SlotId id);
void clear_slot(Tables& tables, SlotId id);

/// The first required slot that is absent, as a text for the user; "" if none is.
std::string missing_required_slot(const Tables& tables);
/// The first rule that `tables` breaks, with the slots that are there and that are not; "" if none.
std::string broken_slot_rule(const Tables& tables);
/// The first rule between heap flags and slots that a device's info breaks; "" if none.
std::string broken_heap_rule(const Tables& tables, const chipdock_device_info& info);

/// The first slot of the group that `id` comes together with; `id` itself if it comes alone.
SlotId group_of(SlotId id);

/// Takes away what may not stay after slots of `original` were cleared in `tables`, until no rule
/// is broken. Required slots are never touched.
void close_under_rules(Tables& tables, const Tables& original);

/// " (did you mean 'x'?)" for the candidate nearest to `word`, or "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_SLOT_RULES_HPP_
