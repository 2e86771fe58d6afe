// SPDX-License-Identifier: Apache-2.0
// One fault around many slots: Fault::run gets the call as a function of the error record, and the
// record that the caller gave.
#ifndef CHIPDOCK_TESTS_MUTANTS_AROUND_HPP_
#define CHIPDOCK_TESTS_MUTANTS_AROUND_HPP_

#include <cstddef>
#include <tuple>

#include "mutant.hpp"

namespace chipdock::mutants {

template <class Fault, auto kTable, auto kSlot, class Function>
struct Around;
template <class Fault, auto kTable, auto kSlot, class... Args>
struct Around<Fault, kTable, kSlot, chipdock_status (*)(Args...)> {
  static chipdock_status call(Args... args) {
    std::tuple<Args...> all(args...);
    constexpr size_t kError = sizeof...(Args) - 1;
    return Fault::run(
        [&all](chipdock_error* error) {
          std::get<kError>(all) = error;
          return std::apply(base().*kTable.*kSlot, all);
        },
        std::get<kError>(all));
  }
};

template <class Fault, auto kTable, auto kSlot>
void around(Tables& tables) {
  auto& slot = tables.*kTable.*kSlot;
  using Function = std::remove_reference_t<decltype(slot)>;
  if (slot != nullptr) slot = &Around<Fault, kTable, kSlot, Function>::call;
}

/// Around the slots that most work goes through.
template <class Fault>
void around_common(Tables& tables) {
  around<Fault, &Tables::memory, &chipdock_memory_api::alloc>(tables);
  around<Fault, &Tables::memory, &chipdock_memory_api::copy>(tables);
  around<Fault, &Tables::memory, &chipdock_memory_api::fill>(tables);
  around<Fault, &Tables::stream, &chipdock_stream_api::create>(tables);
  around<Fault, &Tables::event, &chipdock_event_api::create>(tables);
  around<Fault, &Tables::kernel, &chipdock_kernel_api::create>(tables);
  around<Fault, &Tables::kernel, &chipdock_kernel_api::launch>(tables);
}

}  // namespace chipdock::mutants

#endif  // CHIPDOCK_TESTS_MUTANTS_AROUND_HPP_
