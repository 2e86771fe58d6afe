// SPDX-License-Identifier: Apache-2.0
// Makers of the single layers, for layers.cpp; each stands in the file of its name.
#ifndef CHIPDOCK_RUNTIME_LAYERS_BUILTIN_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_BUILTIN_HPP_

#include <memory>
#include <string>

#include "layers.hpp"

namespace chipdock::runtime {

/// Slots by "table.slot", "table.*" or "*". Throws INVALID_ARGUMENT with a "did you mean".
std::vector<SlotId> parse_slots(const std::string& pattern, const std::string& item);
/// A whole number of at least 1. Throws INVALID_ARGUMENT naming `item`.
uint64_t parse_number(const std::string& text, const std::string& item);

std::unique_ptr<Layer> make_fault(const std::string& value,
                                  const PluginInfo& plugin);  // NULL: no slot.
std::unique_ptr<Layer> make_latency(const std::string& value);
std::unique_ptr<Layer> make_record(const std::string& file);
std::unique_ptr<Layer> make_trace(const std::string& file, const PluginInfo& plugin);
/// `inner` is what the plugin has left under the mask.
std::unique_ptr<Layer> make_validate(const Tables& inner, const PluginInfo& plugin);
/// Keeps heap flags and compiler caps in agreement with masked slots; NULL if nothing has to be
/// changed.
std::unique_ptr<Layer> make_mask_infos(const Tables& masked, const Tables& original);

/// The ring of a trace layer; empty for any other layer.
std::vector<CallRecord> trace_ring(const Layer& layer);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_BUILTIN_HPP_
