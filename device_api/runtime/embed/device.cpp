// SPDX-License-Identifier: Apache-2.0
// host_device.h: finding a device by its name, opening it.
#include "allocator.hpp"
#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

using runtime::Device;
using runtime::LoadReport;

struct Found {
  std::shared_ptr<runtime::Plugin> plugin;
  int32_t index = 0;
};

std::string known_devices(const chipdock_host_runtime& host) {
  std::string text;
  for (const LoadReport& report : host.plugins) {
    for (size_t i = 0; report.plugin != nullptr && i < report.products.size(); ++i) {
      text += (text.empty() ? "" : ", ") + report.plugin->name() + ":" + std::to_string(i);
    }
  }
  return text.empty() ? "no device is here" : "devices here are " + text;
}

/// Why plugins that could have been meant are not there; "" if all are.
std::string failed_plugins(const chipdock_host_runtime& host) {
  std::string text;
  for (const LoadReport& report : host.plugins) {
    if (report.state == runtime::PluginState::kReady) continue;
    text += (text.empty() ? "; not loaded: " : "; ") + report.path + " (" + report.cause + ")";
  }
  return text;
}

/// A name in ASCII as error text shows it, for whatever bytes a caller gives.
std::string shown(const std::string& name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

/// The device behind a name. [HDV-1]
Found find(chipdock_host_runtime& host, const std::string& name) {
  const size_t colon = name.rfind(':');
  const std::string base = name.substr(0, colon);
  const std::string digits = colon == std::string::npos ? "0" : name.substr(colon + 1);
  const bool number = !digits.empty() && digits.size() < 9 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  require(!base.empty() && number, "device name '", shown(name),
          "' must look like 'acme:0': a plugin and ", "a number");
  const int32_t index = std::stoi(digits);
  const std::lock_guard lock(host.mutex);
  for (const bool by_id : {false, true}) {
    for (const LoadReport& report : host.plugins) {
      if (report.plugin == nullptr) continue;
      if (base != (by_id ? report.plugin->id() : report.plugin->name())) continue;
      if (report.state != runtime::PluginState::kReady) {
        runtime::raise(CHIPDOCK_UNAVAILABLE, name, " cannot be used: ", report.cause);
      }
      require(static_cast<size_t>(index) < report.products.size(), name, " does not exist, ",
              report.plugin->name(), " has ", report.products.size(), " devices");
      return {report.plugin, index};
    }
  }
  runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "no plugin provides '", shown(name), "', ",
                 known_devices(host), failed_plugins(host));
}

runtime::Options read_options(const chipdock_host_device_desc& desc) {
  need_list(desc.options, desc.option_count, "options");
  runtime::Options options;
  for (uint32_t i = 0; i < desc.option_count; ++i) {
    const chipdock_option option = take(desc.options[i], "options entry");
    only_flags(option.flags, 0, "options entry");
    options.emplace_back(&need(option.key, "key of an option"),
                         &need(option.value, "value of an option"));
  }
  return options;
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_device_describe(chipdock_host_runtime* host,
                                                            const char* name,
                                                            chipdock_device_info* out_info,
                                                            chipdock_error* error) {
  return guard(error, [&] {
    need(host, "host");
    need(out_info, "out_info");
    const Found found = find(*host, &need(name, "name"));
    chipdock::kit::write_struct(out_info, found.plugin->device_info(found.index), "out_info");
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_device_open(chipdock_host_runtime* host,
                                                        const char* name,
                                                        const chipdock_host_device_desc* desc,
                                                        chipdock_host_device** out_device,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    need(host, "host");
    need(out_device, "out_device");
    const Found found = find(*host, &need(name, "name"));
    const chipdock::runtime::Options options =
        desc != nullptr ? read_options(take(desc, "desc")) : chipdock::runtime::Options{};
    // On a thread of its own, which owns what it uses: a driver may hang in here for ever.
    const auto opened = std::make_shared<std::shared_ptr<Device>>();
    chipdock::runtime::run_limited(
        [=] { *opened = Device::open(found.plugin, found.index, options); }, host->timeout_ns,
        std::string("opening ") + name);
    auto device = std::make_unique<chipdock_host_device>();
    device->device = std::move(*opened);
    *out_device = device.release();
  });
}

void CHIPDOCK_CALL chipdock_host_device_close(chipdock_host_device* device) { delete device; }

chipdock_status CHIPDOCK_CALL chipdock_host_device_sync(chipdock_host_device* device,
                                                        int64_t timeout_ns, chipdock_error* error) {
  return guard(error, [&] { need(device, "device").device->sync(timeout_ns); });
}

chipdock_status CHIPDOCK_CALL chipdock_host_device_memory(chipdock_host_device* device,
                                                          int32_t trim,
                                                          chipdock_host_memory_stats* out_stats,
                                                          chipdock_error* error) {
  return guard(error, [&] {
    Device& d = *need(device, "device").device;
    need(out_stats, "out_stats");
    require(trim == 0 || trim == 1, "trim is ", trim, ", it must be 0 or 1");
    d.check_alive();
    if (trim == 1) d.trim();
    const chipdock::runtime::AllocatorStats stats = d.allocator().stats();
    chipdock_host_memory_stats out{};
    out.used_bytes = stats.used_bytes;
    out.cached_bytes = stats.cached_bytes;
    out.plugin_bytes = stats.reserved_bytes;
    out.peak_bytes = stats.peak_used_bytes;
    chipdock::kit::write_struct(out_stats, out, "out_stats");
  });
}
