// SPDX-License-Identifier: Apache-2.0
// Broken rules of how structs grow, of flags, of enums and of outputs.
#include <cstring>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

/// What a fault makes of a desc that is not of today's size.
enum class Reading { kShortAsWhole, kTailIgnored, kLargerRefused, kFlagsIgnored };

/// Returns what the base is to see, or NULL to refuse.
template <Reading kReading, class T>
const T* misread(const T* given, T& room) {
  if (given == nullptr || given->struct_size < sizeof(uint32_t)) return given;
  const uint32_t size = given->struct_size;
  const bool takes = (kReading == Reading::kShortAsWhole && size < sizeof(T)) ||
                     (kReading == Reading::kTailIgnored && size > sizeof(T)) ||
                     (kReading == Reading::kFlagsIgnored && size == sizeof(T));
  if (kReading == Reading::kLargerRefused && size > sizeof(T)) return nullptr;
  if (!takes) return given;
  room = *given;  // Of a short one this reads what is not the caller's to give.
  room.struct_size = sizeof(T);
  return &room;
}

template <Reading kReading, class T>
const T* misread_flags(const T* given, T& room, uint32_t known) {
  const T* seen = misread<kReading>(given, room);
  if (kReading == Reading::kFlagsIgnored && seen == &room) room.flags &= known;
  return seen;
}

chipdock_status refuse(chipdock_error* error) {
  return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: a desc of another size");
}

template <Reading kReading>
void reading(Tables& tables) {
  tables.memory.alloc = [](chipdock_device* device, const chipdock_alloc_desc* given,
                           chipdock_memory** out, chipdock_error* error) {
    chipdock_alloc_desc room{};
    const auto* desc = misread_flags<kReading>(given, room, 0);
    if (desc == nullptr && given != nullptr) return refuse(error);
    return base().memory.alloc(device, desc, out, error);
  };
  tables.memory.copy = [](chipdock_device* device, const chipdock_copy_desc* given,
                          chipdock_error* error) {
    chipdock_copy_desc room{};
    const auto* desc = misread_flags<kReading>(given, room, 0);
    if (desc == nullptr && given != nullptr) return refuse(error);
    return base().memory.copy(device, desc, error);
  };
  if (base().stream.create == nullptr) return;
  tables.stream.create = [](chipdock_device* device, const chipdock_stream_desc* given,
                            chipdock_stream** out, chipdock_error* error) {
    chipdock_stream_desc room{};
    const auto* desc = misread_flags<kReading>(given, room, CHIPDOCK_STREAM_IMPORT);
    if (desc == nullptr && given != nullptr) return refuse(error);
    return base().stream.create(device, desc, out, error);
  };
  tables.event.create = [](chipdock_device* device, const chipdock_event_desc* given,
                           chipdock_event** out, chipdock_error* error) {
    chipdock_event_desc room{};
    const auto* desc =
        misread_flags<kReading>(given, room, CHIPDOCK_EVENT_TIMING | CHIPDOCK_EVENT_IPC);
    if (desc == nullptr && given != nullptr) return refuse(error);
    return base().event.create(device, desc, out, error);
  };
}

/// Asks the base into a whole struct of our own and copies as `spoil` does.
template <class T, class Ask, class Copy>
chipdock_status through_own(T* out, Ask ask, Copy copy) {
  if (out == nullptr || out->struct_size < 2 * sizeof(uint32_t)) return ask(out);
  T room{};
  std::memcpy(&room, out, out->struct_size < sizeof(T) ? out->struct_size : sizeof(T));
  room.struct_size = sizeof(T);
  const chipdock_status status = ask(&room);
  if (status == CHIPDOCK_OK) copy(*out, room);
  return status;
}

struct WritesAll {
  template <class T>
  void operator()(T& out, const T& room) const {
    const uint32_t size = out.struct_size;
    out = room;
    out.struct_size = size;
  }
};
struct ChangesSize {
  template <class T>
  void operator()(T& out, const T& room) const {
    const uint32_t size = out.struct_size;
    std::memcpy(&out, &room, size < sizeof(T) ? size : sizeof(T));
    out.struct_size = size + 8;
  }
};

template <class Copy>
void outputs(Tables& tables) {
  tables.device.info = [](chipdock_plugin* plugin, int32_t index, chipdock_device_info* out,
                          chipdock_error* error) {
    return through_own(
        out,
        [&](chipdock_device_info* to) {
          return base().device.info(base_plugin(plugin), index, to, error);
        },
        Copy());
  };
  if (base().memory.info == nullptr) return;
  tables.memory.info = [](chipdock_device* device, chipdock_memory_info* out,
                          chipdock_error* error) {
    return through_own(
        out, [&](chipdock_memory_info* to) { return base().memory.info(device, to, error); },
        Copy());
  };
}

void output_on_failure(Tables& tables) {
  tables.memory.alloc = [](chipdock_device* device, const chipdock_alloc_desc* desc,
                           chipdock_memory** out, chipdock_error* error) {
    const chipdock_status status = base().memory.alloc(device, desc, out, error);
    if (status != CHIPDOCK_OK && out != nullptr) *out = reinterpret_cast<chipdock_memory*>(64);
    return status;
  };
  tables.device.open = [](chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                          chipdock_device** out, chipdock_error* error) {
    const chipdock_status status = base().device.open(base_plugin(plugin), desc, out, error);
    if (status != CHIPDOCK_OK && out != nullptr) *out = reinterpret_cast<chipdock_device*>(64);
    return status;
  };
}

void unknown_enums(Tables& tables) {
  if (base().stream.value != nullptr) {
    tables.stream.value = [](chipdock_stream* stream, const chipdock_value_desc* desc,
                             chipdock_error* error) {
      return forgiving(CHIPDOCK_UNSUPPORTED, error,
                       [&](chipdock_error* own) { return base().stream.value(stream, desc, own); });
    };
  }
  if (base().memory.export_memory != nullptr) {
    tables.memory.export_memory = [](chipdock_device* device, chipdock_memory* memory,
                                     chipdock_external* out, chipdock_error* error) {
      return forgiving(CHIPDOCK_UNSUPPORTED, error, [&](chipdock_error* own) {
        return base().memory.export_memory(device, memory, out, own);
      });
    };
  }
}

constexpr Mutant kMutants[] = {
    {"struct_short_taken", &reading<Reading::kShortAsWhole>},
    {"struct_tail_ignored", &reading<Reading::kTailIgnored>},
    {"struct_larger_refused", &reading<Reading::kLargerRefused>},
    {"flags_ignored", &reading<Reading::kFlagsIgnored>},
    {"output_past_size", &outputs<WritesAll>},
    {"output_size_changed", &outputs<ChangesSize>},
    {"output_on_failure", &output_on_failure},
    {"enum_unknown_taken", &unknown_enums},
};

}  // namespace

MutantSpan structs_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
