// SPDX-License-Identifier: Apache-2.0
// The process's list of plugins: grows only, needs no lock, and is walked by the fork handler.
#ifndef CHIPDOCK_RUNTIME_PLUGIN_LIST_HPP_
#define CHIPDOCK_RUNTIME_PLUGIN_LIST_HPP_

#include <memory>
#include <string>

#include "plugin.hpp"

namespace chipdock::runtime {

struct PluginList {
  struct Node {
    std::shared_ptr<Plugin> plugin;
    Node* older;
  };
  static void add(const std::shared_ptr<Plugin>& plugin);
  static Node* newest();
  /// True in a forked child if the parent had loaded this file: its driver state is not the
  /// child's.
  static bool loaded_before_fork(const std::string& path);

 private:
  static void after_fork();
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_PLUGIN_LIST_HPP_
