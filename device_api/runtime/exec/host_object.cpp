// SPDX-License-Identifier: Apache-2.0
#include "exec/host_object.hpp"

namespace chipdock::runtime {

std::string kind_name(const TensorRef& value) {
  if (value.object == nullptr) return kit::dtype_name(value.dtype);
  switch (value.object->kind) {
    case HostKind::kStrings:
      return "strings";
    case HostKind::kSequence:
      return "a sequence";
    case HostKind::kNone:
      break;
  }
  return "an empty optional";
}

}  // namespace chipdock::runtime
