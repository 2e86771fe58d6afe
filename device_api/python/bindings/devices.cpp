// SPDX-License-Identifier: Apache-2.0
// Plugins, devices, streams, events, graphs and the profiler for Python. Every call that may wait releases
// the GIL.
#include "bindings.hpp"
#include "allocator.hpp"
#include "host_services.hpp"
#include "layers/layer_stack.hpp"
#include "loader.hpp"
#include "ops/op.hpp"
#include "profiler.hpp"

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::Event;
using runtime::Graph;
using runtime::LoadOptions;
using runtime::Plugin;
using runtime::Profiler;
using runtime::Stream;

using NoGil = py::call_guard<py::gil_scoped_release>;

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

const char* or_empty(const char* text) { return text != nullptr ? text : ""; }

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

py::dict slot_dict(const runtime::Tables& tables) {
  py::dict out;
  for (size_t i = 0; i < runtime::kSlotCount; ++i) {
    const auto slot = static_cast<runtime::SlotId>(i);
    out[py::str(runtime::slot_info(slot).name)] = runtime::has_slot(tables, slot);
  }
  return out;
}

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

/// For slots that may let an exception of the vendor's library out.
template <class Work>
auto guarded(const Plugin& plugin, const char* slot, Work&& work) {
  try {
    return work();
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& other) {
    runtime::raise(CHIPDOCK_INTERNAL, plugin.name(), " ", slot, " let an exception out [BASE-9]: ", other.what());
  }
}

void register_plugin(py::module_& module) {
  py::class_<Plugin, std::shared_ptr<Plugin>>(module, "Plugin")
      .def_property_readonly("id", &Plugin::id)
      .def_property_readonly("name", &Plugin::name)
      .def_property_readonly("version", &Plugin::version)
      .def_property_readonly("path", &Plugin::path)
      .def_property_readonly("uuid", [](const Plugin& p) { return uuid_text(p.uuid().data()); })
      .def_property_readonly("abi_version",
                             [](const Plugin& p) {
                               return py::make_tuple(CHIPDOCK_VERSION_MAJOR(p.abi_version()),
                                                     CHIPDOCK_VERSION_MINOR(p.abi_version()));
                             })
      .def_property_readonly("notes", &Plugin::notes)
      .def_property_readonly("slots", [](const Plugin& p) { return slot_dict(p.tables()); })
      .def(
          "device_count",
          [](Plugin& p) { return guarded(p, "device.count", [&] { return p.device_count(); }); }, NoGil())
      .def("device_info",
           [](Plugin& p, int32_t index) {
             return info_dict(guarded(p, "device.info", [&] { return p.device_info(index); }));
           })
      .def("shutdown", &Plugin::shutdown, NoGil());

  py::class_<runtime::LoadReport>(module, "LoadReport")
      .def_readonly("path", &runtime::LoadReport::path)
      .def_property_readonly("state", [](const runtime::LoadReport& r) { return runtime::plugin_state_name(r.state); })
      .def_readonly("code", &runtime::LoadReport::code)
      .def_readonly("cause", &runtime::LoadReport::cause)
      .def_readonly("notes", &runtime::LoadReport::notes)
      .def_readonly("products", &runtime::LoadReport::products)
      .def_readonly("plugin", &runtime::LoadReport::plugin);
  module.def(
      "load_plugin",
      [](const std::string& path, const std::string& layers, const runtime::Options& options) {
        return Plugin::load(path, LoadOptions{layers, options});
      },
      py::arg("path"), py::arg("layers") = "", py::arg("options") = runtime::Options{}, NoGil());
  module.def(
      "load_and_probe",
      [](const std::string& path, const std::string& layers) {
        return runtime::load_and_probe(path, LoadOptions{layers, {}});
      },
      py::arg("path"), py::arg("layers") = "", NoGil());
  module.def("shutdown_all", &runtime::shutdown_all_plugins, NoGil());
  module.def("set_log_level", &runtime::set_log_level);
  module.attr("ABI_VERSION") = py::make_tuple(CHIPDOCK_ABI_MAJOR, CHIPDOCK_ABI_MINOR);
  module.def("all_ops", [] {
    py::list out;
    for (const runtime::Op& op : runtime::all_ops()) {
      out.append(py::make_tuple(op.domain, op.name, op.since, op.until));
    }
    return out;
  });
}

void register_device(py::module_& module) {
  py::class_<Device, std::shared_ptr<Device>>(module, "Device")
      .def_static("open", &open_device, py::arg("plugin"), py::arg("index"),
                  py::arg("options") = runtime::Options{}, NoGil())
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("index", &Device::index)
      .def_property_readonly("plugin", &Device::plugin)
      .def_property_readonly("info", [](const Device& d) { return info_dict(d.info()); })
      .def_property_readonly("host_visible", &Device::host_visible)
      .def_property_readonly("prefers_inline", &Device::prefers_inline)
      .def_property_readonly("reads_host",
                             [](const Device& d) { return (d.info().flags & CHIPDOCK_DEVICE_READS_HOST) != 0; })
      .def("sync", [](Device& d, int64_t timeout_ns) { d.sync(timeout_ns); }, py::arg("timeout_ns") = -1, NoGil())
      .def("memory_stats", &stats_dict)
      .def("memory_info",
           [](Device& d) {
             const chipdock_memory_info info = d.memory_info(0);
             return py::make_tuple(info.free_bytes, info.total_bytes);
           })
      .def("reset_peak", [](Device& d) { d.allocator().reset_peak(); })
      .def("set_memory_limit", [](Device& d, uint64_t bytes) { d.allocator().set_limit(bytes); }, py::arg("bytes"))
      .def("trim", [](Device& d) { return d.allocator().trim(); }, NoGil())
      .def("set_profiler", &Device::set_profiler, py::arg("profiler"))
      .def("link",
           [](Device& d, Device& peer) {
             chipdock_link_info link{};
             {
               const py::gil_scoped_release no_gil;
               link = d.link(peer);
             }
             py::dict out;
             out["type"] = link.type;
             out["bandwidth"] = link.bandwidth;
             out["reverse_bandwidth"] = link.reverse_bandwidth;
             out["latency_ns"] = link.latency_ns;
             return out;
           })
      .def("kernels", [](const std::shared_ptr<Device>& d) {
        py::list out;
        if (d->tables().kernel.list == nullptr) return out;
        const chipdock_kernel* const* kernels = nullptr;
        uint64_t count = 0;
        runtime::ErrorRecord error;
        runtime::check(d->tables().kernel.list(d->handle(), &kernels, &count, &error), error, d->name() + " kernel.list");
        for (uint64_t i = 0; i < count; ++i) {
          out.append(py::make_tuple(or_empty(kernels[i]->domain), kernels[i]->op, kernels[i]->since_version,
                                    kernels[i]->until_version, or_empty(kernels[i]->name)));
        }
        return out;
      });
}

void register_streams(py::module_& module) {
  py::class_<Event, std::shared_ptr<Event>>(module, "Event")
      .def(py::init(&Event::create), py::arg("device"), py::arg("timing") = false)
      .def("record", [](Event& e, Stream* stream) { e.record(stream); }, py::arg("stream") = nullptr, NoGil())
      .def("query", &Event::query, NoGil())
      .def("sync", &Event::sync, py::arg("timeout_ns") = -1, NoGil())
      .def("elapsed_since", &Event::elapsed_since, py::arg("start"))
      .def_property_readonly("device", &Event::device);
  py::class_<Graph, std::shared_ptr<Graph>>(module, "Graph")
      .def("launch", [](Graph& g, Stream* stream) { g.launch(stream); }, py::arg("stream") = nullptr, NoGil())
      .def_property_readonly("node_count", &Graph::node_count);
  py::class_<Stream, std::shared_ptr<Stream>>(module, "Stream")
      .def(py::init([](std::shared_ptr<Device> device, int32_t priority) {
             return Stream::create(std::move(device), priority);
           }),
           py::arg("device"), py::arg("priority") = 0)
      .def_static("from_native",
                  [](std::shared_ptr<Device> device, uintptr_t native) {
                    return Stream::import(std::move(device), reinterpret_cast<void*>(native));
                  })
      .def_property_readonly("device", &Stream::device)
      .def_property_readonly("emulated", &Stream::emulated)
      .def("sync", &Stream::sync, py::arg("timeout_ns") = -1, NoGil())
      .def("query", &Stream::query, NoGil())
      .def("wait", &Stream::wait, py::arg("event"), NoGil())
      .def("host_function",
           [](Stream& stream, py::object function) {
             auto held = keep_object(std::move(function));
             const py::gil_scoped_release no_gil;
             stream.host_function([held](chipdock_status state) {
               if (Py_IsInitialized() == 0) return;
               const py::gil_scoped_acquire gil;
               auto* raw = static_cast<PyObject*>(const_cast<void*>(held.get()));
               const py::object call = py::reinterpret_borrow<py::object>(raw);
               try {
                 call(kit::status_name(state));
               } catch (py::error_already_set& error) {
                 error.discard_as_unraisable("a host function of a chipdock stream");
               }
             });
           })
      .def("copy",
           [](Stream& stream, const Array& source, const Array& target) {
             if (source.tensor.bytes() != target.tensor.bytes() || !source.contiguous() || !target.contiguous()) {
               runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "copy wants two contiguous arrays of one size, got ",
                              source.tensor.bytes(), " and ", target.tensor.bytes(), " bytes");
             }
             if (source.tensor.bytes() == 0) return;
             const py::gil_scoped_release no_gil;
             const auto shared = stream.shared_from_this();
             source.tensor.buffer->used_on(shared);
             target.tensor.buffer->used_on(shared);
             stream.device()->copy(source.tensor.place(), target.tensor.place(), source.tensor.bytes(), &stream);
           })
      .def("native", [](Stream& s) { return reinterpret_cast<uintptr_t>(s.native()); })
      .def("abort", &Stream::abort, NoGil())
      .def("begin_capture", &Stream::begin_capture)
      .def("end_capture", &Stream::end_capture);
}

void register_profiler(py::module_& module) {
  py::class_<Profiler, std::shared_ptr<Profiler>>(module, "Profiler")
      .def(py::init<>())
      .def("write", [](const Profiler& p, const std::string& path) { p.write_chrome_trace(path); }, NoGil())
      .def("clear", &Profiler::clear)
      .def("records", [](const Profiler& p) {
        py::list out;
        for (const runtime::ProfileRecord& r : p.records()) {
          py::dict entry, args;
          for (const auto& [key, value] : r.args) args[py::str(key)] = value;
          entry["name"] = r.name;
          entry["category"] = r.category;
          entry["start_ns"] = r.start_ns;
          entry["duration_ns"] = r.duration_ns;
          entry["thread"] = r.thread;
          entry["device"] = r.device;
          entry["args"] = args;
          out.append(entry);
        }
        return out;
      });
}

}  // namespace

void register_devices(py::module_& module) {
  register_plugin(module);
  register_device(module);
  register_streams(module);
  register_profiler(module);
}

}  // namespace chipdock::python
