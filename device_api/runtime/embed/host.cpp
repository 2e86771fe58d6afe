// SPDX-License-Identifier: Apache-2.0
// host_base.h: hosts and their plugins. A host owns plugin instances of its own; what it does not
// own, the process-wide list for the fork handler, is the runtime's.
#include <cstdlib>

#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

using runtime::LoadReport;

constexpr int64_t kForEverNs = int64_t{10} * 365 * 24 * 3600 * 1'000'000'000;  // a clock's sum fits

/// Loads and lists one library. [HST-8]
const LoadReport& load(chipdock_host_runtime& host, const std::string& path, uint32_t* index) {
  LoadReport report = runtime::load_and_probe(path, {host.layers, {}}, host.timeout_ns);
  const std::lock_guard lock(host.mutex);
  if (index != nullptr) *index = static_cast<uint32_t>(host.plugins.size());
  host.plugins.push_back(std::move(report));
  return host.plugins.back();
}

/// Lists what a path names; a path of no use is listed with its cause.
void load_all(chipdock_host_runtime& host, const std::string& path) {
  try {
    for (const std::string& library : libraries_of(path)) load(host, library, nullptr);
  } catch (const runtime::Error& error) {
    LoadReport report;
    report.path = path;
    report.code = error.code();
    report.cause = error.what();
    const std::lock_guard lock(host.mutex);
    host.plugins.push_back(std::move(report));
  }
}

void search_environment(chipdock_host_runtime& host) {
  const std::string list = text_or_empty(std::getenv("CHIPDOCK_PLUGIN_PATH"));
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    if (end > at) load_all(host, list.substr(at, end - at));
    at = end + 1;
  }
}

int32_t state_of(const LoadReport& report) {
  switch (report.state) {
    case runtime::PluginState::kReady:
      return CHIPDOCK_HOST_PLUGIN_READY;
    case runtime::PluginState::kUnavailable:
      return CHIPDOCK_HOST_PLUGIN_UNAVAILABLE;
    case runtime::PluginState::kTimeout:
      return CHIPDOCK_HOST_PLUGIN_TIMEOUT;
    case runtime::PluginState::kBroken:
      break;
  }
  return CHIPDOCK_HOST_PLUGIN_BROKEN;
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

uint32_t CHIPDOCK_CALL chipdock_host_version(void) { return CHIPDOCK_HOST_VERSION; }

chipdock_status CHIPDOCK_CALL chipdock_host_create(const chipdock_host_desc* desc,
                                                   chipdock_host_runtime** out_host,
                                                   chipdock_error* error) {
  return guard(error, [&] {
    need(out_host, "out_host");
    chipdock_host_desc given{};
    if (desc != nullptr) given = take(desc, "desc");
    only_flags(given.flags, CHIPDOCK_HOST_SEARCH, "desc");
    need_list(given.paths, given.path_count, "paths");
    auto host = std::make_unique<chipdock_host_runtime>();
    host->layers = text_or_empty(given.layers);
    require(given.timeout_ns >= -1, "timeout_ns is ", given.timeout_ns,
            ", allowed are -1 and more");
    if (given.timeout_ns != 0) host->timeout_ns = given.timeout_ns;
    if (given.timeout_ns == -1 || given.timeout_ns > kForEverNs) host->timeout_ns = kForEverNs;
    for (uint32_t i = 0; i < given.path_count; ++i) need(given.paths[i], "paths entry");
    for (uint32_t i = 0; i < given.path_count; ++i) load_all(*host, given.paths[i]);
    if ((given.flags & CHIPDOCK_HOST_SEARCH) != 0) search_environment(*host);
    *out_host = host.release();
  });
}

void CHIPDOCK_CALL chipdock_host_destroy(chipdock_host_runtime* host) {
  if (host == nullptr) return;
  for (auto at = host->plugins.rbegin(); at != host->plugins.rend(); ++at) {
    if (at->plugin != nullptr) at->plugin->shutdown();
  }
  delete host;
}

chipdock_status CHIPDOCK_CALL chipdock_host_load_plugin(chipdock_host_runtime* host,
                                                        const char* path, uint32_t* out_index,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    need(host, "host");
    need(out_index, "out_index");
    require(need(path, "path") != '\0', "path is empty; it must be that of a plugin's library");
    uint32_t index = 0;
    const LoadReport& report = load(*host, path, &index);
    if (report.plugin == nullptr) throw chipdock::runtime::Error(report.code, report.cause);
    *out_index = index;
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_plugin_count(chipdock_host_runtime* host,
                                                         uint32_t* out_count,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    need(host, "host");
    need(out_count, "out_count");
    const std::lock_guard lock(host->mutex);
    *out_count = static_cast<uint32_t>(host->plugins.size());
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_plugin_describe(chipdock_host_runtime* host,
                                                            uint32_t index,
                                                            chipdock_host_plugin_info* out_info,
                                                            chipdock_error* error) {
  return guard(error, [&] {
    need(host, "host");
    const std::lock_guard lock(host->mutex);
    require(index < host->plugins.size(), "plugin ", index, " does not exist, the host has ",
            host->plugins.size());
    const LoadReport& report = host->plugins[index];
    chipdock_host_plugin_info info{};
    info.state = state_of(report);
    info.code = report.code;
    info.device_count = static_cast<int32_t>(report.products.size());
    info.path = report.path.c_str();
    info.cause = report.cause.c_str();
    info.id = info.name = info.version = "";
    if (report.plugin != nullptr) {
      info.abi_version = report.plugin->abi_version();
      info.id = report.plugin->id().c_str();
      info.name = report.plugin->name().c_str();
      info.version = report.plugin->version().c_str();
    }
    chipdock::kit::write_struct(out_info, info, "out_info");
  });
}
