// SPDX-License-Identifier: Apache-2.0
// Probing: what a plugin answers to count and info, asked on a thread that may be left behind,
// because a call into a hung driver cannot be ended from outside.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "loader.hpp"

namespace chipdock::runtime {
namespace {

constexpr int64_t kDefaultTimeoutNs = 20'000'000'000;

int64_t probe_timeout(int64_t given) {
  if (given >= 0) return given;
  const char* text = std::getenv("CHIPDOCK_PROBE_TIMEOUT");
  if (text == nullptr || *text == '\0') return kDefaultTimeoutNs;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds > 0) || seconds > 1e6) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "CHIPDOCK_PROBE_TIMEOUT is '", text,
          "'; it is a number of seconds, more than 0");
  }
  return static_cast<int64_t>(seconds * 1e9);
}

struct Outcome {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr thrown;
};

/// Fills state, code and cause from the failure that is being handled.
void set_failure(LoadReport& report) {
  try {
    throw;
  } catch (const Error& error) {
    report.code = error.code();
    report.cause = error.what();
  } catch (const std::exception& other) {
    report.code = CHIPDOCK_INTERNAL;
    report.cause =
        std::string("INTERNAL: an exception left the plugin (") + other.what() + ") [BASE-9]";
  } catch (...) {
    report.code = CHIPDOCK_INTERNAL;
    report.cause = "INTERNAL: an exception left the plugin [BASE-9]";
  }
  report.state = report.code == CHIPDOCK_TIMEOUT ? PluginState::kTimeout
                 : report.code == CHIPDOCK_UNAVAILABLE && report.plugin != nullptr
                     ? PluginState::kUnavailable
                     : PluginState::kBroken;
}

}  // namespace

const char* plugin_state_name(PluginState state) {
  switch (state) {
    case PluginState::kReady:
      return "ready";
    case PluginState::kUnavailable:
      return "unavailable";
    case PluginState::kTimeout:
      return "timeout";
    case PluginState::kBroken:
      break;
  }
  return "broken";
}

void run_limited(std::function<void()> work, int64_t timeout_ns, const std::string& what) {
  const int64_t limit = probe_timeout(timeout_ns);
  auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, work = std::move(work)]() mutable {
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    work = nullptr;
    const std::lock_guard lock(outcome->mutex);
    outcome->thrown = std::move(thrown);
    outcome->done = true;
    outcome->ended.notify_all();
  }).detach();
  std::unique_lock lock(outcome->mutex);
  // system_clock: ThreadSanitizer of g++ 12 does not know the wait on the steady clock.
  const auto until = std::chrono::system_clock::now() + std::chrono::nanoseconds(limit);
  if (!outcome->ended.wait_until(lock, until, [&] { return outcome->done; })) {
    raise(CHIPDOCK_TIMEOUT, what, " did not return within ", static_cast<double>(limit) * 1e-9,
          " s; the driver may hang, CHIPDOCK_PROBE_TIMEOUT sets the limit in seconds");
  }
  std::exception_ptr thrown = std::move(outcome->thrown);
  outcome->thrown = nullptr;
  if (thrown) std::rethrow_exception(thrown);
}

LoadReport probe(const std::shared_ptr<Plugin>& plugin, int64_t timeout_ns) noexcept {
  LoadReport report;
  report.path = plugin->path();
  report.notes = plugin->notes();
  report.plugin = plugin;
  try {
    auto products = std::make_shared<std::vector<std::string>>();
    run_limited(
        [plugin, products] {
          const int32_t count = plugin->device_count();
          for (int32_t i = 0; i < count; ++i) {
            products->emplace_back(plugin->device_info(i).product);
          }
        },
        timeout_ns, "plugin " + plugin->name() + " device count and info");
    report.products = *products;
    report.state = PluginState::kReady;
  } catch (...) {
    set_failure(report);
  }
  return report;
}

LoadReport load_and_probe(const std::string& path, const LoadOptions& options,
                          int64_t timeout_ns) noexcept {
  LoadReport report;
  report.path = path;
  try {
    auto plugin = std::make_shared<std::shared_ptr<Plugin>>();
    run_limited([plugin, path, options] { *plugin = Plugin::load(path, options); }, timeout_ns,
                "loading plugin " + path);
    return probe(*plugin, timeout_ns);
  } catch (...) {
    set_failure(report);
  }
  return report;
}

}  // namespace chipdock::runtime
