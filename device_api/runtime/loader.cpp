// SPDX-License-Identifier: Apache-2.0
// Plugin::load: dlopen, query, version negotiation, identity, tables, slot rules, layers. Each
// step's failure names the file and what to do. Probing with a time limit: probe.cpp.
#include "loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "host_services.hpp"
#include "layers/layers.hpp"
#include "library_file.hpp"
#include "negotiate.hpp"
#include "plugin_list.hpp"
#include "slot_rules.hpp"

namespace chipdock::runtime {
namespace {

// Kept for the life of the process: what failed after query may still hold its host services.
struct Failures {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> first;
  std::vector<std::shared_ptr<Plugin>> plugins;
};
Failures& failures() {
  static auto& value = *new Failures;
  return value;
}

chipdock_plugin_query_fn open_library(const std::string& path) {
  check_library_file(path);
  // RTLD_LOCAL: plugins must not see each other's symbols. Never closed: deleters run late.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    raise(CHIPDOCK_UNAVAILABLE, "plugin ", path,
          " cannot be loaded: ", reason != nullptr ? reason : "dlopen gave no reason");
  }
  void* symbol = dlsym(library, CHIPDOCK_QUERY_SYMBOL);
  if (symbol == nullptr) {
    raise(CHIPDOCK_INVALID_ARGUMENT, path, " is not a chipdock plugin: it exports no ",
          CHIPDOCK_QUERY_SYMBOL, " [PLG-1]");
  }
  chipdock_plugin_query_fn query = nullptr;
  // The way that POSIX shows; a cast from an object to a function pointer is pedantically wrong.
  std::memcpy(&query, &symbol, sizeof(query));  // NOLINT(bugprone-bitwise-pointer-cast)
  return query;
}

std::string canonical(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;  // dlopen's own text tells why.
  std::string result(resolved);
  std::free(resolved);
  return result;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

/// Fills a Plugin step by step; the friend that plugin.hpp names.
class Loader {
 public:
  Loader(const std::string& path, const LoadOptions& options)
      : path_(path), options_(options), plugin_(new Plugin) {
    plugin_->path_ = path;
    plugin_->name_ = file_name(path);
  }

  std::shared_ptr<Plugin> run() {
    const auto query = open_library(path_);
    plugin_->services_->set_name(file_name(path_));
    plugin_->services_->set_process_failure_sink(
        [](void* context, const chipdock_error& error) {
          static_cast<Plugin*>(context)->fail_process(error);
        },
        plugin_.get());
    try {
      plugin_->handle_ = negotiate(query, plugin_->services_->host(), options_.options, path_);
      take_identity();
      take_tables();
      const PluginInfo info{plugin_->name_, plugin_->services_.get()};
      plugin_->layers_ = apply_layers(plugin_->tables_, options_.layers, info);
    } catch (...) {
      if (plugin_->handle_ != nullptr) plugin_->shutdown();
      const std::lock_guard lock(failures().mutex);
      failures().plugins.push_back(plugin_);
      throw;
    }
    PluginList::add(plugin_);
    return plugin_;
  }

 private:
  void take_identity() {
    const Identity identity = read_identity(*plugin_->handle_, path_);
    plugin_->id_ = identity.id;
    plugin_->name_ = identity.name;
    plugin_->version_ = identity.version;
    plugin_->uuid_ = identity.uuid;
    plugin_->abi_version_ = plugin_->handle_->abi_version;
    plugin_->services_->set_name(identity.id);
  }

  void take_tables() {
    const std::string who = plugin_->id_ + " (" + path_ + ")";
    plugin_->tables_ = read_tables(plugin_->handle_, who, plugin_->notes_);
    for (const std::string& fault :
         {missing_required_slot(plugin_->tables_), broken_slot_rule(plugin_->tables_)}) {
      if (fault.empty()) continue;
      raise(CHIPDOCK_FAILED_PRECONDITION, "plugin ", who, ": ", fault,
            "; the plugin has to be corrected");
    }
  }

  std::string path_;
  const LoadOptions& options_;
  std::shared_ptr<Plugin> plugin_;
};

std::shared_ptr<Plugin> Plugin::load(const std::string& path, const LoadOptions& options) {
  const std::string file = canonical(path);
  try {
    if (PluginList::loaded_before_fork(file)) {
      raise(CHIPDOCK_FORKED, "plugin ", file,
            " was loaded before this process was forked and cannot be ",
            "used in the child; start workers with the spawn method");
    }
    return Loader(file, options).run();
  } catch (const Error& error) {
    const std::lock_guard lock(failures().mutex);
    auto& first = failures().first;
    const bool known = std::any_of(first.begin(), first.end(),
                                   [&](const auto& entry) { return entry.first == file; });
    if (!known) first.emplace_back(file, error.what());
    throw;
  }
}

std::vector<std::pair<std::string, std::string>> first_load_failures() {
  const std::lock_guard lock(failures().mutex);
  return failures().first;
}

}  // namespace chipdock::runtime
