// SPDX-License-Identifier: Apache-2.0
// The book of handles, and the checks that hold for every slot: the status is known, an error
// record is written on failure and only then.
#include "validate.hpp"

#include <cstddef>

namespace chipdock::runtime {
namespace {

/// Freed handles are remembered, so that a second use can be called what it is; not for ever.
constexpr size_t kMostDead = 1u << 16;

struct KindInfo {
  const char* name;
  const char* duty;
};
constexpr KindInfo kKinds[] = {{"device", "DEV-5"},        {"memory", "MEM-2"},
                               {"host memory", "MEM-4"},   {"stream", "STR-5"},
                               {"event", "EVT-3"},         {"kernel instance", "KRN-3"},
                               {"graph", "GRA-11"},        {"graph exec", "GRA-6"},
                               {"module", "CMP-5"},        {"function", "CMP-5"},
                               {"executable", "CMP-9"},    {"comm", "CCL-8"},
                               {"registration", "CCL-12"}, {"profiler session", "PRF-7"},
                               {"kernel", "KRN-1"}};
const KindInfo& info(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

/// FNV-1a of what the callee may write to.
uint64_t hash_of(const chipdock_error* error) {
  if (error == nullptr) return 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(error);
  const size_t size = std::min<size_t>(error->struct_size, sizeof(chipdock_error));
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

chipdock_status write_error(chipdock_error* error, const Error& failure) {
  return chipdock_fail(error, failure.code(), failure.what());
}

bool may_explain_success(SlotId slot) {
  return slot == SlotId::kernel_supports || slot == SlotId::compile_claim;
}
bool makes_with_not_ready(SlotId slot) {
  return slot == SlotId::ccl_init || slot == SlotId::ccl_split || slot == SlotId::ccl_shrink;
}

const Validator::Checks& all_checks() {
  static const auto& checks = *[] {
    auto* list = new Validator::Checks;
    add_device_checks(*list);
    add_memory_checks(*list);
    add_stream_checks(*list);
    add_kernel_checks(*list);
    add_graph_checks(*list);
    add_compile_checks(*list);
    add_ccl_checks(*list);
    return list;
  }();
  return checks;
}

}  // namespace

const char* kind_name(Kind kind) { return info(kind).name; }

Validator::Validator(const Tables& inner) : inner_(inner) {}

chipdock_status Validator::before(const Call& call, uint64_t& note) {
  const std::lock_guard lock(mutex_);
  slot_ = slot_info(call.slot).name;
  try {
    if (call.error != nullptr && call.error->struct_size < offsetof(chipdock_error, text)) {
      raise(CHIPDOCK_INVALID_ARGUMENT, slot_, " error has struct_size ", call.error->struct_size,
            " [BASE-4]");
    }
    const Check& check = all_checks().before[static_cast<size_t>(call.slot)];
    if (check) check(*this, call.arguments);
  } catch (const Error& failure) {
    return write_error(call.error, failure);
  }
  note = hash_of(call.error);
  return CHIPDOCK_OK;
}

chipdock_status Validator::after(const Call& call, uint64_t note, chipdock_status status) {
  const std::lock_guard lock(mutex_);
  slot_ = slot_info(call.slot).name;
  try {
    if (status < CHIPDOCK_OK || status > CHIPDOCK_INTERNAL) {
      raise(CHIPDOCK_INTERNAL, slot_, " returned status ", status,
            ", which does not exist [BASE-7]");
    }
    const bool written = hash_of(call.error) != note;
    if (status == CHIPDOCK_OK && written && !may_explain_success(call.slot)) {
      raise(CHIPDOCK_INTERNAL, slot_, " returned OK and wrote an error record [BASE-8]");
    }
    if (status == CHIPDOCK_OK ||
        (status == CHIPDOCK_NOT_READY && makes_with_not_ready(call.slot))) {
      const Check& check = all_checks().success[static_cast<size_t>(call.slot)];
      if (check) check(*this, call.arguments);
    } else if (status != CHIPDOCK_NOT_READY && call.error != nullptr &&
               call.error->code != status) {
      // The status is worth more than the missing record: it stays, and the text says what is
      // missing.
      const std::string text =
          std::string(kit::status_name(status)) + ": " + slot_ +
          (written ? " failed and wrote another code to its error record [BASE-8]"
                   : " failed and left its error record empty [BASE-8]");
      chipdock_fail(call.error, status, text.c_str());
    }
  } catch (const Error& failure) {
    return write_error(call.error, failure);
  }
  return status;
}

HandleKey Validator::key(Kind kind, const void* handle, const void* device) const {
  const bool within_device =
      kind == Kind::kMemory || kind == Kind::kHostMemory || kind == Kind::kKernel;
  return {kind, within_device ? device : nullptr, handle};
}

Handle& Validator::live(Kind kind, const void* handle, const char* what, const void* device) {
  const char* duty = info(kind).duty;
  want(handle != nullptr, *this, duty, what, " is NULL");
  const auto found = book_.find(key(kind, handle, device));
  if (found == book_.end()) {
    for (const auto& [other, entry] : book_) {
      const bool elsewhere =
          std::get<0>(other) == kind && std::get<2>(other) == handle && entry.live;
      want(!elsewhere, *this, duty, what, " is a ", kind_name(kind), " of another device");
    }
    refuse(*this, duty, what, " is no ", kind_name(kind), " of this plugin instance");
  }
  want(found->second.live, *this, duty, what, " is a ", kind_name(kind), " that was already ended");
  const bool foreign = device != nullptr && kind != Kind::kDevice && found->second.device != device;
  want(!foreign, *this, duty, what, " is a ", kind_name(kind), " of another device");
  return found->second;
}

void Validator::add(Kind kind, const void* handle, const Handle& entry, const char* what) {
  expect(handle != nullptr, *this, "BASE-8", "returned OK and a NULL ", what);
  const auto [place, is_new] = book_.try_emplace(key(kind, handle, entry.device));
  expect(is_new || !place->second.live || kind == Kind::kKernel || kind == Kind::kFunction, *this,
         "BASE-8", "returned a ", what, " that is already in use");
  place->second = entry;
}

void Validator::end(Kind kind, const void* handle, const char* what, const void* device) {
  live(kind, handle, what, device).live = false;
  if (++dead_ <= kMostDead) return;
  for (auto it = book_.begin(); it != book_.end();)
    it = it->second.live ? std::next(it) : book_.erase(it);
  dead_ = 0;
}

void Validator::end_children(const void* parent) {
  for (auto& [key, entry] : book_) {
    if (entry.parent == parent && parent != nullptr) entry.live = false;
  }
}

std::string Validator::children(const void* device) const {
  std::map<Kind, size_t> counts;
  for (const auto& [key, entry] : book_) {
    const Kind kind = std::get<0>(key);
    if (entry.live && entry.device == device && kind != Kind::kDevice && kind != Kind::kKernel &&
        kind != Kind::kFunction) {
      ++counts[kind];
    }
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind_name(kind);
  }
  return text;
}

void Validator::stream_or_null(const void* stream, const void* device) {
  if (stream != nullptr) live(Kind::kStream, stream, "stream", device);
}

std::unique_ptr<Layer> make_validate(const Tables& inner, const PluginInfo&) {
  return std::make_unique<Validator>(inner);
}

}  // namespace chipdock::runtime
