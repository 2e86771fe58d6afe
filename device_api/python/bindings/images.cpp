// SPDX-License-Identifier: Apache-2.0
// Gives the runtime Python's decoder of images, chipdock._images, which is imported at its first
// use.
#include "bindings.hpp"
#include "host_ops/image.hpp"

namespace chipdock::python {
namespace {

using runtime::DecodedImage;

/// What chipdock._images raises, as the runtime's own error; others, such as Ctrl-C, stay as they are.
[[noreturn]] void translate(const py::error_already_set& error) {
  const auto fail = [&error](chipdock_status code) {
    kit::fail(code, std::string(py::str(error.value())));
  };
  if (error.matches(PyExc_ImportError)) fail(CHIPDOCK_UNAVAILABLE);
  if (error.matches(PyExc_ValueError)) fail(CHIPDOCK_INVALID_ARGUMENT);
  if (error.matches(PyExc_MemoryError)) fail(CHIPDOCK_OUT_OF_MEMORY);
  throw error;
}

DecodedImage decode(const std::vector<uint8_t>& file, const std::string& pixel_format) {
  const py::gil_scoped_acquire gil;
  try {
    const py::object decode = py::module_::import("chipdock._images").attr("decode");
    const py::bytes bytes(reinterpret_cast<const char*>(file.data()), file.size());
    auto array = py::cast<py::array_t<uint8_t, py::array::c_style>>(decode(bytes, pixel_format));
    DecodedImage image;
    image.dims.assign(array.shape(), array.shape() + array.ndim());
    const void* pixels = array.data();
    image.pixels = std::shared_ptr<const void>(keep_object(std::move(array)), pixels);
    return image;
  } catch (const py::error_already_set& error) {
    translate(error);
  }
}

}  // namespace

void register_images() { runtime::set_image_decoder(decode); }

}  // namespace chipdock::python
