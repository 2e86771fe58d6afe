// SPDX-License-Identifier: Apache-2.0
// A plugin after loading: device count and info, whether it may be called, and the ordered end.
// Plugins are kept in an append-only list, so that the fork handler and late deleters never meet a
// freed one.
#include "plugin.hpp"

#include <pthread.h>

#include <chrono>
#include <thread>

#include "host_services.hpp"
#include "layers/layer_stack.hpp"
#include "plugin_list.hpp"
#include "slot_rules.hpp"

namespace chipdock::runtime {
namespace {

std::atomic<PluginList::Node*> g_newest{nullptr};

}  // namespace

void PluginList::add(const std::shared_ptr<Plugin>& plugin) {
  // In the child only the forking thread lives and any lock may be held for ever: it takes none.
  static const int registered = pthread_atfork(nullptr, nullptr, &PluginList::after_fork);
  (void)registered;
  auto* node = new Node{plugin, g_newest.load(std::memory_order_acquire)};
  while (!g_newest.compare_exchange_weak(node->older, node, std::memory_order_acq_rel)) {
  }
}

PluginList::Node* PluginList::newest() { return g_newest.load(std::memory_order_acquire); }

void PluginList::after_fork() {
  for (Node* node = newest(); node != nullptr; node = node->older) {
    node->plugin->state_.fetch_or(Plugin::kForked, std::memory_order_relaxed);
  }
}

bool PluginList::loaded_before_fork(const std::string& path) {
  for (Node* node = newest(); node != nullptr; node = node->older) {
    const bool forked =
        (node->plugin->state_.load(std::memory_order_relaxed) & Plugin::kForked) != 0;
    if (forked && node->plugin->path_ == path) return true;
  }
  return false;
}

Plugin::Plugin() : services_(std::make_unique<HostServices>()) {}
Plugin::~Plugin() = default;

int32_t Plugin::device_count() {
  check_usable();
  ErrorRecord error;
  int32_t count = -1;
  check(tables_.device.count(handle_, &count, &error), error, name_ + " device.count");
  if (count < 0) {
    raise(CHIPDOCK_INTERNAL, name_, " device.count returned OK and count ", count, " [DEV-1]");
  }
  return count;
}

chipdock_device_info Plugin::device_info(int32_t index) {
  check_usable();
  ErrorRecord error;
  chipdock_device_info info{};
  info.struct_size = sizeof(info);
  info.numa_node = -1;
  const std::string device = name_ + ":" + std::to_string(index);
  check(tables_.device.info(handle_, index, &info, &error), error, device + " device.info");
  info.struct_size = sizeof(info);
  for (const char** text : {&info.product, &info.architecture, &info.driver, &info.pci_address}) {
    if (*text == nullptr) *text = "";
  }
  const std::string broken = broken_heap_rule(tables_, info);
  if (!broken.empty()) raise(CHIPDOCK_INTERNAL, device, " device.info: ", broken);
  return info;
}

void Plugin::raise_unusable(uint32_t state) const {
  if ((state & kForked) != 0) {
    raise(CHIPDOCK_FORKED, "plugin ", name_,
          " was loaded before this process was forked and cannot be ",
          "used in the child; start workers with the spawn method");
  }
  if ((state & kShutDown) != 0) {
    raise(CHIPDOCK_SHUTDOWN, "plugin ", name_,
          " was shut down; nothing of it can be used any more");
  }
  const std::lock_guard lock(failure_mutex_);
  raise(CHIPDOCK_UNAVAILABLE, "plugin ", name_, " reported a failure of the whole process (",
        failure_, "); restart the process");
}

void Plugin::fail_process(const chipdock_error& error) {
  const std::lock_guard lock(failure_mutex_);
  if ((state_.load(std::memory_order_relaxed) & kFailed) != 0) return;  // The first cause stays.
  failure_ = error.text;
  state_.fetch_or(kFailed, std::memory_order_release);
}

Plugin::Use::Use(Plugin& plugin) : plugin_(plugin) {
  // Counted first and asked then, both in one total order: either this sees the shutdown, or it sees this.
  plugin_.uses_.fetch_add(1);
  const uint32_t state = plugin_.state_.load();
  if (state == kUsable) return;
  plugin_.uses_.fetch_sub(1);
  plugin_.check_usable();
}

Plugin::Use::~Use() { plugin_.uses_.fetch_sub(1); }

void Plugin::shutdown() noexcept {
  const uint32_t before = state_.fetch_or(kShutDown, std::memory_order_acq_rel);
  if ((before & kShutDown) != 0) return;
  // The child holds no thread of the plugin that could end; its memory goes with the process.
  if ((before & kForked) == 0 && !wait_for_uses()) {
    log_line(CHIPDOCK_LOG_WARNING, id_.c_str(),
             "a run is still in progress; the plugin is not shut down");
    return;
  }
  if ((before & kForked) == 0 && handle_ != nullptr && handle_->shutdown != nullptr) {
    try {
      ErrorRecord error;
      check(handle_->shutdown(handle_, &error), error, name_ + " shutdown");
    } catch (const std::exception& failure) {
      // At exit a program may well hold devices still; that is not worth a warning.
      log_line(CHIPDOCK_LOG_INFO, id_.c_str(), failure.what());
    } catch (...) {
      log_line(CHIPDOCK_LOG_WARNING, id_.c_str(), "INTERNAL: an exception left shutdown [BASE-9]");
    }
  }
  if (layers_ != nullptr) layers_->finish();
}

bool Plugin::wait_for_uses() const {
  constexpr int kTries = 10'000;  // of a millisecond
  for (int i = 0; i < kTries; ++i) {
    if (uses_.load() == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void Plugin::set_report_sink(ReportSink sink, void* context) {
  services_->set_report_sink(sink, context);
}

std::vector<std::shared_ptr<Plugin>> loaded_plugins() {
  std::vector<std::shared_ptr<Plugin>> list;
  for (auto* node = PluginList::newest(); node != nullptr; node = node->older) {
    list.push_back(node->plugin);
  }
  return list;
}

void shutdown_all_plugins() noexcept {
  for (auto* node = PluginList::newest(); node != nullptr; node = node->older) {
    node->plugin->shutdown();
  }
}

}  // namespace chipdock::runtime
