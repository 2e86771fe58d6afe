// SPDX-License-Identifier: Apache-2.0
// Plugins for Python: loading, identity, slots. Opened devices: devices.cpp.
#include <string>

#include "bindings.hpp"
#include "core_docs.hpp"
#include "host_services.hpp"
#include "loader.hpp"
#include "ops/op.hpp"
#include "slot_rules.hpp"

namespace chipdock::python {
namespace {

using runtime::LoadOptions;
using runtime::Plugin;

py::dict slot_dict(const runtime::Tables& tables) {
  py::dict out;
  for (size_t i = 0; i < runtime::kSlotCount; ++i) {
    const auto slot = static_cast<runtime::SlotId>(i);
    out[py::str(runtime::slot_info(slot).name)] = runtime::has_slot(tables, slot);
  }
  return out;
}

/// For slots that may let an exception of the vendor's library out.
template <class Work>
auto guarded(const Plugin& plugin, const char* slot, Work&& work) {
  try {
    return work();
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& other) {
    runtime::raise(CHIPDOCK_INTERNAL, plugin.name(), " ", slot,
                   " let an exception out [BASE-9]: ", other.what());
  }
}

}  // namespace

std::string uuid_text(const uint8_t* uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

void register_plugin(py::module_& module) {
  py::class_<Plugin, std::shared_ptr<Plugin>>(module, "Plugin", docs::Plugin::kClass)
      .def_property_readonly("id", &Plugin::id, docs::Plugin::id)
      .def_property_readonly("name", &Plugin::name, docs::Plugin::name)
      .def_property_readonly("version", &Plugin::version, docs::Plugin::version)
      .def_property_readonly("path", &Plugin::path, docs::Plugin::path)
      .def_property_readonly(
          "uuid", [](const Plugin& p) { return uuid_text(p.uuid().data()); }, docs::Plugin::uuid)
      .def_property_readonly(
          "abi_version",
          [](const Plugin& p) {
            return py::make_tuple(CHIPDOCK_VERSION_MAJOR(p.abi_version()),
                                  CHIPDOCK_VERSION_MINOR(p.abi_version()));
          },
          docs::Plugin::abi_version)
      .def_property_readonly("notes", &Plugin::notes, docs::Plugin::notes)
      .def_property_readonly(
          "slots", [](const Plugin& p) { return slot_dict(p.tables()); }, docs::Plugin::slots)
      .def(
          "device_count",
          [](Plugin& p) { return guarded(p, "device.count", [&] { return p.device_count(); }); },
          NoGil(), docs::Plugin::device_count)
      .def(
          "device_info",
          [](Plugin& p, int32_t index) {
            return info_dict(guarded(p, "device.info", [&] { return p.device_info(index); }));
          },
          py::arg("index"), docs::Plugin::device_info)
      .def("shutdown", &Plugin::shutdown, NoGil(), docs::Plugin::shutdown);

  py::class_<runtime::LoadReport>(module, "LoadReport", docs::LoadReport::kClass)
      .def_readonly("path", &runtime::LoadReport::path, docs::LoadReport::path)
      .def_property_readonly(
          "state", [](const runtime::LoadReport& r) { return runtime::plugin_state_name(r.state); },
          docs::LoadReport::state)
      .def_readonly("code", &runtime::LoadReport::code, docs::LoadReport::code)
      .def_readonly("cause", &runtime::LoadReport::cause, docs::LoadReport::cause)
      .def_readonly("notes", &runtime::LoadReport::notes, docs::LoadReport::notes)
      .def_readonly("products", &runtime::LoadReport::products, docs::LoadReport::products)
      .def_readonly("plugin", &runtime::LoadReport::plugin, docs::LoadReport::plugin);
  module.def(
      "load_plugin",
      [](const std::string& path, const std::string& layers, const runtime::Options& options) {
        return Plugin::load(path, LoadOptions{layers, options});
      },
      py::arg("path"), py::arg("layers") = "", py::arg("options") = runtime::Options{}, NoGil(),
      docs::load_plugin);
  module.def(
      "load_and_probe",
      [](const std::string& path, const std::string& layers) {
        return runtime::load_and_probe(path, LoadOptions{layers, {}});
      },
      py::arg("path"), py::arg("layers") = "", NoGil(), docs::load_and_probe);
  module.def(
      "shutdown_all", [] { NoGilScope::close(&runtime::shutdown_all_plugins); },
      docs::shutdown_all);
  module.def("set_log_level", &runtime::set_log_level, py::arg("level"), docs::set_log_level);
  module.def(
      "slot_names",
      [] {
        py::tuple names(runtime::kSlotCount);
        for (size_t i = 0; i < runtime::kSlotCount; ++i) {
          names[i] = runtime::slot_info(static_cast<runtime::SlotId>(i)).name;
        }
        return names;
      },
      docs::slot_names);
  module.attr("ABI_VERSION") = py::make_tuple(CHIPDOCK_ABI_MAJOR, CHIPDOCK_ABI_MINOR);
  module.def(
      "all_ops",
      [] {
        py::list out;
        for (const runtime::Op& op : runtime::all_ops()) {
          out.append(py::make_tuple(op.domain, op.name, op.since, op.until));
        }
        return out;
      },
      docs::all_ops);
}

}  // namespace chipdock::python
