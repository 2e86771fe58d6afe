// SPDX-License-Identifier: Apache-2.0
// The mask: takes optional slots away, closed under the slot rules, so that every set a plugin
// could have is a set we have tested. The same seed gives the same set on every machine, whatever
// the standard library.
#include <map>
#include <mutex>

#include "builtin.hpp"

namespace chipdock::runtime {
namespace {

/// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// FNV-1a.
uint64_t hash_of(const char* name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return hash;
}

bool optional(SlotId slot) { return slot_info(slot).need == Need::kOptional; }

/// How much goes differs between seeds: a quarter, a half or three quarters. A group that comes
/// together has one draw, else hardly a seed would leave it whole; the draw hangs on the name
/// alone, so that a slot appended later changes no other.
void mask_by_seed(Tables& tables, uint64_t seed) {
  const uint64_t quarters = 1 + mix(seed) % 3;
  for (size_t i = 0; i < kSlotCount; ++i) {
    const auto slot = static_cast<SlotId>(i);
    const uint64_t draw = mix(mix(seed) ^ hash_of(slot_info(group_of(slot)).name));
    if (optional(slot) && draw % 4 < quarters) clear_slot(tables, slot);
  }
}

void mask_by_names(Tables& tables, const std::string& names) {
  const std::string item = "mask=" + names;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('+', begin), names.size());
    const std::string pattern = names.substr(begin, end - begin);
    begin = end + 1;
    for (const SlotId slot : parse_slots(pattern, item)) {
      if (optional(slot)) {
        clear_slot(tables, slot);
      } else if (pattern == slot_info(slot).name) {
        raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item, "' takes ", pattern,
              " away, which is required");
      }
    }
  }
}

/// Takes flags back that oblige slots which a mask took away.
class MaskInfos : public Layer {
 public:
  explicit MaskInfos(const Tables& masked)
      : no_address_(masked.memory.address == nullptr),
        no_flush_(masked.memory.flush == nullptr),
        no_source_(masked.compile.compile_source == nullptr),
        no_graph_(masked.compile.compile == nullptr) {}

  chipdock_status before(const Call&, uint64_t&) override { return CHIPDOCK_OK; }

  chipdock_status after(const Call& call, uint64_t, chipdock_status status) override {
    if (status != CHIPDOCK_OK) return status;
    if (call.slot == SlotId::device_info) {
      change(**static_cast<chipdock_device_info**>(call.arguments[2]));
    } else if (call.slot == SlotId::compile_caps) {
      auto& caps = **static_cast<chipdock_compile_caps**>(call.arguments[1]);
      if (no_source_) caps.flags &= ~static_cast<uint32_t>(CHIPDOCK_COMPILE_SOURCE);
      if (no_graph_) caps.flags &= ~static_cast<uint32_t>(CHIPDOCK_COMPILE_GRAPH);
    }
    return status;
  }

 private:
  /// The plugin's heaps with fewer flags. They live as long as the plugin [DEV-3].
  struct Heaps {
    std::vector<chipdock_heap> heaps;
    std::vector<const chipdock_heap*> pointers;
  };

  uint32_t fewer_flags(uint32_t flags) const {
    const bool unreachable = no_address_ || (no_flush_ && (flags & CHIPDOCK_HEAP_COHERENT) == 0);
    if (unreachable) flags &= ~static_cast<uint32_t>(CHIPDOCK_HEAP_HOST_VISIBLE);
    if (no_address_) flags &= ~static_cast<uint32_t>(CHIPDOCK_HEAP_ADDRESSABLE);
    return flags;
  }

  void change(chipdock_device_info& info) {
    if (!CHIPDOCK_HAS_FIELD(chipdock_device_info, heaps, info.struct_size)) return;
    if (info.heaps == nullptr) return;
    const std::lock_guard lock(mutex_);
    Heaps& kept = heaps_[info.heaps];
    if (kept.pointers.size() != info.heap_count) {
      kept.heaps.resize(info.heap_count);
      kept.pointers.resize(info.heap_count);
      for (uint32_t i = 0; i < info.heap_count; ++i) {
        // A plugin's heap may be longer than ours; fields we do not know stay out.
        kept.heaps[i] = *info.heaps[i];
        kept.heaps[i].struct_size = sizeof(chipdock_heap);
        kept.heaps[i].flags = fewer_flags(kept.heaps[i].flags);
        kept.pointers[i] = &kept.heaps[i];
      }
    }
    info.heaps = kept.pointers.data();
  }

  bool no_address_, no_flush_, no_source_, no_graph_;
  std::mutex mutex_;
  std::map<const void*, Heaps> heaps_;
};

}  // namespace

void apply_mask(Tables& tables, const std::string& what) {
  const Tables original = tables;
  if (what == "required") {
    for (size_t i = 0; i < kSlotCount; ++i) {
      if (optional(static_cast<SlotId>(i))) clear_slot(tables, static_cast<SlotId>(i));
    }
  } else if (what.compare(0, 5, "seed:") == 0) {
    const std::string seed = what.substr(5);
    mask_by_seed(tables, seed == "0" ? 0 : parse_number(seed, "mask=" + what));
  } else {
    mask_by_names(tables, what);
  }
  close_under_rules(tables, original);
}

std::unique_ptr<Layer> make_mask_infos(const Tables& masked, const Tables& original) {
  const bool changes = [&] {
    const auto lost = [&](SlotId slot) {
      return has_slot(original, slot) && !has_slot(masked, slot);
    };
    return lost(SlotId::memory_address) || lost(SlotId::memory_flush) ||
           (masked.compile.caps != nullptr &&
            (lost(SlotId::compile_compile_source) || lost(SlotId::compile_compile)));
  }();
  return changes ? std::make_unique<MaskInfos>(masked) : nullptr;
}

}  // namespace chipdock::runtime
