// SPDX-License-Identifier: Apache-2.0
// The talk between host and plugin at load: versions, identity, tables. Nothing here keeps state.
#ifndef CHIPDOCK_RUNTIME_NEGOTIATE_HPP_
#define CHIPDOCK_RUNTIME_NEGOTIATE_HPP_

#include <array>
#include <string>
#include <vector>

#include "plugin.hpp"

namespace chipdock::runtime {

/// Oldest base version that this host still speaks.
inline constexpr uint32_t kOldestAbi = CHIPDOCK_VERSION(1, 0);

struct Identity {
  std::string id;
  std::string name;
  std::string version;
  std::array<uint8_t, 16> uuid;
};

/// Calls query and checks the instance's size and version. `path` is for messages. Throws Error.
chipdock_plugin* negotiate(chipdock_plugin_query_fn query, const chipdock_host& host,
                           const Options& options, const std::string& path);
/// Checks id, name, version and uuid. [PLG-4]
Identity read_identity(const chipdock_plugin& plugin, const std::string& path);
/// Fetches every table at this host's size; what is absent is zero. `who` names the plugin in
/// messages.
Tables read_tables(chipdock_plugin* plugin, const std::string& who,
                   std::vector<std::string>& notes);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_NEGOTIATE_HPP_
