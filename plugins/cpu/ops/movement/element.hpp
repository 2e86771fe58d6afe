// SPDX-License-Identifier: Apache-2.0
// Elements as bytes: what operators that move data and never look at it share. Widths, the refusal
// of packed types, index tensors of either integer width, and shapes as text for messages.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_ELEMENT_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_ELEMENT_HPP_

#include <cstdint>
#include <cstring>
#include <string>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

inline constexpr int kMaxRank = CHIPDOCK_MAX_RANK;

inline bool byte_sized(chipdock_dtype type) {
  const int bits = type.bits * type.lanes;
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128;
}

/// Bytes of an element: 1, 2, 4, 8 or 16. Fails for types packed below one byte.
inline int width_of(const Tensor& tensor, const char* op) {
  if (!byte_sized(tensor.dtype)) {
    kit::fail(CHIPDOCK_UNSUPPORTED, op, " moves whole bytes, ", kit::dtype_name(tensor.dtype),
              " has ", int{tensor.dtype.bits} * tensor.dtype.lanes,
              " bits; elements of 1, 2, 4, 8 or 16 bytes are allowed, cast first");
  }
  return tensor.dtype.bits * tensor.dtype.lanes / 8;
}

/// `supports` of an operator whose input 0 is moved by the byte.
inline int32_t moves_bytes(const kit::NodeView& node) {
  return node.has_input(0) && byte_sized(node.input(0)->dtype) ? CHIPDOCK_SUPPORTS_YES
                                                               : CHIPDOCK_SUPPORTS_NO;
}

/// "[2, 3]", for messages.
inline std::string shape_text(const Tensor& tensor) {
  std::string out = "[";
  for (int32_t i = 0; i < tensor.rank; ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  }
  return out + "]";
}

/// Row-major strides in elements.
inline void strides_of(const Tensor& tensor, int64_t* strides) {
  int64_t step = 1;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= tensor.shape[i];
  }
}

inline void require_same_shape(const Tensor& a, const Tensor& b, const char* op, const char* what) {
  bool same = a.rank == b.rank;
  for (int32_t i = 0; same && i < a.rank; ++i) same = a.shape[i] == b.shape[i];
  if (!same) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": ", what, " has shape ", shape_text(a),
              ", expected ", shape_text(b));
  }
}

inline void require_same_dtype(const Tensor& a, const Tensor& b, const char* op) {
  if (!kit::operator==(a.dtype, b.dtype)) {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": dtypes ", kit::dtype_name(a.dtype), " and ",
              kit::dtype_name(b.dtype), " must be the same");
  }
}

/// Reads an int32 or int64 tensor as int64.
class Integers {
 public:
  Integers(const Tensor& tensor, const char* op)
      : data_(tensor.data), size_(tensor.size()), wide_(tensor.dtype.bits == 64) {
    if (tensor.dtype.code != CHIPDOCK_DTYPE_INT ||
        (tensor.dtype.bits != 64 && tensor.dtype.bits != 32)) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": indices have dtype ",
                kit::dtype_name(tensor.dtype), ", int32 or int64 is allowed");
    }
  }
  int64_t size() const { return size_; }
  /// Calls body(pointer to the elements), so that loops are compiled for either width.
  template <class Body>
  void visit(const Body& body) const {
    if (wide_) {
      body(static_cast<const int64_t*>(data_));
    } else {
      body(static_cast<const int32_t*>(data_));
    }
  }
  int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  int64_t size_;
  bool wide_;
};

/// Fails naming an index that is out of range.
[[noreturn]] inline void fail_index(const char* op, int64_t index, int64_t position, int64_t extent,
                                    const Tensor& data) {
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, op, ": index ", index, " at position ", position,
            " is outside [", -extent, ", ", extent - 1, "] for data of shape ", shape_text(data));
}

/// Calls body(integral_constant<int, bytes>) for one of the five widths.
template <class Body>
void by_width(int width, const Body& body) {
  switch (width) {
    case 1:
      body(std::integral_constant<int, 1>());
      return;
    case 2:
      body(std::integral_constant<int, 2>());
      return;
    case 4:
      body(std::integral_constant<int, 4>());
      return;
    case 8:
      body(std::integral_constant<int, 8>());
      return;
    default:
      body(std::integral_constant<int, 16>());
      return;
  }
}

/// One element moved by value. memcpy of a constant size is a plain load and store.
template <int kWidth>
inline void move_one(char* target, const char* source) {
  std::memcpy(target, source, kWidth);
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_ELEMENT_HPP_
