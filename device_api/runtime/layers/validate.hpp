// SPDX-License-Identifier: Apache-2.0
// The validate layer: knows every live handle and checks the duties of both sides of a call. This
// file holds the book of handles and the checks that all tables share; what a table needs stands in
// validate_<table>.cpp.
#ifndef CHIPDOCK_RUNTIME_LAYERS_VALIDATE_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_VALIDATE_HPP_

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "builtin.hpp"

namespace chipdock::runtime {

enum class Kind : uint8_t {
  kDevice,
  kMemory,
  kHostMemory,
  kStream,
  kEvent,
  kInstance,
  kGraph,
  kExec,
  kModule,
  kFunction,
  kExecutable,
  kComm,
  kRegistration,
  kSession,
  kKernel
};
const char* kind_name(Kind kind);

struct Handle {
  const void* device = nullptr;  ///< The opened device it belongs to; NULL for a device.
  const void* parent =
      nullptr;         ///< What it lives as long as, beside the device: a function's module.
  uint64_t size = 0;   ///< Bytes of memory; heap count of a device.
  uint32_t flags = 0;  ///< As created: event flags, kernel flags.
  uint64_t host_inputs = 0;
  uint64_t host_outputs = 0;
  std::vector<uint32_t> input_layouts, output_layouts;  ///< Of a kernel instance, as created.
  bool live = true;
  bool recorded = false;
};

/// Memory handles need only be unique within their device, so the device is part of their key.
using HandleKey = std::tuple<Kind, const void*, const void*>;

class Validator : public Layer {
 public:
  explicit Validator(const Tables& inner);

  chipdock_status before(const Call& call, uint64_t& note) override;
  chipdock_status after(const Call& call, uint64_t note, chipdock_status status) override;

  // For the checks. They run with the book locked and throw Error.
  Handle& live(Kind kind, const void* handle, const char* what, const void* device = nullptr);
  void add(Kind kind, const void* handle, const Handle& entry, const char* what);
  void end(Kind kind, const void* handle, const char* what, const void* device = nullptr);
  /// Ends what lives as long as `parent`.
  void end_children(const void* parent);
  /// "2 memory, 1 stream" for what is live on `device`, or "".
  std::string children(const void* device) const;
  /// Like live, but NULL is fine and the handle belongs to `device`.
  void stream_or_null(const void* stream, const void* device);

  void range(const void* device, const void* memory, uint64_t offset, uint64_t size,
             const char* what);
  void place(const chipdock_place* place, const void* device, uint64_t size, const char* what);
  /// The fields of a tensor, and if `with_memory` its place. `host`: must be host memory.
  void tensor(const chipdock_tensor* tensor, const void* device, bool with_memory,
              const char* what);

  const Tables& inner() const { return inner_; }
  const char* slot() const { return slot_; }

  using Check = std::function<void(Validator&, void* const*)>;
  struct Checks {
    std::array<Check, kSlotCount> before;
    std::array<Check, kSlotCount> success;  ///< After OK, with what the plugin wrote.
  };

 private:
  HandleKey key(Kind kind, const void* handle, const void* device) const;

  const Tables inner_;
  std::mutex mutex_;
  std::map<HandleKey, Handle> book_;
  size_t dead_ = 0;
  const char* slot_ = "";  ///< Of the check that runs, for texts.
};

/// Fails with INVALID_ARGUMENT: "memory.copy <parts> [DUTY]".
template <class... Parts>
[[noreturn]] void refuse(const Validator& book, const char* duty, const Parts&... parts) {
  raise(CHIPDOCK_INVALID_ARGUMENT, book.slot(), " ", parts..., " [", duty, "]");
}
template <class... Parts>
void want(bool condition, const Validator& book, const char* duty, const Parts&... parts) {
  if (!condition) refuse(book, duty, parts...);
}
/// The same for the plugin's side: INTERNAL.
template <class... Parts>
void expect(bool condition, const Validator& book, const char* duty, const Parts&... parts) {
  if (!condition) raise(CHIPDOCK_INTERNAL, book.slot(), " ", parts..., " [", duty, "]");
}

/// Size of a struct when it was first published. Specialised for one that has grown since.
template <class T>
inline constexpr size_t kFirstSize = sizeof(T);

/// BASE-1 to BASE-4 of an in struct; a shorter one comes back filled up with zeros.
template <class T>
T in_struct(const Validator& book, const T* given, const char* what) {
  want(given != nullptr, book, "BASE-1", what, " is NULL");
  const chipdock_status status = chipdock_check_struct(given, kFirstSize<T>, sizeof(T));
  want(status != CHIPDOCK_INVALID_ARGUMENT, book, "BASE-4", what, " has struct_size ",
       given->struct_size, ", the smallest is ", kFirstSize<T>);
  if (status == CHIPDOCK_UNSUPPORTED) {
    raise(status, book.slot(), " ", what, " carries data behind the ", sizeof(T),
          " bytes that this host knows [BASE-3]");
  }
  T copy{};
  std::memcpy(&copy, given, std::min<size_t>(given->struct_size, sizeof(T)));
  return copy;
}

/// BASE-5 of an out struct.
template <class T>
void out_struct(const Validator& book, const T* given, const char* what) {
  want(given != nullptr, book, "BASE-5", what, " is NULL");
  want(given->struct_size >= 2 * sizeof(uint32_t), book, "BASE-5", what, " has struct_size ",
       given->struct_size);
}

inline void no_flags(const Validator& book, uint32_t flags, uint32_t known, const char* what) {
  if ((flags & ~known) == 0) return;
  raise(CHIPDOCK_UNSUPPORTED, book.slot(), " ", what, " ", flags, " have unknown bits, known are ",
        known, " [BASE-10]");
}

inline void valid_timeout(const Validator& book, int64_t timeout_ns) {
  want(timeout_ns >= -1, book, "DEV-8", "timeout is ", timeout_ns, " ns, it is -1 or more");
}

inline void options_array(const Validator& book, uint32_t count,
                          const chipdock_option* const* options) {
  want(count == 0 || options != nullptr, book, "BASE-6", "has ", count,
       " options and a NULL array");
  for (uint32_t i = 0; i < count; ++i) {
    const auto option = in_struct(book, options[i], "option");
    want(option.key != nullptr && option.value != nullptr, book, "BASE-6", "option ", i,
         " has a NULL key or value");
  }
}

template <class... Args, size_t... kIndices>
void call_typed(void (*check)(Validator&, Args...), Validator& book, void* const* arguments,
                std::index_sequence<kIndices...>) {
  check(book, *static_cast<Args*>(arguments[kIndices])...);
}

/// Ties a typed check to a slot: the parameters must be those of the slot.
template <SlotId kSlot, class... Args>
Validator::Check typed(void (*check)(Validator&, Args...)) {
  static_assert(std::is_same_v<typename SlotTraits<kSlot>::Function, chipdock_status (*)(Args...)>);
  return [check](Validator& book, void* const* arguments) {
    call_typed(check, book, arguments, std::index_sequence_for<Args...>{});
  };
}
#define CHIPDOCK_BEFORE(checks, slot, check) \
  (checks).before[static_cast<size_t>(SlotId::slot)] = typed<SlotId::slot>(check)
#define CHIPDOCK_SUCCESS(checks, slot, check) \
  (checks).success[static_cast<size_t>(SlotId::slot)] = typed<SlotId::slot>(check)

void add_device_checks(Validator::Checks& checks);
void add_memory_checks(Validator::Checks& checks);
void add_stream_checks(Validator::Checks& checks);
void add_kernel_checks(Validator::Checks& checks);
void add_graph_checks(Validator::Checks& checks);
void add_compile_checks(Validator::Checks& checks);
void add_ccl_checks(Validator::Checks& checks);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_VALIDATE_HPP_
