// SPDX-License-Identifier: Apache-2.0
// numpy in and out, in every dtype that numpy and ml_dtypes can hold. ml_dtypes keeps types
// below a byte one to a byte; chipdock packs them, low bits first (base.h, chipdock_dtype).
#include <pybind11/gil_safe_call_once.h>

#include <cstring>

#include "bindings.hpp"

namespace chipdock::python {
namespace {

using runtime::Dims;
using runtime::TensorRef;

struct Named {
  const char* name;
  int code, bits;
};

constexpr Named kMlDtypes[] = {
    {"bfloat16", CHIPDOCK_DTYPE_BFLOAT, 16},
    {"float8_e3m4", CHIPDOCK_DTYPE_FLOAT8_E3M4, 8},
    {"float8_e4m3", CHIPDOCK_DTYPE_FLOAT8_E4M3, 8},
    {"float8_e4m3b11fnuz", CHIPDOCK_DTYPE_FLOAT8_E4M3B11FNUZ, 8},
    {"float8_e4m3fn", CHIPDOCK_DTYPE_FLOAT8_E4M3FN, 8},
    {"float8_e4m3fnuz", CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ, 8},
    {"float8_e5m2", CHIPDOCK_DTYPE_FLOAT8_E5M2, 8},
    {"float8_e5m2fnuz", CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ, 8},
    {"float8_e8m0fnu", CHIPDOCK_DTYPE_FLOAT8_E8M0FNU, 8},
    {"float6_e2m3fn", CHIPDOCK_DTYPE_FLOAT6_E2M3FN, 6},
    {"float6_e3m2fn", CHIPDOCK_DTYPE_FLOAT6_E3M2FN, 6},
    {"float4_e2m1fn", CHIPDOCK_DTYPE_FLOAT4_E2M1FN, 4},
    {"int4", CHIPDOCK_DTYPE_INT, 4},
    {"uint4", CHIPDOCK_DTYPE_UINT, 4},
    {"int2", CHIPDOCK_DTYPE_INT, 2},
    {"uint2", CHIPDOCK_DTYPE_UINT, 2},
};

using DtypeTable = std::vector<std::pair<chipdock_dtype, py::dtype>>;

DtypeTable make_ml_dtypes() {
  DtypeTable made;
  const py::module_ module = py::module_::import("ml_dtypes");
  for (const Named& entry : kMlDtypes) {
    if (!py::hasattr(module, entry.name)) continue;
    made.emplace_back(kit::dtype(entry.code, entry.bits),
                      py::dtype::from_args(module.attr(entry.name)));
  }
  return made;
}

/// Made once: looking an ml_dtypes type up by name costs a microsecond. The import lets go of the
/// GIL, so a plain static would have one thread hold its guard and want the GIL, and the next one
/// the other way round.
const DtypeTable& ml_dtypes() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<DtypeTable> storage;
  return storage.call_once_and_store_result(make_ml_dtypes).get_stored();
}

py::dtype plain_dtype(chipdock_dtype dtype) {
  const int bytes = dtype.bits / 8;
  switch (dtype.code) {
    case CHIPDOCK_DTYPE_BOOL:
      if (dtype.bits != 8) break;
      return py::dtype("?");
    case CHIPDOCK_DTYPE_INT:
      return py::dtype("i" + std::to_string(bytes));
    case CHIPDOCK_DTYPE_UINT:
      return py::dtype("u" + std::to_string(bytes));
    case CHIPDOCK_DTYPE_FLOAT:
      return py::dtype("f" + std::to_string(bytes));
    case CHIPDOCK_DTYPE_COMPLEX:
      return py::dtype("c" + std::to_string(bytes));
    default:
      break;
  }
  runtime::raise(CHIPDOCK_UNSUPPORTED, kit::dtype_name(dtype), " has no numpy dtype");
}

uint64_t element_count(const py::array& array) { return static_cast<uint64_t>(array.size()); }

/// Packs one-to-a-byte elements.
std::shared_ptr<char[]> pack(const uint8_t* source, uint64_t count, int bits) {
  const uint64_t bytes = (count * static_cast<uint64_t>(bits) + 7) / 8;
  std::shared_ptr<char[]> out(new char[bytes + 1]());
  for (uint64_t i = 0; i < count; ++i) kit::pack_element(source[i], i, bits, out.get());
  return out;
}

void unpack(const uint8_t* source, uint64_t count, chipdock_dtype dtype, uint8_t* target) {
  const int sign = dtype.code == CHIPDOCK_DTYPE_INT ? 1 << (dtype.bits - 1) : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const int code = kit::packed_element(source, i, dtype.bits);
    target[i] = static_cast<uint8_t>((code ^ sign) - sign);  // ml_dtypes keeps the sign extended
  }
}

TensorRef wrap(const py::array& array, const std::shared_ptr<runtime::Device>& host,
               std::shared_ptr<const void> keep) {
  const chipdock_dtype dtype = from_numpy_dtype(array.dtype());
  Dims dims(array.shape(), array.shape() + array.ndim());
  if (dtype.bits < 8) {
    auto packed = pack(static_cast<const uint8_t*>(array.data()), element_count(array), dtype.bits);
    const char* data = packed.get();
    return runtime::wrap_host(host, dtype, std::move(dims), data, std::move(packed));
  }
  return runtime::wrap_host(host, dtype, std::move(dims), array.data(), std::move(keep));
}

}  // namespace

py::dtype to_numpy_dtype(chipdock_dtype dtype) {
  for (const auto& [known, numpy] : ml_dtypes()) {
    if (kit::operator==(known, dtype)) return numpy;
  }
  return plain_dtype(dtype);
}

chipdock_dtype from_numpy_dtype(const py::dtype& dtype) {
  const auto bits = static_cast<int>(dtype.itemsize() * 8);
  if (dtype.byteorder() != '>') {
    switch (dtype.kind()) {
      case 'b':
        return kit::kBool;
      case 'i':
        return kit::dtype(CHIPDOCK_DTYPE_INT, bits);
      case 'u':
        return kit::dtype(CHIPDOCK_DTYPE_UINT, bits);
      case 'f':
        if (bits <= 64 && bits >= 16 && dtype.num() < 256)
          return kit::dtype(CHIPDOCK_DTYPE_FLOAT, bits);
        break;
      case 'c':
        if (bits <= 128) return kit::dtype(CHIPDOCK_DTYPE_COMPLEX, bits);
        break;
      default:
        break;
    }
    for (const auto& [known, numpy] : ml_dtypes()) {
      if (numpy.equal(dtype)) return known;
    }
  }
  runtime::raise(CHIPDOCK_INVALID_ARGUMENT, "dtype ", std::string(py::str(dtype)),
                 " cannot be held by a device; allowed are bool, (u)int8 to 64, float16 to 64, "
                 "complex and the "
                 "ml_dtypes types, in native byte order");
}

TensorRef borrow_numpy(const py::array& array, const std::shared_ptr<runtime::Device>& host) {
  return wrap(array, host, nullptr);
}

TensorRef keep_numpy(const py::array& array, const std::shared_ptr<runtime::Device>& host) {
  return wrap(array, host, keep_object(array));
}

/// A numpy view of host-visible memory that keeps it alive.
py::array share_with_numpy(const Array& array) {
  const TensorRef& tensor = array.tensor;
  auto* held = new std::shared_ptr<runtime::Buffer>(tensor.buffer);
  const py::capsule base(held,
                         [](void* p) { delete static_cast<std::shared_ptr<runtime::Buffer>*>(p); });
  const std::vector<py::ssize_t> shape(tensor.dims.begin(), tensor.dims.end());
  std::vector<py::ssize_t> strides;
  strides.reserve(array.strides.size());
  for (const int64_t stride : array.strides) strides.push_back(stride * (tensor.dtype.bits / 8));
  py::array out(to_numpy_dtype(tensor.dtype), shape, strides, tensor.host(), base);
  if (array.read_only) out.attr("setflags")(py::arg("write") = false);
  return out;
}

py::array to_numpy(const Array& array, bool share) {
  if (share && array.tensor.dtype.bits >= 8 && array.tensor.host() != nullptr)
    return share_with_numpy(array);
  const TensorRef tensor = dense(array);
  const py::dtype dtype = to_numpy_dtype(tensor.dtype);
  const std::vector<py::ssize_t> shape(tensor.dims.begin(), tensor.dims.end());
  if (tensor.dtype.bits < 8) {
    std::vector<uint8_t> packed(tensor.bytes());
    runtime::read_tensor(tensor, packed.data(), nullptr);
    py::array out(dtype, shape);
    unpack(packed.data(), static_cast<uint64_t>(tensor.size()), tensor.dtype,
           static_cast<uint8_t*>(out.mutable_data()));
    return out;
  }
  py::array out(dtype, shape);
  void* target = out.mutable_data();
  {
    const NoGilScope no_gil;
    runtime::read_tensor(tensor, target, nullptr);
  }
  return out;
}

}  // namespace chipdock::python
