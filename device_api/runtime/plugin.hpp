// SPDX-License-Identifier: Apache-2.0
// A loaded plugin: its identity and its tables, copied to this host's size with absent slots NULL,
// so that a slot is tested by `if (tables.memory.fill)` whatever the plugin's age. Loading,
// negotiation and slot rules: loader.cpp. Wrapping by layers: layers/. A plugin object lives until
// process exit.
#ifndef CHIPDOCK_RUNTIME_PLUGIN_HPP_
#define CHIPDOCK_RUNTIME_PLUGIN_HPP_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define CHIPDOCK_UNSTABLE 1
#include "chipdock/chipdock.h"
#include "error.hpp"

namespace chipdock::runtime {

/// All tables at this host's size. An absent table has header.struct_size 0 and NULL slots.
struct Tables {
  chipdock_device_api device{};
  chipdock_memory_api memory{};
  chipdock_stream_api stream{};
  chipdock_event_api event{};
  chipdock_kernel_api kernel{};
  chipdock_graph_api graph{};
  chipdock_compile_api compile{};
  chipdock_ccl_api ccl{};
  chipdock_profiler_api profiler{};
};

class HostServices;  // host_services.hpp
class LayerStack;    // layers/layer_stack.hpp

using Options = std::vector<std::pair<std::string, std::string>>;

struct LoadOptions {
  /// Layer spec as in CHIPDOCK_LAYERS:
  /// "validate,trace=/tmp/t.json,fault=memory.alloc:3,latency=5us,mask=seed:7". "" takes the
  /// environment's; "none" loads without layers whatever the environment says.
  std::string layers;
  Options options;  ///< Plugin-wide options for query.
};

class Plugin : public std::enable_shared_from_this<Plugin> {
 public:
  /// Loads the library (RTLD_LOCAL, never unloaded), negotiates versions, checks required slots and
  /// slot rules, wraps the layers. Throws Error; the text names path, plugin id if known, and the
  /// broken rule.
  static std::shared_ptr<Plugin> load(const std::string& path, const LoadOptions& options);
  ~Plugin();

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }  ///< "acme" of "acme:0".
  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }
  const std::array<uint8_t, 16>& uuid() const { return uuid_; }
  uint32_t abi_version() const { return abi_version_; }
  const Tables& tables() const { return tables_; }
  chipdock_plugin* handle() const { return handle_; }

  int32_t device_count();                           ///< Throws Error.
  chipdock_device_info device_info(int32_t index);  ///< Throws Error. Strings belong to the plugin.

  /// Throws SHUTDOWN after shutdown, FORKED in a forked child. Called at the entry of host
  /// operations.
  void check_usable() const {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state != kUsable) raise_unusable(state);
  }
  /// Holds shutdown off while a run is in progress on some thread; throws as check_usable.
  class Use {
   public:
    explicit Use(Plugin& plugin);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Plugin& plugin_;
  };

  /// Ends the instance; open devices are closed first by their owners. Waits for runs in progress, which stop
  /// at their next step; if one does not end in 10 s the plugin is left as it is. Idempotent.
  void shutdown() noexcept;

  /// Called for every chipdock_host.report of this plugin: finds the Device or Stream and makes it
  /// sticky.
  using ReportSink = void (*)(void* context, chipdock_device*, chipdock_stream*,
                              const chipdock_error&);
  void set_report_sink(ReportSink sink, void* context);

  /// What the loader saw and did not mind: a 0.x table of another major, …
  const std::vector<std::string>& notes() const { return notes_; }
  HostServices& services() const { return *services_; }
  /// NULL if no layer that intercepts calls is on.
  LayerStack* layers() const { return layers_.get(); }

 private:
  friend class Loader;
  friend struct PluginList;
  enum State : uint32_t { kUsable = 0, kShutDown = 1, kForked = 2, kFailed = 4 };
  Plugin();
  [[noreturn]] void raise_unusable(uint32_t state) const;
  bool wait_for_uses() const;  ///< False if they do not end.
  void fail_process(const chipdock_error& error);

  std::string id_, name_, version_, path_;
  std::array<uint8_t, 16> uuid_{};
  uint32_t abi_version_ = 0;
  Tables tables_;
  chipdock_plugin* handle_ = nullptr;
  std::vector<std::string> notes_;
  std::unique_ptr<HostServices> services_;
  std::unique_ptr<LayerStack> layers_;
  std::atomic<uint32_t> uses_{0};         ///< Runs in progress.
  std::atomic<uint32_t> state_{kUsable};  ///< One load tells whether the plugin may be called.
  mutable std::mutex failure_mutex_;
  std::string failure_;  ///< First report of scope process.
};

/// All loaded plugins, newest first, also those that were shut down.
std::vector<std::shared_ptr<Plugin>> loaded_plugins();

/// Shuts down every loaded plugin, newest first. Called once from the interpreter's or process's
/// exit.
void shutdown_all_plugins() noexcept;

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_PLUGIN_HPP_
