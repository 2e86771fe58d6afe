// SPDX-License-Identifier: Apache-2.0
// A dense tensor in some device's memory, by reference: what flows into and out of a plan and lies
// under the Python Array. Strings, sequences and optionals flow the same way, as objects that only
// the host holds (host_object.hpp).
#ifndef CHIPDOCK_RUNTIME_EXEC_TENSOR_REF_HPP_
#define CHIPDOCK_RUNTIME_EXEC_TENSOR_REF_HPP_

#include <memory>

#include "device.hpp"
#include "ops/op.hpp"

namespace chipdock::runtime {

/// Memory that is not the device's own: a NumPy array, a mapped file. It stays as long as `keep`
/// lives, and kernels take it as it is where the device says CHIPDOCK_DEVICE_READS_HOST.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::shared_ptr<Device> host, void* data, uint64_t size,
             std::shared_ptr<const void> keep)
      : Buffer(std::move(host), nullptr, 0, size), keep_(std::move(keep)) {
    host_address_ = data;
  }
  void used_on(const std::shared_ptr<Stream>&) override {
  }  // work on host memory ends before the call does

 private:
  std::shared_ptr<const void> keep_;
};

struct HostObject;

struct TensorRef {
  chipdock_dtype dtype{};
  Dims dims;
  std::shared_ptr<Buffer> buffer;            ///< NULL only if there are no elements.
  uint64_t offset = 0;                       ///< Bytes from the start of `buffer`.
  std::shared_ptr<const HostObject> object;  ///< Set for host values alone; they have no buffer.
  uint32_t layout = 0;        ///< As chipdock_tensor.layout. Never of a plan's inputs and outputs.
  uint64_t layout_bytes = 0;  ///< What layout_size said, if `layout` is not 0.

  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  uint64_t bytes() const {
    return layout != 0 ? layout_bytes : kit::dtype_bytes(dtype, static_cast<uint64_t>(size()));
  }
  /// Host address of element 0, or NULL if the memory is not readable by the host.
  char* host() const {
    if (buffer == nullptr || buffer->host_address() == nullptr) return nullptr;
    return static_cast<char*>(buffer->host_address()) + offset;
  }
  Place place() const {
    Place place;
    if (buffer == nullptr) return place;
    place.memory = buffer->memory();
    if (place.memory == nullptr) {
      place.host = host();
    } else {
      place.offset = buffer->offset() + offset;
      place.device = buffer->device().get();
    }
    return place;
  }
};

/// Host memory as a tensor, without a copy.
TensorRef wrap_host(std::shared_ptr<Device> host, chipdock_dtype dtype, Dims dims, const void* data,
                    std::shared_ptr<const void> keep);

/// True if kernels of `device` can take the tensor's memory as it is.
bool usable_on(const TensorRef& tensor, const Device& device);

/// True if the two have a byte in common.
bool overlap(const TensorRef& a, const TensorRef& b);

/// Throws if the dims are negative or the elements need more bytes than an address can hold.
void check_bytes(chipdock_dtype dtype, const Dims& dims, std::string_view what);

/// Fills the ABI's view of a tensor; `shape` points into `tensor.dims`. With `as_host` the host
/// address is handed over (KRN-7), else the memory handle where there is one.
void fill_tensor(chipdock_tensor& out, const TensorRef& tensor, bool as_host);

/// Bytes of a tensor in a private layout of `device`, which the plugin is asked for; 0 if it has no
/// elements.
uint64_t layout_bytes(Device& device, uint32_t layout, chipdock_dtype dtype, const Dims& dims);

/// A fresh tensor on `device`; no memory is taken if it has no elements.
TensorRef make_tensor(Device& device, chipdock_dtype dtype, Dims dims,
                      const std::shared_ptr<Stream>& stream, uint32_t layout = 0);

/// Copies between host memory and a tensor; ended on return.
void write_tensor(const TensorRef& tensor, const void* source, Stream* stream);
void read_tensor(const TensorRef& tensor, void* target, Stream* stream);

/// The same elements on another device: a copy through the plugin when both belong to one instance,
/// else through the host.
TensorRef move_tensor(const TensorRef& tensor, Device& device,
                      const std::shared_ptr<Stream>& stream);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_TENSOR_REF_HPP_
