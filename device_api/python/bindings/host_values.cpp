// SPDX-License-Identifier: Apache-2.0
// Strings, sequences and optionals between Python and the executor: object arrays of str, lists,
// None. Text is UTF-8; bytes that are not come back as Python's surrogate escapes.
#include "bindings.hpp"
#include "exec/host_object.hpp"

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::Dims;
using runtime::HostKind;
using runtime::TensorRef;

std::string text_of(const py::handle& item) {
  if (PyBytes_Check(item.ptr()) != 0) return item.cast<std::string>();
  if (PyUnicode_Check(item.ptr()) == 0) {
    runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "an array of strings holds a ",
                   std::string(py::str(py::type::handle_of(item).attr("__name__"))),
                   ", allowed are str and bytes");
  }
  const auto bytes = py::reinterpret_steal<py::object>(
      PyUnicode_AsEncodedString(item.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw py::error_already_set();
  return bytes.cast<std::string>();
}

py::object text_object(const std::string& text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object strings_array(const TensorRef& value) {
  const auto& strings = value.object->strings;
  py::list flat;
  for (const std::string& text : strings) flat.append(text_object(text));
  const py::module_ numpy = py::module_::import("numpy");
  py::object out = numpy.attr("empty")(strings.size(), py::dtype("O"));
  out.attr("__setitem__")(py::ellipsis(), flat);
  return out.attr("reshape")(py::cast(value.dims));
}

}  // namespace

bool holds_strings(const py::array& array) {
  const char kind = array.dtype().kind();
  return kind == 'O' || kind == 'U' || kind == 'S' || kind == 'T';
}

TensorRef strings_of(const py::array& array) {
  std::vector<std::string> strings;
  const py::list flat(array.attr("ravel")().attr("tolist")());
  strings.reserve(flat.size());
  for (const py::handle item : flat) strings.push_back(text_of(item));
  return runtime::make_strings(Dims(array.shape(), array.shape() + array.ndim()),
                               std::move(strings));
}

TensorRef host_value(const py::handle& value, const std::shared_ptr<Device>& host,
                     std::vector<py::object>& held) {
  if (value.is_none()) return runtime::make_none();
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    std::vector<TensorRef> items;
    for (const py::handle item : value.cast<py::sequence>())
      items.push_back(host_value(item, host, held));
    return runtime::make_sequence(std::move(items));
  }
  if (py::isinstance<py::array>(value) && holds_strings(value.cast<py::array>()))
    return strings_of(value.cast<py::array>());
  return input_tensor(value, host, held);
}

py::object to_python(TensorRef value, const std::shared_ptr<Device>& device) {
  if (value.object == nullptr) return py::cast(make_array(std::move(value), device));
  switch (value.object->kind) {
    case HostKind::kStrings:
      return strings_array(value);
    case HostKind::kSequence: {
      py::list out;
      // Elements are shared inside the executor; what Python gets is its own.
      for (const TensorRef& item : value.object->items)
        out.append(to_python(runtime::move_tensor(item, *device, nullptr), device));
      return out;
    }
    case HostKind::kNone:
      break;
  }
  return py::none();
}

}  // namespace chipdock::python
