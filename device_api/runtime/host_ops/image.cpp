// SPDX-License-Identifier: Apache-2.0
// ImageDecoder: what goes in and comes out is checked here, the decoding is image.hpp's. ONNX has a
// file that cannot be decoded give an empty image; here it fails and says why, as the reference
// evaluator does.
#include "host_ops/image.hpp"

#include <mutex>

#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

struct Decoder {
  std::mutex mutex;
  std::shared_ptr<const ImageDecoder> current;
};

// Leaked on purpose: a run may still be in it when the process ends.
Decoder& decoder() {
  static auto* const kDecoder = new Decoder;
  return *kDecoder;
}

std::shared_ptr<const ImageDecoder> current_decoder() {
  const std::lock_guard<std::mutex> lock(decoder().mutex);
  return decoder().current;
}

void decode(HostCall& call) {
  const std::string format = call.attributes().text("pixel_format", "RGB");
  kit::require(format == "RGB" || format == "BGR" || format == "Grayscale", "pixel_format is '",
               format, "', allowed are RGB, BGR and Grayscale");
  const TensorRef& stream = call.input(0);
  kit::require(kit::operator==(stream.dtype, kit::kUint8) && stream.dims.size() == 1,
               "encoded_stream is ", kind_name(stream), " of shape ", to_string(stream.dims),
               ", the bytes of a file are wanted: uint8 of shape [N]");
  const auto decode = current_decoder();
  if (decode == nullptr) {
    kit::fail(CHIPDOCK_UNAVAILABLE,
              "ImageDecoder needs a decoder of images, and this program has set none; chipdock's "
              "Python package brings one");
  }
  std::vector<uint8_t> file(static_cast<size_t>(stream.size()));
  read_tensor(stream, file.data(), nullptr);
  const DecodedImage image = (*decode)(file, format);
  const int64_t channels = format == "Grayscale" ? 1 : 3;
  if (image.dims.size() != 3 || image.dims[2] != channels || image.pixels == nullptr) {
    kit::fail(CHIPDOCK_INTERNAL, "the decoder of images made shape ", to_string(image.dims),
              ", it has to be [height, width, ", channels, "]");
  }
  call.set(0, call.tensor(kit::kUint8, image.dims, image.pixels.get()));
}

}  // namespace

void set_image_decoder(ImageDecoder decode) {
  std::shared_ptr<const ImageDecoder> next;
  if (decode) next = std::make_shared<const ImageDecoder>(std::move(decode));
  const std::lock_guard<std::mutex> lock(decoder().mutex);
  decoder().current.swap(next);
}

std::vector<HostOp> image_host_ops() { return {{"ImageDecoder", 20, 0, decode}}; }

}  // namespace chipdock::runtime
