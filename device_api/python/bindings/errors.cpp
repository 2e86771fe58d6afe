// SPDX-License-Identifier: Apache-2.0
// From runtime::Error and kit::Failure to the exception classes of chipdock.errors.
#include "bindings.hpp"

namespace chipdock::python {
namespace {

void raise_python(const std::string& text, chipdock_status code, int64_t vendor_code, int32_t scope,
                  uint64_t correlation_id) {
  try {
    const py::object make = py::module_::import("chipdock.errors").attr("make_error");
    const py::object error = make(text, code, vendor_code, scope, correlation_id);
    PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  } catch (py::error_already_set& failed) {
    failed.restore();
  }
}

}  // namespace

void register_errors(py::module_& module) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const runtime::Error& error) {
      raise_python(error.what(), error.code(), error.vendor_code(), error.scope(),
                   error.correlation_id());
    } catch (const kit::Failure& failure) {
      raise_python(failure.what(), failure.code(), failure.vendor_code(), CHIPDOCK_SCOPE_CALL, 0);
    } catch (const std::bad_alloc&) {
      raise_python("OUT_OF_MEMORY: host memory is exhausted", CHIPDOCK_OUT_OF_MEMORY, 0,
                   CHIPDOCK_SCOPE_PROCESS, 0);
    }
  });
  std::vector<std::string> names(std::begin(kit::kStatusNames), std::end(kit::kStatusNames));
  module.attr("STATUS_NAMES") = py::tuple(py::cast(names));
}

void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::shared_ptr<const void> keep_object(py::object object) {
  PyObject* raw = object.release().ptr();
  return {raw, [](const void* held) {
            // After the interpreter's end nothing can be let go any more, and nothing needs to be.
            if (Py_IsInitialized() == 0) return;
            const PyGILState_STATE state = PyGILState_Ensure();
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
            PyGILState_Release(state);
          }};
}

}  // namespace chipdock::python
