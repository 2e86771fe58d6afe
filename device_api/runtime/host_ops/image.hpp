// SPDX-License-Identifier: Apache-2.0
// Who decodes image files for ImageDecoder. The runtime links no image library: the program that
// embeds it brings one, as chipdock's Python package does with Pillow.
#ifndef CHIPDOCK_RUNTIME_HOST_OPS_IMAGE_HPP_
#define CHIPDOCK_RUNTIME_HOST_OPS_IMAGE_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/tensor_ref.hpp"

namespace chipdock::runtime {

/// Pixels of 8 bits in rows: [height, width, channels].
struct DecodedImage {
  Dims dims;
  std::shared_ptr<const void> pixels;
};

/// Decodes a file into the pixel format "RGB", "BGR" or "Grayscale". Called on the thread of a run,
/// also on several at once. Throws kit::Failure: INVALID_ARGUMENT for bytes that are no image.
using ImageDecoder =
    std::function<DecodedImage(const std::vector<uint8_t>& file, const std::string& pixel_format)>;

/// For the whole process; an empty one takes it away. Runs that are in a decoder stay in it.
void set_image_decoder(ImageDecoder decoder);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_HOST_OPS_IMAGE_HPP_
