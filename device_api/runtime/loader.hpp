// SPDX-License-Identifier: Apache-2.0
// Loading with a limit in time and a report in place of an exception, for discovery and `chipdock
// doctor`. A plugin that is broken or hangs is a state with its cause; the others are not touched
// by it.
#ifndef CHIPDOCK_RUNTIME_LOADER_HPP_
#define CHIPDOCK_RUNTIME_LOADER_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin.hpp"

namespace chipdock::runtime {

enum class PluginState : uint8_t {
  kReady,        ///< Loaded, and count answered; device_count may be 0.
  kUnavailable,  ///< Loaded, but its driver or device is absent or broken.
  kBroken,       ///< Not loaded, or it broke a duty.
  kTimeout       ///< A call did not come back; its thread was left behind.
};
const char* plugin_state_name(PluginState state);

struct LoadReport {
  std::string path;
  PluginState state = PluginState::kBroken;
  chipdock_status code = CHIPDOCK_OK;
  std::string cause;  ///< Verbatim text of the first failure; "" if ready.
  std::vector<std::string> notes;
  std::shared_ptr<Plugin> plugin;     ///< NULL if loading failed.
  std::vector<std::string> products;  ///< One a device, as info told.
};

/// Runs `work` on a thread of its own and waits at most `timeout_ns` (-1: CHIPDOCK_PROBE_TIMEOUT in
/// seconds, else 20 s). Throws TIMEOUT naming `what`, then the thread is left alone and owns what
/// `work` captured; rethrows what `work` threw.
void run_limited(std::function<void()> work, int64_t timeout_ns, const std::string& what);

/// Loads `path` and asks count and info. Never throws.
LoadReport load_and_probe(const std::string& path, const LoadOptions& options,
                          int64_t timeout_ns = -1) noexcept;
/// Asks count and info of a loaded plugin. Never throws.
LoadReport probe(const std::shared_ptr<Plugin>& plugin, int64_t timeout_ns = -1) noexcept;

/// The first failure of each path that load met in this process, in order: kept, whatever came
/// later.
std::vector<std::pair<std::string, std::string>> first_load_failures();

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LOADER_HPP_
