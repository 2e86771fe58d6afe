// SPDX-License-Identifier: Apache-2.0
// Checks of tensors, for the tables kernel and compile.
#include "validate_tensor.hpp"

namespace chipdock::runtime {
namespace {

using Book = Validator;

/// Elements from the lowest to the highest that a tensor touches, as offsets from its first one.
struct Extent {
  bool empty = false;
  int64_t lowest = 0;
  int64_t highest = 0;
};

Extent extent_of(const Book& book, const chipdock_tensor& tensor, const char* what) {
  Extent extent;
  int64_t dense = 1;
  for (int32_t i = tensor.rank; i-- > 0;) {
    const int64_t dim = tensor.shape[i];
    want(dim >= 0, book, "KRN-4", what, " has extent ", dim, " in dim ", i);
    if (dim == 0) extent.empty = true;
    if (extent.empty) continue;
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    int64_t reach = 0;
    const bool wraps = __builtin_mul_overflow(dim - 1, stride, &reach) ||
                       __builtin_add_overflow(stride < 0 ? extent.lowest : extent.highest, reach,
                                              stride < 0 ? &extent.lowest : &extent.highest) ||
                       __builtin_mul_overflow(dense, dim, &dense);
    want(!wraps, book, "KRN-4", what, " has more elements than 64 bits count");
  }
  return extent;
}

/// What the plugin says of a tensor in one of its layouts.
uint64_t size_in_layout(const Book& book, const chipdock_tensor& tensor, const void* device,
                        const char* what) {
  const auto layout_size = book.inner().kernel.layout_size;
  want(layout_size != nullptr, book, "KRN-8", what, " is in layout ", tensor.layout,
       ", but layout_size is NULL");
  chipdock_value value{};
  value.struct_size = sizeof(value);
  value.dtype = tensor.dtype;
  value.rank = tensor.rank;
  value.layout = tensor.layout;
  value.dims = tensor.shape;
  uint64_t size = 0;
  ErrorRecord error;
  auto* handle = static_cast<chipdock_device*>(const_cast<void*>(device));
  want(layout_size(handle, &value, &size, &error) == CHIPDOCK_OK, book, "KRN-8", what,
       " is in layout ", tensor.layout, ", which layout_size refuses: ", error.text);
  return size;
}

}  // namespace

Bytes bytes_of(const Validator& book, const chipdock_tensor& tensor, const void* device,
               const char* what) {
  if (tensor.memory == nullptr) return {};
  const Extent extent = extent_of(book, tensor, what);
  if (extent.empty) return {};
  if (tensor.layout != 0) {
    const uint64_t size = size_in_layout(book, tensor, device, what);
    want(size <= UINT64_MAX - tensor.offset, book, "MEM-3", what, " range wraps");
    return {tensor.memory, tensor.offset, tensor.offset + size};
  }
  const uint64_t back = kit::dtype_bytes(tensor.dtype, static_cast<uint64_t>(-extent.lowest));
  const uint64_t forth = kit::dtype_bytes(tensor.dtype, static_cast<uint64_t>(extent.highest) + 1);
  want(tensor.offset >= back, book, "MEM-3", what, " starts before its allocation");
  want(forth <= UINT64_MAX - tensor.offset, book, "MEM-3", what, " range wraps");
  return {tensor.memory, tensor.offset - back, tensor.offset + forth};
}

void Validator::tensor(const chipdock_tensor* given, const void* device, bool with_memory,
                       const char* what) {
  const auto tensor = in_struct(*this, given, what);
  want(tensor.rank >= 0 && tensor.rank <= CHIPDOCK_MAX_RANK, *this, "KRN-4", what, " has rank ",
       tensor.rank, ", it is 0 to ", CHIPDOCK_MAX_RANK);
  want(tensor.rank == 0 || tensor.shape != nullptr, *this, "KRN-4", what, " has a NULL shape");
  want(tensor.layout == 0 || tensor.strides == nullptr, *this, "KRN-8", what, " is in layout ",
       tensor.layout, " and has strides");
  const Extent extent = extent_of(*this, tensor, what);
  if (!with_memory) return;
  want(tensor.memory == nullptr || tensor.host == nullptr, *this, "KRN-7", what,
       " has memory and host");
  want(extent.empty || tensor.memory != nullptr || tensor.host != nullptr, *this, "KRN-10", what,
       " has elements and neither memory nor host");
  if (tensor.memory == nullptr) return;
  const Bytes bytes = bytes_of(*this, tensor, device, what);
  const uint64_t size = bytes.memory == nullptr ? 0 : bytes.end - bytes.begin;
  range(device, tensor.memory, bytes.memory == nullptr ? tensor.offset : bytes.begin, size, what);
}

}  // namespace chipdock::runtime
