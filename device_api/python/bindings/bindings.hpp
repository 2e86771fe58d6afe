// SPDX-License-Identifier: Apache-2.0
// What the files of the extension module share: how each registers itself, dtype conversion, and
// Array.
#ifndef CHIPDOCK_PYTHON_BINDINGS_HPP_
#define CHIPDOCK_PYTHON_BINDINGS_HPP_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "device.hpp"
#include "exec/tensor_ref.hpp"
#include "gil.hpp"
#include "stream.hpp"

namespace chipdock::python {

namespace py = pybind11;

using NoGil = py::call_guard<NoGilScope>;
/// A destructor waits for the work that is queued, and that may be a host function in want of the
/// GIL.
constexpr py::release_gil_before_calling_cpp_dtor kNoGilInDestructor;

/// A device's description, and a 16-byte identity, as Python sees them.
py::dict info_dict(const chipdock_device_info& info);
std::string uuid_text(const uint8_t* uuid);

/// A tensor for Python: dense or a strided view. Shares memory with the arrays it was sliced from.
struct Array {
  runtime::TensorRef tensor;
  std::vector<int64_t> strides;             ///< In elements; empty = row-major.
  std::shared_ptr<runtime::Device> device;  ///< Also set if there are no elements.
  bool read_only = false;                   ///< Shared by a producer that forbids writing.

  bool contiguous() const;
};

/// The dense form: itself, or a fresh copy.
runtime::TensorRef dense(const Array& array);
Array make_array(runtime::TensorRef tensor, std::shared_ptr<runtime::Device> device);

/// numpy dtype <-> DLPack triple. Small floats and bfloat16 are ml_dtypes' types. Throws
/// INVALID_ARGUMENT.
py::dtype to_numpy_dtype(chipdock_dtype dtype);
chipdock_dtype from_numpy_dtype(const py::dtype& dtype);

/// The elements of a C-contiguous numpy array as a tensor on `host`, without a copy and without
/// keeping the array alive: for the length of a call. Sub-byte types are packed into a fresh copy.
runtime::TensorRef borrow_numpy(const py::array& array,
                                const std::shared_ptr<runtime::Device>& host);
/// The same, but the array is kept alive by the tensor.
runtime::TensorRef keep_numpy(const py::array& array, const std::shared_ptr<runtime::Device>& host);
/// A fresh numpy array with the elements, or a view, strides kept, if memory is host-visible and
/// `share` is set.
py::array to_numpy(const Array& array, bool share);

/// A value for a run: an Array, or a numpy array that is borrowed for the call where it is
/// contiguous; `held` keeps copies that had to be made.
runtime::TensorRef input_tensor(const py::handle& value,
                                const std::shared_ptr<runtime::Device>& host,
                                std::vector<py::object>& held);
/// Strings, sequences and optionals (host_values.cpp). `host_value` takes None, a list or tuple, an
/// array of strings, or what input_tensor takes; `to_python` makes the like of any value.
bool holds_strings(const py::array& array);
runtime::TensorRef strings_of(const py::array& array);
runtime::TensorRef host_value(const py::handle& value, const std::shared_ptr<runtime::Device>& host,
                              std::vector<py::object>& held);
py::object to_python(runtime::TensorRef value, const std::shared_ptr<runtime::Device>& device);

/// Keeps a Python object alive from C++; let go from any thread.
std::shared_ptr<const void> keep_object(py::object object);

void register_errors(py::module_& module);
void register_plugin(py::module_& module);
void register_device(py::module_& module);
void register_streams(py::module_& module);
void register_profiler(py::module_& module);
void register_arrays(py::module_& module);
void register_dlpack(py::module_& module, py::class_<Array, std::shared_ptr<Array>>& array);
void register_models(py::module_& module);
void register_source(py::module_& module,
                     py::class_<runtime::Device, std::shared_ptr<runtime::Device>>& device);
void register_run_op(py::module_& module);
void register_images();

/// Throws what a pending signal (Ctrl-C) asks for; takes the GIL.
void check_signals();

}  // namespace chipdock::python

#endif  // CHIPDOCK_PYTHON_BINDINGS_HPP_
