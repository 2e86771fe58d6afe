// SPDX-License-Identifier: Apache-2.0
// The extension module chipdock._core: the runtime for Python. The public face is the package
// around it.
#include "bindings.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The chipdock runtime. Use the package chipdock instead.";
  chipdock::python::register_errors(module);
  chipdock::python::register_plugin(module);
  chipdock::python::register_device(module);
  chipdock::python::register_streams(module);
  chipdock::python::register_profiler(module);
  chipdock::python::register_arrays(module);
  chipdock::python::register_models(module);
  chipdock::python::register_run_op(module);
  chipdock::python::register_images();
}
