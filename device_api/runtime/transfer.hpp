// SPDX-License-Identifier: Apache-2.0
// Copies and fills as calls of a plugin: native where there is a slot, else made of copies.
// Queueing them on emulated streams is the operation's work (operation.hpp).
#ifndef CHIPDOCK_RUNTIME_TRANSFER_HPP_
#define CHIPDOCK_RUNTIME_TRANSFER_HPP_

#include "operation.hpp"

namespace chipdock::runtime {

/// Between two plugins the bytes go through host memory; on a native stream the call then waits for
/// them.
void issue_copy(Issue& issue, const Place& source, const Place& target, uint64_t size);
/// Row by row without a slot; one plain copy if both sides are dense.
void issue_copy_2d(Issue& issue, const Place& source, uint64_t source_pitch, const Place& target,
                   uint64_t target_pitch, uint64_t row_bytes, uint64_t rows);
/// Without a slot: one block from the host, then doubled on the device.
void issue_fill(Issue& issue, const Place& target, uint64_t size, const uint8_t* pattern,
                uint32_t pattern_size);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_TRANSFER_HPP_
