// SPDX-License-Identifier: Apache-2.0
// Devices for Python: what they are, their memory, their kernels. Every call that may wait releases
// the GIL.
#include <memory>
#include <string>

#include "allocator.hpp"
#include "bindings.hpp"
#include "core_docs.hpp"
#include "exec/kernel_registry.hpp"
#include "loader.hpp"
#include "profiler.hpp"  // IWYU pragma: keep, pybind11 wants the complete type

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::Plugin;

const char* or_empty(const char* text) { return text != nullptr ? text : ""; }

std::shared_ptr<Device> open_device(const std::shared_ptr<Plugin>& plugin, int32_t index,
                                    const runtime::Options& options) {
  std::shared_ptr<std::shared_ptr<Device>> opened = std::make_shared<std::shared_ptr<Device>>();
  const std::string what = "opening " + plugin->name() + ":" + std::to_string(index);
  runtime::run_limited([=] { *opened = Device::open(plugin, index, options); }, -1, what);
  return *opened;
}

py::dict stats_dict(Device& device) {
  const runtime::AllocatorStats a = device.allocator().stats();
  const chipdock_device_stats d = device.stats();
  py::dict out;
  out["used_bytes"] = a.used_bytes;
  out["pending_bytes"] = a.pending_bytes;
  out["cached_bytes"] = a.cached_bytes;
  out["reserved_bytes"] = a.reserved_bytes;
  out["peak_used_bytes"] = a.peak_used_bytes;
  out["peak_reserved_bytes"] = a.peak_reserved_bytes;
  out["allocation_count"] = a.allocation_count;
  out["plugin_allocation_count"] = a.plugin_allocation_count;
  out["retry_count"] = a.retry_count;
  out["launch_count"] = d.launch_count;
  out["copy_bytes"] = d.copy_bytes;
  return out;
}

}  // namespace

py::dict info_dict(const chipdock_device_info& info) {
  py::dict out;
  out["product"] = or_empty(info.product);
  out["architecture"] = or_empty(info.architecture);
  out["driver"] = or_empty(info.driver);
  out["uuid"] = uuid_text(info.uuid);
  out["pci_address"] = or_empty(info.pci_address);
  out["numa_node"] = info.numa_node;
  out["units"] = info.units;
  out["memory_bandwidth"] = info.memory_bandwidth;
  out["l2_bytes"] = info.l2_bytes;
  py::list heaps, peaks;
  for (uint32_t i = 0; i < info.heap_count; ++i) {
    const chipdock_heap& heap = *info.heaps[i];
    py::dict entry;
    entry["name"] = or_empty(heap.name);
    entry["bytes"] = heap.bytes;
    entry["alignment"] = heap.alignment;
    entry["host_visible"] = (heap.flags & CHIPDOCK_HEAP_HOST_VISIBLE) != 0;
    entry["coherent"] = (heap.flags & CHIPDOCK_HEAP_COHERENT) != 0;
    entry["addressable"] = (heap.flags & CHIPDOCK_HEAP_ADDRESSABLE) != 0;
    heaps.append(entry);
  }
  for (uint32_t i = 0; i < info.peak_count; ++i) {
    py::dict entry;
    entry["dtype"] = kit::dtype_name(info.peaks[i]->dtype);
    entry["operations_per_second"] = info.peaks[i]->operations_per_second;
    peaks.append(entry);
  }
  out["heaps"] = heaps;
  out["peaks"] = peaks;
  return out;
}

void register_device(py::module_& module) {
  py::class_<Device, std::shared_ptr<Device>> device(module, "Device", kNoGilInDestructor,
                                                     docs::Device::kClass);
  device
      .def_static("open", &open_device, py::arg("plugin"), py::arg("index"),
                  py::arg("options") = runtime::Options{}, NoGil(), docs::Device::open)
      .def_property_readonly("name", &Device::name, docs::Device::name)
      .def_property_readonly("index", &Device::index, docs::Device::index)
      .def_property_readonly("plugin", &Device::plugin, docs::Device::plugin)
      .def_property_readonly(
          "info", [](const Device& d) { return info_dict(d.info()); }, docs::Device::info)
      .def_property_readonly("host_visible", &Device::host_visible, docs::Device::host_visible)
      .def_property_readonly("prefers_inline", &Device::prefers_inline,
                             docs::Device::prefers_inline)
      .def_property_readonly(
          "reads_host",
          [](const Device& d) { return (d.info().flags & CHIPDOCK_DEVICE_READS_HOST) != 0; },
          docs::Device::reads_host)
      .def(
          "sync", [](Device& d, int64_t timeout_ns) { d.sync(timeout_ns); },
          py::arg("timeout_ns") = -1, NoGil(), docs::Device::sync)
      .def("memory_stats", &stats_dict, docs::Device::memory_stats)
      .def(
          "memory_info",
          [](Device& d) {
            const chipdock_memory_info info = d.memory_info(0);
            return py::make_tuple(info.free_bytes, info.total_bytes);
          },
          docs::Device::memory_info)
      .def(
          "reset_peak", [](Device& d) { d.allocator().reset_peak(); }, docs::Device::reset_peak)
      .def(
          "set_memory_limit", [](Device& d, uint64_t bytes) { d.allocator().set_limit(bytes); },
          py::arg("limit"), docs::Device::set_memory_limit)
      .def(
          "trim", [](Device& d) { return d.allocator().trim(); }, NoGil(), docs::Device::trim)
      .def("set_profiler", &Device::set_profiler, py::arg("profiler"), docs::Device::set_profiler)
      .def(
          "link",
          [](Device& d, Device& peer) {
            chipdock_link_info link{};
            {
              const NoGilScope no_gil;
              link = d.link(peer);
            }
            py::dict out;
            out["type"] = link.type;
            out["bandwidth"] = link.bandwidth;
            out["reverse_bandwidth"] = link.reverse_bandwidth;
            out["latency_ns"] = link.latency_ns;
            return out;
          },
          py::arg("peer"), docs::Device::link)
      .def(
          "kernels",
          [](const std::shared_ptr<Device>& d) {
            py::list out;
            if (d->tables().kernel.list == nullptr) return out;
            const chipdock_kernel* const* kernels = nullptr;
            uint64_t count = 0;
            runtime::ErrorRecord error;
            runtime::check(d->tables().kernel.list(d->handle(), &kernels, &count, &error), error,
                           d->name() + " kernel.list");
            for (uint64_t i = 0; i < count; ++i) {
              if (runtime::unknown_flags(*kernels[i]) != 0) continue;
              out.append(py::make_tuple(or_empty(kernels[i]->domain), kernels[i]->op,
                                        kernels[i]->since_version, kernels[i]->until_version,
                                        or_empty(kernels[i]->name)));
            }
            return out;
          },
          docs::Device::kernels);
  register_source(module, device);
}

}  // namespace chipdock::python
