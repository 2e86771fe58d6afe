// SPDX-License-Identifier: Apache-2.0
// Values that no device can hold: a tensor of strings, a sequence, an empty optional. They flow
// through plans as a TensorRef without a buffer, are immutable, and are shared by reference. An
// optional that holds something is what it holds. The elements of a sequence are TensorRefs in
// turn: dense tensors stay in the memory of their device.
#ifndef CHIPDOCK_RUNTIME_EXEC_HOST_OBJECT_HPP_
#define CHIPDOCK_RUNTIME_EXEC_HOST_OBJECT_HPP_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/tensor_ref.hpp"

namespace chipdock::runtime {

/// The dtype of every host value inside the executor; it never crosses the ABI. No bits: such a
/// value takes no memory of any plan.
inline constexpr chipdock_dtype kHostDtype{CHIPDOCK_DTYPE_OPAQUE, 0, 1};

inline bool is_host_dtype(chipdock_dtype dtype) {
  return dtype.code == CHIPDOCK_DTYPE_OPAQUE && dtype.bits == 0;
}

enum class HostKind : uint8_t { kStrings, kSequence, kNone };

struct HostObject {
  HostKind kind = HostKind::kNone;
  std::vector<std::string> strings;  ///< Row-major; the extents are the TensorRef's.
  std::vector<TensorRef> items;      ///< Of a sequence.
};

inline TensorRef make_host_value(HostObject object, Dims dims = {}) {
  TensorRef value;
  value.dtype = kHostDtype;
  value.dims = std::move(dims);
  value.object = std::make_shared<const HostObject>(std::move(object));
  return value;
}

inline TensorRef make_strings(Dims dims, std::vector<std::string> strings) {
  return make_host_value({HostKind::kStrings, std::move(strings), {}}, std::move(dims));
}

inline TensorRef make_sequence(std::vector<TensorRef> items) {
  return make_host_value({HostKind::kSequence, {}, std::move(items)});
}

inline TensorRef make_none() { return make_host_value({}); }

inline bool is_kind(const TensorRef& value, HostKind kind) {
  return value.object != nullptr && value.object->kind == kind;
}

/// "strings", "a sequence", "an empty optional", or the dtype of a tensor: for messages.
std::string kind_name(const TensorRef& value);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_HOST_OBJECT_HPP_
