// SPDX-License-Identifier: Apache-2.0
#include "exec/tensor_ref.hpp"

#include <algorithm>
#include <cstring>

#include "stream.hpp"

namespace chipdock::runtime {

TensorRef wrap_host(std::shared_ptr<Device> host, chipdock_dtype dtype, Dims dims, const void* data,
                    std::shared_ptr<const void> keep) {
  TensorRef tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  const uint64_t bytes = tensor.bytes();
  if (bytes > 0) {
    // A kernel only reads its inputs, and nothing else is ever made of a wrapped tensor.
    tensor.buffer = std::make_shared<HostBuffer>(std::move(host), const_cast<void*>(data), bytes,
                                                 std::move(keep));
  }
  return tensor;
}

bool usable_on(const TensorRef& tensor, const Device& device) {
  if (tensor.buffer == nullptr) return true;
  if (tensor.buffer->memory() == nullptr) {
    return (device.info().flags & CHIPDOCK_DEVICE_READS_HOST) != 0;
  }
  return tensor.buffer->device().get() == &device;
}

bool overlap(const TensorRef& a, const TensorRef& b) {
  if (a.buffer == nullptr || b.buffer == nullptr) return false;
  const char* host_a = a.host();
  const char* host_b = b.host();
  if (host_a != nullptr && host_b != nullptr) {
    return host_a < host_b + b.bytes() && host_b < host_a + a.bytes();
  }
  if (a.buffer->memory() != b.buffer->memory()) return false;
  const uint64_t at_a = a.buffer->offset() + a.offset, at_b = b.buffer->offset() + b.offset;
  return at_a < at_b + b.bytes() && at_b < at_a + a.bytes();
}

void check_bytes(chipdock_dtype dtype, const Dims& dims, std::string_view what) {
  const int64_t size = checked_size(dims, what);
  const int64_t bits =
      std::max<int64_t>(int64_t{dtype.bits} * std::max<int64_t>(dtype.lanes, 1), 1);
  if (size > INT64_MAX / bits) {
    raise(CHIPDOCK_INVALID_ARGUMENT, what, ": shape ", to_string(dims), " of ",
          kit::dtype_name(dtype), " has more bytes than memory can have");
  }
}

void fill_tensor(chipdock_tensor& out, const TensorRef& tensor, bool as_host) {
  out = chipdock_tensor{};
  out.struct_size = sizeof(chipdock_tensor);
  out.dtype = tensor.dtype;
  out.rank = static_cast<int32_t>(tensor.dims.size());
  out.layout = tensor.layout;
  out.shape = tensor.dims.data();
  if (tensor.buffer == nullptr) return;
  if (as_host || tensor.buffer->memory() == nullptr) {
    out.host = tensor.host();
  } else {
    out.memory = tensor.buffer->memory();
    out.offset = tensor.buffer->offset() + tensor.offset;
  }
}

uint64_t layout_bytes(Device& device, uint32_t layout, chipdock_dtype dtype, const Dims& dims) {
  if (element_count(dims) == 0) return 0;
  chipdock_value value{};
  value.struct_size = sizeof(value);
  value.dtype = dtype;
  value.rank = static_cast<int32_t>(dims.size());
  value.layout = layout;
  value.dims = dims.data();
  uint64_t bytes = 0;
  ErrorRecord error;
  device.check_call(device.tables().kernel.layout_size(device.handle(), &value, &bytes, &error),
                    error, "kernel.layout_size");
  if (bytes == 0) {
    raise(CHIPDOCK_INTERNAL, device.name(), " kernel.layout_size returned OK with 0 bytes for ",
          kit::dtype_name(dtype), to_string(dims), " in layout ", layout, " [BASE-8]");
  }
  return bytes;
}

TensorRef make_tensor(Device& device, chipdock_dtype dtype, Dims dims,
                      const std::shared_ptr<Stream>& stream, uint32_t layout) {
  TensorRef tensor;
  tensor.dtype = dtype;
  check_bytes(dtype, dims, "tensor");
  tensor.dims = std::move(dims);
  tensor.layout = layout;
  if (layout != 0) tensor.layout_bytes = layout_bytes(device, layout, dtype, tensor.dims);
  const uint64_t bytes = tensor.bytes();
  if (bytes > 0) tensor.buffer = device.allocate(bytes, stream);
  return tensor;
}

void write_tensor(const TensorRef& tensor, const void* source, Stream* stream) {
  const uint64_t bytes = tensor.bytes();
  if (bytes == 0) return;
  if (stream == nullptr && tensor.host() != nullptr) {
    std::memcpy(tensor.host(), source, bytes);
    return;
  }
  Place from;
  from.host = const_cast<void*>(source);  // a source place is only read
  tensor.buffer->device()->copy(from, tensor.place(), bytes, stream);
  if (stream != nullptr) stream->sync();
}

void read_tensor(const TensorRef& tensor, void* target, Stream* stream) {
  const uint64_t bytes = tensor.bytes();
  if (bytes == 0) return;
  if (stream == nullptr && tensor.host() != nullptr) {
    std::memcpy(target, tensor.host(), bytes);
    return;
  }
  Place to;
  to.host = target;
  tensor.buffer->device()->copy(tensor.place(), to, bytes, stream);
  if (stream != nullptr) stream->sync();
}

TensorRef move_tensor(const TensorRef& tensor, Device& device,
                      const std::shared_ptr<Stream>& stream) {
  if (tensor.object != nullptr) return tensor;  // immutable, and on the host wherever it is used
  TensorRef moved = make_tensor(device, tensor.dtype, tensor.dims, stream);
  const uint64_t bytes = tensor.bytes();
  if (bytes == 0) return moved;
  Device& owner = *tensor.buffer->device();
  if (moved.host() != nullptr) {
    read_tensor(tensor, moved.host(), nullptr);
  } else if (tensor.host() != nullptr) {
    write_tensor(moved, tensor.host(), stream.get());
  } else if (owner.plugin() == device.plugin()) {
    device.copy(tensor.place(), moved.place(), bytes, stream.get());
    if (stream != nullptr) stream->sync();
  } else {
    const auto staging = std::make_unique<char[]>(bytes);
    read_tensor(tensor, staging.get(), nullptr);
    write_tensor(moved, staging.get(), stream.get());
  }
  return moved;
}

}  // namespace chipdock::runtime
