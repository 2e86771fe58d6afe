// SPDX-License-Identifier: Apache-2.0
// The layers of one plugin and the trampolines that lead calls through them. A slot has no closure,
// so each of a fixed number of attachments has its own set of functions, made by template from
// slots.inc.
#ifndef CHIPDOCK_RUNTIME_LAYERS_LAYER_STACK_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_LAYER_STACK_HPP_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "layer.hpp"

namespace chipdock::runtime {

class LayerStack {
 public:
  /// Most plugins with layers at one time, and most layers of one plugin.
  static constexpr size_t kAttachments = 16;
  static constexpr size_t kMaxLayers = 8;

  /// Puts trampolines in place of the slots of `tables`; the first layer is the outermost. Throws
  /// FAILED_PRECONDITION if all attachments are taken.
  LayerStack(Tables& tables, std::vector<std::unique_ptr<Layer>> layers);
  LayerStack(const LayerStack&) = delete;
  LayerStack& operator=(const LayerStack&) = delete;

  /// Ends all layers and gives the attachment to the next plugin. Calls that still come get
  /// SHUTDOWN, or are another plugin's if one took the attachment: the host makes none after
  /// shutdown.
  void finish() noexcept;

  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  Tables& inner() { return inner_; }

  chipdock_status enter(const Call& call, uint64_t* notes, size_t& entered);
  chipdock_status leave(const Call& call, const uint64_t* notes, size_t entered,
                        chipdock_status status);

 private:
  Tables inner_;  ///< The plugin's own slots.
  std::vector<std::unique_ptr<Layer>> layers_;
  size_t attachment_ = 0;
  bool finished_ = false;
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_LAYER_STACK_HPP_
