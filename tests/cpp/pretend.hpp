// SPDX-License-Identifier: Apache-2.0
// A whole set of tables in the test's own memory, with every slot there: each answers OK and, if it
// makes a handle, a new one. Layers are tested over it without a library.
#ifndef CHIPDOCK_TESTS_CPP_PRETEND_HPP_
#define CHIPDOCK_TESTS_CPP_PRETEND_HPP_

#include <atomic>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "layers/layers.hpp"

namespace chipdock::check {

using runtime::SlotId;
using runtime::Tables;

inline std::atomic<uint64_t> g_calls{0};  ///< That reached a slot.
inline std::atomic<uint64_t> g_next_handle{
    0};  ///< Handles are small numbers: nobody may look into them.

/// Fills `out` if the parameter is an out handle: a pointer to a pointer that is not const.
template <class T>
void fill_out(T** out) {
  if constexpr (!std::is_const_v<T>) {
    if (out != nullptr) *out = reinterpret_cast<T*>((g_next_handle.fetch_add(1) + 1) * 64);
  }
}
template <class T>
void fill_out(T) {}

template <class Function>
struct Pretend;
template <class... Args>
struct Pretend<chipdock_status (*)(Args...)> {
  static chipdock_status call(Args... args) {
    ++g_calls;
    (fill_out(args), ...);
    return CHIPDOCK_OK;
  }
};

inline chipdock_status pretend_count(chipdock_plugin*, int32_t* out, chipdock_error*) {
  ++g_calls;
  *out = 2;
  return CHIPDOCK_OK;
}
inline chipdock_status pretend_info(chipdock_plugin*, int32_t, chipdock_device_info* out,
                                    chipdock_error*) {
  static const chipdock_heap heap = {
      sizeof(chipdock_heap),
      CHIPDOCK_HEAP_HOST_VISIBLE | CHIPDOCK_HEAP_COHERENT | CHIPDOCK_HEAP_ADDRESSABLE,
      1 << 20,
      64,
      0,
      0,
      "heap"};
  static const chipdock_heap* const heaps[] = {&heap};
  out->product = out->architecture = out->driver = out->pci_address = "";
  out->heap_count = 1;
  out->heaps = heaps;
  return CHIPDOCK_OK;
}

template <SlotId kSlot>
void pretend_slot(Tables& tables) {
  using Traits = runtime::SlotTraits<kSlot>;
  Traits::get(tables) = &Pretend<typename Traits::Function>::call;
}
template <size_t... kSlots>
void pretend_slots(Tables& tables, std::index_sequence<kSlots...>) {
  (pretend_slot<static_cast<SlotId>(kSlots)>(tables), ...);
}

inline Tables pretend_tables() {
  Tables tables;
  pretend_slots(tables, std::make_index_sequence<runtime::kSlotCount>{});
  tables.device.count = pretend_count;
  tables.device.info = pretend_info;
  return tables;
}

inline chipdock_plugin* pretend_plugin() {
  static chipdock_plugin plugin{};
  return &plugin;
}

}  // namespace chipdock::check

#endif  // CHIPDOCK_TESTS_CPP_PRETEND_HPP_
