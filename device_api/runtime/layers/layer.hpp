// SPDX-License-Identifier: Apache-2.0
// What a layer is: something that sees every call of a plugin's slots before and after it, and may
// end it.
#ifndef CHIPDOCK_RUNTIME_LAYERS_LAYER_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_LAYER_HPP_

#include <cstdint>

#include "slot_rules.hpp"

namespace chipdock::runtime {

/// One call in progress. Arguments are pointers to the slot's parameters, in order.
struct Call {
  SlotId slot;
  void* const* arguments;
  chipdock_error* error;  ///< As the caller gave it; may be NULL.
};

class Layer {
 public:
  virtual ~Layer() = default;
  /// OK lets the call go on. Anything else is what the caller gets; the plugin and the layers
  /// inside of this one are not reached. `note` comes back in `after`.
  virtual chipdock_status before(const Call& call, uint64_t& note) = 0;
  /// Runs only if this layer's `before` said OK; returns what the caller gets.
  virtual chipdock_status after(const Call& call, uint64_t note, chipdock_status status) = 0;
  /// The plugin was shut down: write what has to be written.
  virtual void finish() noexcept {}
};

/// True for slots that invalidate a handle even when they fail: they always reach the plugin.
constexpr bool ends_handle(SlotId slot) {
  switch (slot) {
    case SlotId::device_close:
    case SlotId::memory_free:
    case SlotId::memory_free_async:
    case SlotId::memory_host_free:
    case SlotId::stream_destroy:
    case SlotId::event_destroy:
    case SlotId::kernel_destroy:
    case SlotId::graph_destroy_graph:
    case SlotId::graph_destroy_exec:
    case SlotId::compile_destroy_module:
    case SlotId::compile_destroy:
    case SlotId::ccl_destroy:
    case SlotId::ccl_deregister_memory:
    case SlotId::profiler_stop:
      return true;
    default:
      return false;
  }
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_LAYER_HPP_
