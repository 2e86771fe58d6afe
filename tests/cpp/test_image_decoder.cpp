// SPDX-License-Identifier: Apache-2.0
// ImageDecoder with decoders of our own: who is asked what, and what becomes of the answer. That
// files of every format are read is a matter of Python's decoder.
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/plan.hpp"
#include "host_ops/image.hpp"

using namespace chipdock::check;
namespace kit = chipdock::kit;

namespace {

std::shared_ptr<Plan> decoder(const std::shared_ptr<Device>& device, const std::string& format) {
  auto graph = std::make_shared<IrGraph>();
  for (const char* name : {"file", "image"}) {
    IrValue value;
    value.name = name;
    value.dtype = kit::kUint8;
    graph->values.push_back(value);
  }
  auto node = std::make_shared<IrNode>();
  node->op = "ImageDecoder";
  node->name = "eye";
  node->since_version = 20;
  node->inputs = {0};
  node->outputs = {1};
  node->attributes.add_text("pixel_format", format);
  graph->nodes.push_back(node);
  graph->inputs = {0};
  graph->outputs = {1};
  return Plan::compile(graph, device, device, {});
}

TensorRef file(Device& device, const std::vector<uint8_t>& bytes) {
  TensorRef out = make_tensor(device, kit::kUint8, {static_cast<int64_t>(bytes.size())}, nullptr);
  write_tensor(out, bytes.data(), nullptr);
  return out;
}

/// An image of one row whose channels are the bytes of the file.
DecodedImage bytes_as_pixels(const std::vector<uint8_t>& bytes, const std::string& format) {
  auto pixels = std::make_shared<std::vector<uint8_t>>(bytes);
  const int64_t channels = format == "Grayscale" ? 1 : 3;
  DecodedImage image;
  image.dims = {1, static_cast<int64_t>(bytes.size()) / channels, channels};
  const void* data = pixels->data();
  image.pixels = std::shared_ptr<const void>(std::move(pixels), data);
  return image;
}

}  // namespace

TEST(without_a_decoder_the_operator_is_unavailable) {
  auto device = open_device("cpu");
  auto plan = decoder(device, "RGB");
  const Error error = error_of([&] { plan->run({file(*device, {1, 2, 3})}, {}); });
  CHECK_EQ(error.code(), CHIPDOCK_UNAVAILABLE);
  CHECK(contains(error.what(), "'eye'"));
}

TEST(the_decoder_gets_the_file_and_the_format_and_its_pixels_come_out) {
  auto device = open_device("cpu");
  set_image_decoder(bytes_as_pixels);
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  for (const char* format : {"RGB", "BGR", "Grayscale"}) {
    const TensorRef out = decoder(device, format)->run({file(*device, bytes)}, {})[0];
    CHECK_EQ(out.dims, (Dims{1, format[0] == 'G' ? 6 : 2, format[0] == 'G' ? 1 : 3}));
    std::vector<uint8_t> pixels(6);
    read_tensor(out, pixels.data(), nullptr);
    CHECK(pixels == bytes);
  }
  set_image_decoder({});
  auto plan = decoder(device, "RGB");
  CHECK_EQ(error_of([&] { plan->run({file(*device, bytes)}, {}); }).code(), CHIPDOCK_UNAVAILABLE);
}

TEST(what_a_decoder_throws_names_the_node_and_a_wrong_shape_is_its_fault) {
  auto device = open_device("cpu");
  auto plan = decoder(device, "RGB");
  set_image_decoder([](const std::vector<uint8_t>& bytes, const std::string&) -> DecodedImage {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, bytes.size(), " bytes are no image");
  });
  const Error refused = error_of([&] { plan->run({file(*device, {7, 8})}, {}); });
  CHECK_EQ(refused.code(), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(contains(refused.what(), "2 bytes are no image (in "));
  set_image_decoder([](const std::vector<uint8_t>& bytes, const std::string&) {
    return bytes_as_pixels(bytes, "Grayscale");
  });
  const Error wrong = error_of([&] { plan->run({file(*device, {7, 8})}, {}); });
  CHECK_EQ(wrong.code(), CHIPDOCK_INTERNAL);
  set_image_decoder({});
}
