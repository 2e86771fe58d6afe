// SPDX-License-Identifier: Apache-2.0
// Streams, events, captured graphs and the profiler for Python. Every call that may wait releases
// the GIL.
#include <memory>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "core_docs.hpp"
#include "graph.hpp"
#include "profiler.hpp"
#include "stream.hpp"

namespace chipdock::python {

using runtime::Device;
using runtime::Event;
using runtime::Graph;
using runtime::Profiler;
using runtime::Stream;

void register_streams(py::module_& module) {
  py::class_<Event, std::shared_ptr<Event>>(module, "Event", kNoGilInDestructor,
                                            docs::Event::kClass)
      .def(py::init(&Event::create), py::arg("device"), py::arg("timing") = false,
           docs::Event::kInit)
      .def(
          "record", [](Event& e, Stream* stream) { e.record(stream); }, py::arg("stream") = nullptr,
          NoGil(), docs::Event::record)
      .def("query", &Event::query, NoGil(), docs::Event::query)
      .def("sync", &Event::sync, py::arg("timeout_ns") = -1, NoGil(), docs::Event::sync)
      .def("elapsed_since", &Event::elapsed_since, py::arg("start"), docs::Event::elapsed_since)
      .def_property_readonly("device", &Event::device, docs::Event::device);
  py::class_<Graph, std::shared_ptr<Graph>>(module, "Graph", kNoGilInDestructor,
                                            docs::Graph::kClass)
      .def(
          "launch", [](Graph& g, Stream* stream) { g.launch(stream); }, py::arg("stream") = nullptr,
          NoGil(), docs::Graph::launch)
      .def_property_readonly("node_count", &Graph::node_count, docs::Graph::node_count);
  py::class_<Stream, std::shared_ptr<Stream>>(module, "Stream", kNoGilInDestructor,
                                              docs::Stream::kClass)
      .def(py::init([](std::shared_ptr<Device> device, int32_t priority) {
             return Stream::create(std::move(device), priority);
           }),
           py::arg("device"), py::arg("priority") = 0, docs::Stream::kInit)
      .def_static(
          "from_native",
          [](std::shared_ptr<Device> device, uintptr_t native) {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): Python has no pointers.
            return Stream::import(std::move(device), reinterpret_cast<void*>(native));
          },
          py::arg("device"), py::arg("native"), docs::Stream::from_native)
      .def_property_readonly("device", &Stream::device, docs::Stream::device)
      .def_property_readonly("emulated", &Stream::emulated, docs::Stream::emulated)
      .def("sync", &Stream::sync, py::arg("timeout_ns") = -1, NoGil(), docs::Stream::sync)
      .def("query", &Stream::query, NoGil(), docs::Stream::query)
      .def("wait", &Stream::wait, py::arg("event"), NoGil(), docs::Stream::wait)
      .def(
          "host_function",
          [](Stream& stream, py::object function) {
            auto held = keep_object(std::move(function));
            const NoGilScope no_gil;
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
          },
          py::arg("function"), docs::Stream::host_function)
      .def(
          "copy",
          [](Stream& stream, const Array& source, const Array& target) {
            if (source.tensor.bytes() != target.tensor.bytes() || !source.contiguous() ||
                !target.contiguous()) {
              runtime::raise(CHIPDOCK_INVALID_ARGUMENT,
                             "copy wants two contiguous arrays of one size, got ",
                             source.tensor.bytes(), " and ", target.tensor.bytes(), " bytes");
            }
            if (target.read_only) {
              runtime::raise(
                  CHIPDOCK_FAILED_PRECONDITION, "the memory of the target is read-only: its ",
                  "producer shared it that way; copy to an array of chipdock.empty instead");
            }
            if (source.tensor.bytes() == 0) return;
            const NoGilScope no_gil;
            const auto shared = stream.shared_from_this();
            source.tensor.buffer->used_on(shared);
            target.tensor.buffer->used_on(shared);
            stream.device()->copy(source.tensor.place(), target.tensor.place(),
                                  source.tensor.bytes(), &stream);
          },
          py::arg("source"), py::arg("target"), docs::Stream::copy)
      .def(
          "native", [](Stream& s) { return reinterpret_cast<uintptr_t>(s.native()); },
          docs::Stream::native)
      .def("abort", &Stream::abort, NoGil(), docs::Stream::abort)
      .def("begin_capture", &Stream::begin_capture, docs::Stream::begin_capture)
      .def("end_capture", &Stream::end_capture, docs::Stream::end_capture);
}

void register_profiler(py::module_& module) {
  py::class_<Profiler, std::shared_ptr<Profiler>>(module, "Profiler", docs::Profiler::kClass)
      .def(py::init<>(), docs::Profiler::kInit)
      .def(
          "write", [](const Profiler& p, const std::string& path) { p.write_chrome_trace(path); },
          NoGil(), py::arg("path"), docs::Profiler::write)
      .def("clear", &Profiler::clear, docs::Profiler::clear)
      .def(
          "records",
          [](const Profiler& p) {
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
          },
          docs::Profiler::records);
}

}  // namespace chipdock::python
