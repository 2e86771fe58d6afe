// SPDX-License-Identifier: Apache-2.0
// Source compiled for a device, from Python: modules, functions, launches. Arguments are Arrays,
// numpy scalars, Python numbers, and LocalBytes.
#include "source.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "bindings.hpp"
#include "core_docs.hpp"

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::FunctionArgument;
using runtime::FunctionLaunch;
using runtime::Module;
using runtime::Stream;

/// A local pointer in the text.
struct LocalBytes {
  uint64_t size;
};

struct Function {
  std::shared_ptr<Module> module;
  chipdock_function* handle;
  std::string name;
};

template <class T>
FunctionArgument scalar(T value) {
  FunctionArgument argument;
  argument.size = sizeof(value);
  std::memcpy(&argument.bits, &value, sizeof(value));  // low bytes first, as the ABI has it
  return argument;
}

FunctionArgument buffer(const Array& array, const std::string& where) {
  if (!array.contiguous()) {
    runtime::raise(CHIPDOCK_INVALID_ARGUMENT, where,
                   " is a strided view; a pointer cannot say so, use .contiguous()");
  }
  FunctionArgument argument;
  argument.kind = CHIPDOCK_ARGUMENT_BUFFER;
  argument.buffer = array.tensor.buffer;
  argument.offset = array.tensor.offset;
  return argument;
}

/// A numpy scalar goes as the bytes it has.
FunctionArgument numpy_scalar(const py::handle& value, const std::string& where) {
  const py::array array = py::array::ensure(value);
  static const std::string kNumbers = "biufcV";  // V: ml_dtypes' types, told from others below
  if (!array || array.ndim() != 0 || array.itemsize() > 8 ||
      kNumbers.find(array.dtype().kind()) == std::string::npos) {
    runtime::raise(CHIPDOCK_INVALID_ARGUMENT, where, " is a ",
                   std::string(py::str(py::type::of(value))),
                   "; it must be an Array, a number, a numpy scalar of at most 8 bytes, None or ",
                   "LocalBytes");
  }
  from_numpy_dtype(array.dtype());
  FunctionArgument argument;
  argument.size = static_cast<uint64_t>(array.itemsize());
  std::memcpy(&argument.bits, array.data(), argument.size);
  return argument;
}

FunctionArgument read_argument(const py::handle& value, const std::string& where) {
  if (py::isinstance<Array>(value)) return buffer(value.cast<const Array&>(), where);
  if (py::isinstance<LocalBytes>(value)) {
    FunctionArgument argument;
    argument.kind = CHIPDOCK_ARGUMENT_LOCAL;
    argument.size = value.cast<const LocalBytes&>().size;
    return argument;
  }
  if (value.is_none()) {
    FunctionArgument argument;
    argument.kind = CHIPDOCK_ARGUMENT_BUFFER;
    return argument;
  }
  if (PyBool_Check(value.ptr()) != 0) return scalar<uint8_t>(value.ptr() == Py_True ? 1 : 0);
  if (PyLong_CheckExact(value.ptr()) != 0) return scalar<int64_t>(value.cast<int64_t>());
  if (PyFloat_CheckExact(value.ptr()) != 0) return scalar<float>(value.cast<float>());
  return numpy_scalar(value, where);
}

/// One to three extents; those not given are 1.
template <class T>
std::array<T, 3> extents(const std::variant<uint64_t, std::vector<uint64_t>>& given,
                         const char* what) {
  std::vector<uint64_t> list;
  if (const auto* one = std::get_if<uint64_t>(&given)) {
    list.push_back(*one);
  } else {
    list = std::get<std::vector<uint64_t>>(given);
  }
  bool good = !list.empty() && list.size() <= 3;
  for (const uint64_t extent : list) {
    good = good && extent >= 1 && extent <= std::numeric_limits<T>::max();
  }
  if (!good) {
    runtime::raise(CHIPDOCK_INVALID_ARGUMENT, what,
                   " must be a number, or 1 to 3 of them, each 1 or more");
  }
  list.resize(3, 1);
  return {static_cast<T>(list[0]), static_cast<T>(list[1]), static_cast<T>(list[2])};
}

using Extents = std::variant<uint64_t, std::vector<uint64_t>>;

void launch(const Function& function, const Extents& grid, const Extents& block,
            const py::sequence& arguments, const std::shared_ptr<Stream>& stream,
            uint32_t local_bytes) {
  FunctionLaunch made;
  made.grid = extents<uint64_t>(grid, "grid");
  made.block = extents<uint32_t>(block, "block");
  made.local_bytes = local_bytes;
  size_t at = 0;
  for (const py::handle value : arguments) {
    const std::string where = "argument " + std::to_string(at++) + " of " + function.name;
    made.arguments.push_back(read_argument(value, where));
  }
  const NoGilScope no_gil;
  runtime::launch_function(function.module, function.handle, function.name, made, stream);
}

py::dict info_of(const Function& function) {
  const chipdock_function_info info = runtime::function_info(*function.module, function.handle);
  py::dict out;
  out["registers"] = info.registers;
  out["max_block_threads"] = info.max_block_threads;
  out["block_multiple"] = info.block_multiple;
  out["local_bytes"] = info.local_bytes;
  out["spill_bytes"] = info.spill_bytes;
  out["argument_count"] = info.argument_count;
  return out;
}

std::shared_ptr<Module> compile(std::shared_ptr<Device> device, const std::string& dialect,
                                const std::string& prelude, const std::string& text,
                                std::optional<std::pair<uint32_t, uint32_t>> version,
                                const runtime::Options& options) {
  runtime::SourceText source;
  source.dialect = dialect;
  source.prelude = prelude;
  source.text = text;
  if (version.has_value())
    source.dialect_version = CHIPDOCK_VERSION(version->first, version->second);
  source.options = options;
  const NoGilScope no_gil;
  return Module::compile(std::move(device), source);
}

py::dict compile_caps_dict(Device& device) {
  const chipdock_compile_caps caps = runtime::source_caps(device);
  py::dict out, dialects;
  for (uint32_t i = 0; i < caps.dialect_count; ++i) {
    const chipdock_dialect& dialect = *caps.dialects[i];
    dialects[py::str(dialect.name)] = py::make_tuple(CHIPDOCK_VERSION_MAJOR(dialect.version),
                                                     CHIPDOCK_VERSION_MINOR(dialect.version));
  }
  out["dialects"] = dialects;
  out["warp_size"] = caps.warp_size;
  out["max_block_threads"] = caps.max_block_threads;
  out["max_block"] = py::make_tuple(caps.max_block[0], caps.max_block[1], caps.max_block[2]);
  out["max_grid"] = py::make_tuple(caps.max_grid[0], caps.max_grid[1], caps.max_grid[2]);
  out["max_local_bytes"] = caps.max_local_bytes;
  out["max_argument_bytes"] = caps.max_argument_bytes;
  return out;
}

}  // namespace

void register_source(py::module_& module, py::class_<Device, std::shared_ptr<Device>>& device) {
  py::class_<LocalBytes>(module, "LocalBytes", docs::LocalBytes::kClass)
      .def(py::init([](uint64_t size) { return LocalBytes{size}; }), py::arg("size"),
           docs::LocalBytes::kInit)
      .def_readonly("size", &LocalBytes::size, docs::LocalBytes::size);
  py::class_<Function>(module, "Function", kNoGilInDestructor, docs::Function::kClass)
      .def_readonly("name", &Function::name, docs::Function::name)
      .def("info", &info_of, docs::Function::info)
      .def("launch", &launch, py::arg("grid"), py::arg("block"), py::arg("arguments"),
           py::arg("stream") = nullptr, py::arg("local_bytes") = 0, docs::Function::launch);
  py::class_<Module, std::shared_ptr<Module>>(module, "Module", kNoGilInDestructor,
                                              docs::Module::kClass)
      .def_property_readonly("device", &Module::device, docs::Module::device)
      .def(
          "function",
          [](const std::shared_ptr<Module>& self, const std::string& name) {
            return Function{self, self->function(name), name};
          },
          py::arg("name"), docs::Module::function);
  device.def("compile_caps", &compile_caps_dict, docs::Device::compile_caps)
      .def("compile_source", &compile, py::arg("dialect"), py::arg("prelude"), py::arg("text"),
           py::arg("version") = py::none(), py::arg("options") = runtime::Options{},
           docs::Device::compile_source);
}

}  // namespace chipdock::python
