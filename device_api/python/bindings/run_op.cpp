// SPDX-License-Identifier: Apache-2.0
// run_op: one operator on arrays. The plan of a call is cached by operator, device and dtypes, so
// that a repeated call costs a lookup, a run and one new Array. Written against the C API of
// Python: argument handling by pybind11 would cost as much as the addition of two small arrays.
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "bindings.hpp"
#include "core_docs.hpp"
#include "exec/plan.hpp"

namespace chipdock::python {
namespace {

using runtime::Device;
using runtime::Plan;
using runtime::RunOptions;
using runtime::TensorRef;

constexpr size_t kCachedPlans = 512;

struct Key {
  std::string op;
  const Device* device;
  std::vector<uint32_t> dtypes;  ///< 0 = not given.
  bool operator==(const Key& other) const {
    return device == other.device && dtypes == other.dtypes && op == other.op;
  }
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    size_t h = std::hash<std::string_view>()(key.op) ^ (reinterpret_cast<size_t>(key.device) >> 4);
    for (const uint32_t dtype : key.dtypes) h = h * 1099511628211ULL + dtype;
    return h;
  }
};

uint32_t dtype_word(chipdock_dtype dtype) {
  return 1U << 31 | static_cast<uint32_t>(dtype.code) << 16 | dtype.bits;
}

/// Used with the GIL held, which serialises it. Leaked: plans must not outlive the interpreter's
/// exit handlers, and those clear it through clear_op_cache.
std::unordered_map<Key, std::shared_ptr<Plan>, KeyHash>& cache() {
  static auto* plans = new std::unordered_map<Key, std::shared_ptr<Plan>, KeyHash>;
  return *plans;
}

py::object python_part(const char* name) {
  return py::module_::import("chipdock._run_op").attr(name);
}

/// Runs `plan` and wraps what comes out: one Array, or a tuple if there are several outputs.
PyObject* run(const std::shared_ptr<Plan>& plan, const std::vector<TensorRef>& inputs) {
  RunOptions options;
  static thread_local uint64_t seed = 0;
  options.seed = ++seed ^ reinterpret_cast<uint64_t>(&seed);
  static const runtime::InterruptCheck kInterrupt = check_signals;
  options.interrupt = &kInterrupt;
  std::vector<TensorRef> outputs;
  uint64_t bytes = 0;
  for (const TensorRef& input : inputs) bytes += input.bytes();
  if (bytes < 4096 && plan->device()->prefers_inline()) {
    outputs = plan->run(inputs, options);  // shorter than letting the GIL go and taking it again
  } else {
    const py::gil_scoped_release no_gil;
    outputs = plan->run(inputs, options);
  }
  if (outputs.size() == 1) {
    return py::cast(make_array(std::move(outputs[0]), plan->device())).release().ptr();
  }
  py::tuple out(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    out[i] = make_array(std::move(outputs[i]), plan->device());
  return out.release().ptr();
}

/// args: operator name, then Arrays. Only what needs no conversion at all is done here.
PyObject* try_fast(PyObject* const* args, Py_ssize_t count) {
  if (count < 2 || !PyUnicode_Check(args[0])) return nullptr;
  Py_ssize_t length = 0;
  const char* name = PyUnicode_AsUTF8AndSize(args[0], &length);
  if (name == nullptr) throw py::error_already_set();
  Key key;
  key.op.assign(name, static_cast<size_t>(length));
  key.device = nullptr;
  key.dtypes.reserve(static_cast<size_t>(count));
  std::vector<TensorRef> inputs;
  inputs.reserve(static_cast<size_t>(count));
  static const PyTypeObject* array_type =
      reinterpret_cast<PyTypeObject*>(py::type::of<Array>().ptr());
  for (Py_ssize_t i = 1; i < count; ++i) {
    if (Py_TYPE(args[i]) != array_type) return nullptr;
    const auto& array = py::handle(args[i]).cast<const Array&>();
    if (!array.strides.empty()) return nullptr;
    if (key.device == nullptr) key.device = array.device.get();
    if (key.device != array.device.get()) return nullptr;
    key.dtypes.push_back(dtype_word(array.tensor.dtype));
    inputs.push_back(array.tensor);
  }
  const auto found = cache().find(key);
  if (found != cache().end()) return run(found->second, inputs);
  py::list arguments;
  for (Py_ssize_t i = 0; i < count; ++i) arguments.append(py::handle(args[i]));
  const auto plan = python_part("compile_fast")(*arguments).cast<std::shared_ptr<Plan>>();
  if (plan == nullptr) return nullptr;  // the operator steers by values: the general way
  if (cache().size() >= kCachedPlans) cache().clear();
  const auto kept = cache().emplace(std::move(key), plan).first->second;
  return run(kept, inputs);
}

PyObject* run_op(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  try {
    if (names == nullptr) {
      if (PyObject* out = try_fast(args, count); out != nullptr) return out;
    }
    static const auto* general = new py::object(python_part("run_op_general"));
    return PyObject_Vectorcall(general->ptr(), args, static_cast<size_t>(count), names);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
  return nullptr;
}

/// With the signature in front, as inspect.signature reads it.
const char* run_op_doc() {
  static const auto* text = new std::string(
      "run_op(op, *inputs, device=None, domain='', opset=None, outputs=1, **attributes)\n--\n\n" +
      std::string(docs::run_op));
  return text->c_str();
}

PyMethodDef kRunOp = {"run_op",
                      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run_op)),
                      METH_FASTCALL | METH_KEYWORDS, nullptr};

}  // namespace

void register_run_op(py::module_& module) {
  kRunOp.ml_doc = run_op_doc();
  module.attr("run_op") =
      py::reinterpret_steal<py::object>(PyCFunction_NewEx(&kRunOp, nullptr, nullptr));
  module.def("clear_op_cache", [] { cache().clear(); }, docs::clear_op_cache);
}

}  // namespace chipdock::python
