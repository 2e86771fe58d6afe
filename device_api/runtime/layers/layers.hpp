// SPDX-License-Identifier: Apache-2.0
// The layer spec and what it builds. Grammar: item[,item…]; an item is
//   validate                      checks both sides of every call against the headers' duties
//   trace[=FILE]                  records calls; FILE gets Chrome trace JSON at shutdown or exit
//   record=FILE                   last calls and counts of statuses, in a file that survives a kill
//   fault=SLOT:N[:CODE]           fails call N of SLOT ("memory.alloc", "*", "host.allocate")
//   latency=[SLOT:]TIME           delays calls of SLOT, or of all slots, by TIME ("50us", "2ms")
//   mask=required                 leaves only the required slots
//   mask=seed:N                   takes a set of optional slots away that depends on N alone
//   mask=SLOT[+SLOT…]             takes these away ("memory.fill+stream.*")
//   none                          alone: no layer
// fault and latency may stand several times. The first item is outermost, but record is always
// outside of all others, so it sees what the host sees, and mask is innermost.
#ifndef CHIPDOCK_RUNTIME_LAYERS_LAYERS_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_LAYERS_HPP_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layer_stack.hpp"

namespace chipdock::runtime {

/// What layers need to know of the plugin they wrap.
struct PluginInfo {
  std::string name;
  HostServices* services = nullptr;  ///< For fault=host.allocate; may be NULL in tests.
};

/// Wraps `tables` as `spec` says, or as CHIPDOCK_LAYERS says if `spec` is empty. Returns NULL if
/// nothing intercepts. Throws INVALID_ARGUMENT that names the bad item and what there is.
std::unique_ptr<LayerStack> apply_layers(Tables& tables, const std::string& spec,
                                         const PluginInfo& plugin);

/// Masks `tables`; `what` is what follows "mask=". Throws INVALID_ARGUMENT.
void apply_mask(Tables& tables, const std::string& what);

/// One recorded call. Times are those of the steady clock.
struct CallRecord {
  SlotId slot;
  chipdock_status status;
  uint64_t thread;
  uint64_t start_ns;
  uint64_t duration_ns;
};
/// The last calls that the trace layer of `plugin` saw, oldest first, at most 256; empty without
/// the layer.
std::vector<CallRecord> last_calls(const Plugin& plugin);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_LAYERS_HPP_
