// SPDX-License-Identifier: Apache-2.0
// Array: a tensor in a device's memory. Slices are views; nothing is copied unless the name says
// so.
#include <algorithm>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "core_docs.hpp"

namespace chipdock::python {
namespace {

using runtime::Dims;
using runtime::TensorRef;

Dims row_major(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return strides;
}

/// One axis of basic indexing applied to a view.
void index_axis(Array& view, size_t& axis, const py::handle& item, size_t position) {
  Dims& dims = view.tensor.dims;
  if (axis >= dims.size()) {
    throw py::index_error("too many indices: item " + std::to_string(position) +
                          " for an array of rank " + std::to_string(dims.size()));
  }
  const uint64_t item_bits = static_cast<uint64_t>(view.tensor.dtype.bits);
  auto move_start = [&](int64_t elements) {
    if (item_bits < 8 && elements != 0) {
      runtime::raise(CHIPDOCK_UNSUPPORTED, "slices of ", kit::dtype_name(view.tensor.dtype),
                     " arrays must start at element 0: elements share bytes");
    }
    view.tensor.offset += static_cast<uint64_t>(elements) * (item_bits / 8);
  };
  if (py::isinstance<py::slice>(item)) {
    py::ssize_t start = 0, stop = 0, step = 0, count = 0;
    if (!py::reinterpret_borrow<py::slice>(item).compute(dims[axis], &start, &stop, &step,
                                                         &count)) {
      throw py::error_already_set();
    }
    if (count > 0) move_start(start * view.strides[axis]);
    dims[axis] = count;
    view.strides[axis] *= step;
    ++axis;
    return;
  }
  int64_t index = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
  if (index == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (index < -dims[axis] || index >= dims[axis]) {
    throw py::index_error("index " + std::to_string(index) + " is out of bounds for axis " +
                          std::to_string(axis) + " with size " + std::to_string(dims[axis]));
  }
  if (index < 0) index += dims[axis];
  move_start(index * view.strides[axis]);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(axis));
}

Array get_item(const Array& array, const py::object& key) {
  Array view = array;
  if (view.strides.empty()) view.strides = row_major(view.tensor.dims);
  const py::tuple items = py::isinstance<py::tuple>(key) ? py::tuple(key) : py::make_tuple(key);
  size_t axis = 0;
  bool ellipsis = false;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].ptr() == Py_Ellipsis) {
      if (std::exchange(ellipsis, true))
        throw py::index_error("an index can only have a single ellipsis ('...')");
      const size_t rest = items.size() - i - 1;
      axis = view.tensor.dims.size() >= rest ? view.tensor.dims.size() - rest
                                             : view.tensor.dims.size();
    } else if (PyBool_Check(items[i].ptr()) == 0 &&
               (PyIndex_Check(items[i].ptr()) != 0 || py::isinstance<py::slice>(items[i]))) {
      index_axis(view, axis, items[i], i);
    } else {
      throw py::type_error("an Array is indexed by integers, slices and ..., got " +
                           std::string(py::str(py::type::of(items[i]))));
    }
  }
  if (view.contiguous()) view.strides.clear();
  return view;
}

/// Elements of a strided view, row by row of its innermost axis, through the host.
void gather_rows(const char* source, const Array& view, size_t axis, int64_t at, char*& target) {
  const int64_t bytes = view.tensor.dtype.bits / 8;
  if (axis == view.tensor.dims.size()) {
    std::memcpy(target, source + at * bytes, static_cast<size_t>(bytes));
    target += bytes;
    return;
  }
  for (int64_t i = 0; i < view.tensor.dims[axis]; ++i) {
    gather_rows(source, view, axis + 1, at + i * view.strides[axis], target);
  }
}

}  // namespace

bool Array::contiguous() const {
  if (strides.empty() || tensor.size() == 0) return true;
  const Dims wanted = row_major(tensor.dims);
  for (size_t i = 0; i < strides.size(); ++i) {
    if (tensor.dims[i] != 1 && strides[i] != wanted[i]) return false;
  }
  return true;
}

TensorRef dense(const Array& array) {
  if (array.contiguous()) return array.tensor;
  if (array.tensor.dtype.bits % 8 != 0) {
    runtime::raise(CHIPDOCK_UNSUPPORTED, "strided views of ", kit::dtype_name(array.tensor.dtype),
                   " cannot be copied: elements share bytes");
  }
  // The bytes from the lowest to the highest element that the view touches.
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < array.strides.size(); ++i) {
    const int64_t reach = (array.tensor.dims[i] - 1) * array.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t bytes = array.tensor.dtype.bits / 8;
  TensorRef span = array.tensor;
  span.dims = {high - low + 1};
  span.offset = static_cast<uint64_t>(static_cast<int64_t>(span.offset) + low * bytes);
  std::vector<char> staging;
  const char* base = span.host();
  if (base == nullptr) {
    staging.resize(span.bytes());
    runtime::read_tensor(span, staging.data(), nullptr);
    base = staging.data();
  }
  std::vector<char> packed(array.tensor.bytes());
  char* target = packed.data();
  gather_rows(base - low * bytes, array, 0, 0, target);
  TensorRef out =
      runtime::make_tensor(*array.device, array.tensor.dtype, array.tensor.dims, nullptr);
  runtime::write_tensor(out, packed.data(), nullptr);
  return out;
}

Array make_array(TensorRef tensor, std::shared_ptr<runtime::Device> device) {
  return Array{std::move(tensor), {}, std::move(device), false};
}

void register_arrays(py::module_& module) {
  py::class_<Array, std::shared_ptr<Array>> array(module, "Array", docs::Array::kClass);
  array
      .def_property_readonly(
          "shape", [](const Array& a) { return py::tuple(py::cast(a.tensor.dims)); },
          docs::Array::shape)
      .def_property_readonly(
          "strides",
          [](const Array& a) {
            return py::tuple(py::cast(a.strides.empty() ? row_major(a.tensor.dims) : a.strides));
          },
          docs::Array::strides)
      .def_property_readonly(
          "dtype", [](const Array& a) { return to_numpy_dtype(a.tensor.dtype); },
          docs::Array::dtype)
      .def_property_readonly(
          "ndim", [](const Array& a) { return a.tensor.dims.size(); }, docs::Array::ndim)
      .def_property_readonly(
          "size", [](const Array& a) { return a.tensor.size(); }, docs::Array::size)
      .def_property_readonly(
          "nbytes", [](const Array& a) { return a.tensor.bytes(); }, docs::Array::nbytes)
      .def_property_readonly(
          "device", [](const Array& a) { return a.device; }, docs::Array::device)
      .def_property_readonly("is_contiguous", &Array::contiguous, docs::Array::is_contiguous)
      .def_property_readonly(
          "read_only", [](const Array& a) { return a.read_only; }, docs::Array::read_only)
      .def(
          "__len__",
          [](const Array& a) {
            if (a.tensor.dims.empty()) throw py::type_error("len() of an array of rank 0");
            return a.tensor.dims[0];
          },
          docs::Array::kLen)
      .def(
          "__iter__",
          [](const py::object& self) {
            if (self.cast<const Array&>().tensor.dims.empty())
              throw py::type_error("iteration over an array of rank 0");
            return py::reinterpret_steal<py::object>(PySeqIter_New(self.ptr()));
          },
          docs::Array::kIter)
      .def("__getitem__", &get_item, py::arg("key"), docs::Array::kGetitem)
      .def(
          "contiguous", [](const Array& a) { return make_array(dense(a), a.device); },
          docs::Array::contiguous)
      .def(
          "numpy", [](const Array& a) { return to_numpy(a, true); }, docs::Array::numpy)
      .def(
          "copy_to_numpy", [](const Array& a) { return to_numpy(a, false); },
          docs::Array::copy_to_numpy)
      .def(
          "__array__",
          [](const Array& a, const py::object& dtype, const py::object& copy) -> py::object {
            const bool must_share = !copy.is_none() && !copy.cast<bool>();
            if (must_share && (a.tensor.host() == nullptr || a.tensor.dtype.bits < 8)) {
              throw py::value_error(
                  "the elements of this Array cannot be shared with numpy without a copy");
            }
            py::object out = to_numpy(a, copy.is_none() || must_share);
            if (!dtype.is_none()) out = out.attr("astype")(dtype, py::arg("copy") = false);
            return out;
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none(), docs::Array::kArray)
      .def(
          "__repr__",
          [](const Array& a) {
            return "<chipdock.Array " + runtime::to_string(a.tensor.dims) + " " +
                   kit::dtype_name(a.tensor.dtype) + " on " + a.device->name() + ">";
          },
          docs::Array::kRepr)
      .def(
          "to",
          [](const Array& a, const std::shared_ptr<runtime::Device>& device) {
            const TensorRef tensor = dense(a);
            const NoGilScope no_gil;
            return make_array(runtime::move_tensor(tensor, *device, nullptr), device);
          },
          py::arg("device"), docs::Array::to)
      .def(
          "overlaps",
          [](const Array& a, const Array& b) { return runtime::overlap(a.tensor, b.tensor); },
          py::arg("other"), docs::Array::overlaps)
      .def(
          "copy_from",
          [](const Array& a, const py::array& values) {
            if (a.read_only) {
              runtime::raise(CHIPDOCK_FAILED_PRECONDITION,
                             "the memory of this array is read-only: its producer ",
                             "shared it that way; copy it with chipdock.array first");
            }
            const py::dtype wanted = to_numpy_dtype(a.tensor.dtype);
            if (!a.contiguous())
              runtime::raise(CHIPDOCK_UNSUPPORTED, "copy_from needs a contiguous array");
            const py::array source = py::array::ensure(values, py::array::c_style);
            const Dims dims(source.shape(), source.shape() + source.ndim());
            if (!source.dtype().is(wanted) && !source.dtype().equal(wanted)) {
              runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "copy_from got dtype ",
                             std::string(py::str(source.dtype())), ", the array has ",
                             kit::dtype_name(a.tensor.dtype));
            }
            if (dims != a.tensor.dims) {
              runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "copy_from got shape ",
                             runtime::to_string(dims), ", the array has ",
                             runtime::to_string(a.tensor.dims));
            }
            const TensorRef borrowed = borrow_numpy(source, a.device);
            const NoGilScope no_gil;
            runtime::write_tensor(a.tensor, borrowed.host(), nullptr);
          },
          py::arg("values"), docs::Array::copy_from)
      .def("_address", [](const Array& a) { return reinterpret_cast<uintptr_t>(a.tensor.host()); });
  register_dlpack(module, array);

  module.def(
      "array_from_numpy",
      [](const py::array& source, const std::shared_ptr<runtime::Device>& device) {
        device->plugin()->check_usable();
        const py::array packed = py::array::ensure(source, py::array::c_style);
        const TensorRef borrowed = borrow_numpy(packed, device);
        const NoGilScope no_gil;
        TensorRef tensor = runtime::make_tensor(*device, borrowed.dtype, borrowed.dims, nullptr);
        if (borrowed.buffer != nullptr) runtime::write_tensor(tensor, borrowed.host(), nullptr);
        return make_array(std::move(tensor), device);
      },
      py::arg("source"), py::arg("device"), docs::array_from_numpy);
  module.def(
      "empty",
      [](const Dims& shape, const py::dtype& dtype,
         const std::shared_ptr<runtime::Device>& device) {
        device->plugin()->check_usable();
        return make_array(runtime::make_tensor(*device, from_numpy_dtype(dtype), shape, nullptr),
                          device);
      },
      py::arg("shape"), py::arg("dtype"), py::arg("device"), docs::empty);
}

}  // namespace chipdock::python
