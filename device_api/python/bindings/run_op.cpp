// SPDX-License-Identifier: Apache-2.0
// run_op: one operator on arrays. The plan of a call is cached by operator, device and dtypes, so
// that a repeated call costs a lookup, a run and one new Array. Written against the C API of
// Python: argument handling by pybind11 would cost as much as the addition of two small arrays.
#include <cstring>
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

/// Runs `plan` and wraps what comes out: one Array, or a tuple if there are several outputs.
/// By value: the cache may be cleared while the GIL is away.
PyObject* run(
    const std::shared_ptr<Plan> plan,
    const std::vector<TensorRef>& inputs) {  // NOLINT(performance-unnecessary-value-param)
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
    const NoGilScope no_gil;
    outputs = plan->run(inputs, options);
  }
  if (outputs.size() == 1) {
    return to_python(std::move(outputs[0]), plan->device()).release().ptr();
  }
  py::tuple out(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    out[i] = to_python(std::move(outputs[i]), plan->device());
  return out.release().ptr();
}

/// Key and tensors of a call that needs no conversion at all: an operator's name, then dense Arrays of one
/// device. False for any other call.
bool read_call(PyObject* const* args, Py_ssize_t count, Key& key, std::vector<TensorRef>& inputs) {
  if (count < 2 || !PyUnicode_Check(args[0])) return false;
  Py_ssize_t length = 0;
  const char* name = PyUnicode_AsUTF8AndSize(args[0], &length);
  if (name == nullptr) throw py::error_already_set();
  key.op.assign(name, static_cast<size_t>(length));
  key.device = nullptr;
  key.dtypes.reserve(static_cast<size_t>(count));
  inputs.reserve(static_cast<size_t>(count));
  static const PyTypeObject* array_type =
      reinterpret_cast<PyTypeObject*>(py::type::of<Array>().ptr());
  for (Py_ssize_t i = 1; i < count; ++i) {
    if (Py_TYPE(args[i]) != array_type) return false;
    const auto& array = py::handle(args[i]).cast<const Array&>();
    if (!array.strides.empty()) return false;
    if (key.device == nullptr) key.device = array.device.get();
    if (key.device != array.device.get()) return false;
    key.dtypes.push_back(dtype_word(array.tensor.dtype));
    inputs.push_back(array.tensor);
  }
  return true;
}

/// True if the call was done here: `out` is its result, or NULL with a Python error set.
bool run_cached(PyObject* const* args, Py_ssize_t count, PyObject*& out) {
  try {
    Key key;
    std::vector<TensorRef> inputs;
    if (!read_call(args, count, key, inputs)) return false;
    const auto found = cache().find(key);
    if (found == cache().end()) return false;
    out = run(found->second, inputs);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
  return true;
}

/// Called by the general half with what it compiled for a call without attributes.
void remember(const py::list& call, std::shared_ptr<Plan> plan) {
  Key key;
  std::vector<TensorRef> inputs;
  const auto items = call.cast<std::vector<py::object>>();
  std::vector<PyObject*> raw;
  raw.reserve(items.size());
  for (const py::object& item : items) raw.push_back(item.ptr());
  if (!read_call(raw.data(), static_cast<Py_ssize_t>(raw.size()), key, inputs)) return;
  if (cache().size() >= kCachedPlans) cache().clear();
  cache().emplace(std::move(key), std::move(plan));
}

PyObject* g_general = nullptr;  // chipdock._run_op.run_op_general, for ever

/// Nothing with a destructor stands around the call into Python: CPython unwinds a thread that comes back to
/// an interpreter which is going down, and our destructors would run without the GIL.
PyObject* run_op(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* out = nullptr;
  if (names == nullptr && run_cached(args, count, out)) return out;
  if (g_general == nullptr) {
    PyObject* module = PyImport_ImportModule("chipdock._run_op");
    if (module == nullptr) return nullptr;
    g_general = PyObject_GetAttrString(module, "run_op_general");
    Py_DECREF(module);
    if (g_general == nullptr) return nullptr;
  }
  return PyObject_Vectorcall(g_general, args, static_cast<size_t>(count), names);
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
  module.def(
      "remember_op",
      [](std::shared_ptr<Plan> plan, const py::list& call) { remember(call, std::move(plan)); },
      py::arg("plan"), py::arg("call"), docs::remember_op);
  module.def("clear_op_cache", [] { cache().clear(); }, docs::clear_op_cache);
}

}  // namespace chipdock::python
