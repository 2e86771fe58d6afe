// SPDX-License-Identifier: Apache-2.0
// DLPack both ways, old and versioned capsules (DLPack 1.1). Host-visible memory is kDLCPU;
// everything else is kDLExtDev and exchanged only between arrays of chipdock itself. Nothing is
// copied unless copy=True.
#include <cstring>

#include "bindings.hpp"
#include "core_docs.hpp"

namespace chipdock::python {
namespace {

using runtime::Dims;
using runtime::TensorRef;

// The structs of dlpack.h 1.1, written out: the layout is the standard's.
struct DlDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  chipdock_dtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersion {
  uint32_t major, minor;
};
struct DlManagedVersioned {
  DlVersion version;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr int32_t kDlCpu = 1;
constexpr int32_t kDlExtDev = 12;
constexpr uint64_t kFlagReadOnly = 1 << 0;
constexpr uint64_t kFlagCopied = 1 << 1;
constexpr uint64_t kFlagPadded = 1 << 2;  ///< Sub-byte elements one to a byte; ours are packed.

/// What an exported capsule keeps alive. Plain C++: its deleter runs on any thread, without the
/// GIL.
template <class Managed>
struct Export {
  Managed managed{};
  TensorRef tensor;
  std::vector<int64_t> shape, strides;
};

DlDevice device_of(const Array& array) {
  if (array.device->host_visible()) return {kDlCpu, 0};
  return {kDlExtDev, array.device->index()};
}

template <class Managed>
Export<Managed>* make_export(const Array& array) {
  auto* out = new Export<Managed>;
  out->tensor = array.tensor;
  out->shape = array.tensor.dims;
  out->strides.assign(out->shape.size(), 1);
  for (size_t i = out->shape.size(); i-- > 1;) {
    out->strides[i - 1] = out->strides[i] * std::max<int64_t>(out->shape[i], 1);
  }
  if (!array.strides.empty()) out->strides = array.strides;
  DlTensor& t = out->managed.tensor;
  t.data = array.tensor.host();
  t.device = device_of(array);
  t.ndim = static_cast<int32_t>(out->shape.size());
  t.dtype = array.tensor.dtype;
  t.shape = out->shape.data();
  t.strides = out->strides.data();
  out->managed.context = out;
  out->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->context); };
  return out;
}

/// A capsule that was never consumed frees what it holds; a consumed one was renamed.
template <class Managed>
py::object make_capsule(Managed* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* self) {
    const char* now = PyCapsule_GetName(self);
    if (now == nullptr || std::strncmp(now, "used_", 5) == 0) return;
    auto* held = static_cast<Managed*>(PyCapsule_GetPointer(self, now));
    if (held != nullptr && held->deleter != nullptr) held->deleter(held);
  });
  return py::reinterpret_steal<py::object>(capsule);
}

py::object to_dlpack(const Array& array, const py::object& stream, const py::object& max_version,
                     const py::object& dl_device, const py::object& copy) {
  static_cast<void>(stream);  // work on host-visible memory has ended by the time an Array is seen
  const DlDevice device = device_of(array);
  if (!dl_device.is_none()) {
    const auto wanted = dl_device.cast<std::pair<int32_t, int32_t>>();
    if (wanted.first != device.device_type || wanted.second != device.device_id) {
      throw py::buffer_error("the array is on DLPack device (" +
                             std::to_string(device.device_type) + ", " +
                             std::to_string(device.device_id) + "); copy it with Array.to first");
    }
  }
  if (device.device_type != kDlCpu) {
    throw py::buffer_error("memory of " + array.device->name() +
                           " has no address that another library could use; copy it with .numpy()");
  }
  Array source = array;
  const bool copied = !copy.is_none() && copy.cast<bool>();
  if (copied) {
    TensorRef from = dense(array);
    TensorRef fresh = runtime::make_tensor(*array.device, from.dtype, from.dims, nullptr);
    if (fresh.buffer != nullptr) runtime::write_tensor(fresh, from.host(), nullptr);
    source = make_array(std::move(fresh), array.device);
  }
  const bool versioned =
      !max_version.is_none() && max_version.cast<py::tuple>()[0].cast<int>() >= 1;
  if (!versioned) {
    if (source.read_only)
      throw py::buffer_error("read-only memory needs a versioned DLPack capsule");
    if (array.tensor.dtype.bits < 8)
      throw py::buffer_error("sub-byte dtypes need a versioned DLPack capsule");
    return make_capsule(&make_export<DlManaged>(source)->managed, "dltensor");
  }
  auto* out = make_export<DlManagedVersioned>(source);
  out->managed.version = {1, 1};
  out->managed.flags = (copied ? kFlagCopied : 0) | (source.read_only ? kFlagReadOnly : 0);
  return make_capsule(&out->managed, "dltensor_versioned");
}

template <class Managed>
std::shared_ptr<const void> keep_managed(Managed* managed) {
  return {managed, [](const void* p) {
            auto* held = static_cast<Managed*>(const_cast<void*>(p));
            if (held->deleter == nullptr) return;
            // The producer's deleter may touch Python objects.
            if (Py_IsInitialized() == 0) return;
            const PyGILState_STATE state = PyGILState_Ensure();
            held->deleter(held);
            PyGILState_Release(state);
          }};
}

/// Throws unless numpy has the dtype: what no one can look at is not taken.
void check_dtype(chipdock_dtype dtype) {
  try {
    if (to_numpy_dtype(dtype).itemsize() == (dtype.bits + 7) / 8) return;
  } catch (const runtime::Error&) {  // said below
  } catch (const py::error_already_set&) {
  }
  throw py::buffer_error("DLPack dtype with code " + std::to_string(dtype.code) + " and " +
                         std::to_string(dtype.bits) + " bits is not supported");
}

Array import_tensor(const DlTensor& t, std::shared_ptr<const void> keep,
                    const std::shared_ptr<runtime::Device>& device) {
  if (t.device.device_type != kDlCpu) {
    throw py::buffer_error(
        "from_dlpack takes host memory (device type 1), the producer has device type " +
        std::to_string(t.device.device_type));
  }
  if (t.dtype.lanes != 1) throw py::buffer_error("vector dtypes (lanes > 1) are not supported");
  check_dtype(t.dtype);
  Array out;
  out.device = device;
  Dims dims(t.shape, t.shape + t.ndim);
  if (t.strides != nullptr) out.strides.assign(t.strides, t.strides + t.ndim);
  const char* data = static_cast<const char*>(t.data) + t.byte_offset;
  // A view may reach below its first element; the buffer starts at that element all the same.
  out.tensor = runtime::wrap_host(device, t.dtype, dims, data, std::move(keep));
  if (out.contiguous()) out.strides.clear();
  return out;
}

Array from_dlpack(const py::object& source, const std::shared_ptr<runtime::Device>& device) {
  py::object capsule;
  try {
    capsule = source.attr("__dlpack__")(py::arg("max_version") = py::make_tuple(1, 1));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = source.attr("__dlpack__")();  // a producer from before DLPack 1.0
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* managed =
        static_cast<DlManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    auto keep = keep_managed(managed);
    if (managed->version.major != 1) {
      throw py::buffer_error("the producer speaks DLPack " +
                             std::to_string(managed->version.major) + "." +
                             std::to_string(managed->version.minor) + ", this reader 1.x");
    }
    if ((managed->flags & kFlagPadded) != 0) {
      throw py::buffer_error("padded sub-byte elements are not supported; packed ones are");
    }
    Array out = import_tensor(managed->tensor, std::move(keep), device);
    out.read_only = (managed->flags & kFlagReadOnly) != 0;
    return out;
  }
  auto* managed = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return import_tensor(managed->tensor, keep_managed(managed), device);
}

}  // namespace

void register_dlpack(py::module_& module, py::class_<Array, std::shared_ptr<Array>>& array) {
  array
      .def("__dlpack__", &to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none(), docs::Array::kDlpack)
      .def(
          "__dlpack_device__",
          [](const Array& a) {
            const DlDevice device = device_of(a);
            return py::make_tuple(device.device_type, device.device_id);
          },
          docs::Array::kDlpack_Device);
  module.def("from_dlpack", &from_dlpack, py::arg("source"), py::arg("device"), docs::from_dlpack);
}

}  // namespace chipdock::python
