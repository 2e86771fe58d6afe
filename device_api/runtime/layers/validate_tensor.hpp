// SPDX-License-Identifier: Apache-2.0
// Where a tensor of a launch lies, as the checks of the kernel table compare it.
#ifndef CHIPDOCK_RUNTIME_LAYERS_VALIDATE_TENSOR_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_VALIDATE_TENSOR_HPP_

#include "validate.hpp"

namespace chipdock::runtime {

struct Bytes {
  const void* memory = nullptr;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The bytes of device memory that a checked tensor takes; none if it has none.
Bytes bytes_of(const Validator& book, const chipdock_tensor& tensor, const void* device,
               const char* what);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_VALIDATE_TENSOR_HPP_
