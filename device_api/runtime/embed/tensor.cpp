// SPDX-License-Identifier: Apache-2.0
// host_tensor.h: tensors over memory of a device or of the embedder, and copies.
#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

using runtime::Device;
using runtime::Place;
using runtime::Stream;
using runtime::TensorRef;

TensorRef read_tensor_desc(const chipdock_host_tensor_desc& desc) {
  only_flags(desc.flags, 0, "desc");
  check_dtype(desc.dtype, "desc");
  TensorRef tensor;
  tensor.dtype = desc.dtype;
  tensor.dims = read_dims(desc.rank, desc.shape, false, "desc");
  runtime::check_bytes(tensor.dtype, tensor.dims, "desc");
  return tensor;
}

uint64_t element_bytes(chipdock_dtype dtype) { return std::max<uint64_t>(dtype.bits / 8, 1); }

/// The stream of a call that works on `device`, or NULL.
std::shared_ptr<Stream> stream_of(const chipdock_host_stream* stream, const Device& device) {
  if (stream == nullptr) return nullptr;
  require(stream->stream->device().get() == &device, "the tensor is on ", device.name(),
          ", the stream is one of ", stream->stream->device()->name());
  return stream->stream;
}

void check_size(const TensorRef& tensor, uint64_t size) {
  require(size == tensor.bytes(), "size is ", size, " bytes, the tensor has ", tensor.bytes());
}

void* host_address(const Place& place, const TensorRef* tensor) {
  return tensor != nullptr ? tensor->host() : place.host;
}

/// Queues a copy and keeps memory of the two from being used again before it has ended. [HTN-5]
void copy(Device& device, const TensorRef* source_tensor, const Place& source,
          const TensorRef* target_tensor, const Place& target, uint64_t size,
          const std::shared_ptr<Stream>& stream) {
  device.check_alive();
  if (size == 0) return;
  if (stream == nullptr && host_address(source, source_tensor) != nullptr &&
      host_address(target, target_tensor) != nullptr) {
    std::memcpy(host_address(target, target_tensor), host_address(source, source_tensor), size);
    return;
  }
  device.copy(source, target, size, stream.get());
  for (const TensorRef* tensor : {source_tensor, target_tensor}) {
    if (tensor == nullptr || stream == nullptr) continue;
    tensor->buffer->used_on(stream);
    // Memory of the embedder has no allocator that would wait for the stream.
    if (tensor->buffer->memory() == nullptr) {
      stream->host_function([kept = tensor->buffer](chipdock_status) {});
    }
  }
}

Place host_place(const void* memory) {
  Place place;
  place.host = const_cast<void*>(memory);  // a source place is only read
  return place;
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_create(chipdock_host_device* device,
                                                          const chipdock_host_tensor_desc* desc,
                                                          chipdock_host_tensor** out_tensor,
                                                          chipdock_error* error) {
  return guard(error, [&] {
    const auto& owner = need(device, "device").device;
    need(out_tensor, "out_tensor");
    const chipdock_host_tensor_desc given = take(desc, "desc");
    owner->check_alive();
    auto made = std::make_unique<chipdock_host_tensor>();
    made->device = owner;
    made->tensor = read_tensor_desc(given);
    TensorRef& tensor = made->tensor;
    if (given.data == nullptr) {
      require(given.release == nullptr, "desc has release, but no data");
      tensor = chipdock::runtime::make_tensor(*owner, tensor.dtype, tensor.dims, nullptr);
    } else {
      const auto address = reinterpret_cast<uintptr_t>(given.data);
      require(address % element_bytes(tensor.dtype) == 0, "data is not aligned to its elements of ",
              element_bytes(tensor.dtype), " bytes");
      // Without elements there is no buffer to hang it on, and no use for the memory.
      const uint64_t size = std::max<uint64_t>(tensor.bytes(), 1);
      const auto borrowed = std::make_shared<Borrowed>(given.release, given.context);
      tensor.buffer =
          std::make_shared<chipdock::runtime::HostBuffer>(owner, given.data, size, borrowed);
      borrowed->arm();
    }
    *out_tensor = made.release();
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_view(const chipdock_host_tensor* tensor,
                                                        const chipdock_host_tensor_desc* desc,
                                                        uint64_t offset,
                                                        chipdock_host_tensor** out_view,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    const TensorRef& base = need(tensor, "tensor").tensor;
    need(out_view, "out_view");
    const chipdock_host_tensor_desc given = take(desc, "desc");
    require(given.data == nullptr && given.release == nullptr, "the desc of a view has no data");
    auto made = std::make_unique<chipdock_host_tensor>();
    made->device = tensor->device;
    made->tensor = read_tensor_desc(given);
    TensorRef& view = made->tensor;
    require(offset % element_bytes(view.dtype) == 0, "offset ", offset,
            " is no multiple of the element's ", element_bytes(view.dtype), " bytes");
    require(offset <= base.bytes() && view.bytes() <= base.bytes() - offset, "the view has ",
            view.bytes(), " bytes from ", offset, ", the tensor has ", base.bytes());
    if (view.bytes() > 0) {
      view.buffer = base.buffer;
      view.offset = base.offset + offset;
    }
    *out_view = made.release();
  });
}

void CHIPDOCK_CALL chipdock_host_tensor_destroy(chipdock_host_tensor* tensor) { delete tensor; }

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_describe(const chipdock_host_tensor* tensor,
                                                            chipdock_host_tensor_info* out_info,
                                                            chipdock_error* error) {
  return guard(error, [&] {
    const TensorRef& own = need(tensor, "tensor").tensor;
    chipdock_host_tensor_info info{};
    info.dtype = own.dtype;
    info.rank = static_cast<int32_t>(own.dims.size());
    info.shape = own.dims.empty() ? nullptr : own.dims.data();
    info.bytes = own.bytes();
    info.host = own.host();
    info.device = tensor->device->name().c_str();
    chipdock::kit::write_struct(out_info, info, "out_info");
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_write(chipdock_host_tensor* tensor,
                                                         const void* source, uint64_t size,
                                                         chipdock_host_stream* stream,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    const TensorRef& to = need(tensor, "tensor").tensor;
    check_size(to, size);
    need_list(static_cast<const char*>(source), size, "source");
    Device& device = *tensor->device;
    copy(device, nullptr, host_place(source), &to, to.place(), size, stream_of(stream, device));
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_read(const chipdock_host_tensor* tensor,
                                                        void* target, uint64_t size,
                                                        chipdock_host_stream* stream,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    const TensorRef& from = need(tensor, "tensor").tensor;
    check_size(from, size);
    need_list(static_cast<char*>(target), size, "target");
    Device& device = *tensor->device;
    copy(device, &from, from.place(), nullptr, host_place(target), size, stream_of(stream, device));
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_tensor_copy(const chipdock_host_tensor* source,
                                                        chipdock_host_tensor* target,
                                                        chipdock_host_stream* stream,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    const TensorRef& from = need(source, "source").tensor;
    const TensorRef& to = need(target, "target").tensor;
    require(chipdock::kit::operator==(from.dtype, to.dtype) && from.size() == to.size(),
            "source has ", from.size(), " elements of ", chipdock::kit::dtype_name(from.dtype),
            ", target ", to.size(), " of ", chipdock::kit::dtype_name(to.dtype));
    require(!chipdock::runtime::overlap(from, to), "source and target share memory");
    const bool at_source = stream != nullptr && stream->stream->device() == source->device;
    Device& device = at_source ? *source->device : *target->device;
    copy(device, &from, from.place(), &to, to.place(), to.bytes(), stream_of(stream, device));
  });
}
