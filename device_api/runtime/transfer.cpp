// SPDX-License-Identifier: Apache-2.0
// See transfer.hpp.
#include "transfer.hpp"

#include <algorithm>
#include <cstring>

namespace chipdock::runtime {
namespace {

constexpr uint64_t kStageBytes = uint64_t{8}
                                 << 20;  // Between plugins: large enough to hide call cost.
constexpr uint64_t kFillBlock = uint64_t{64} << 10;  // Fits L2; doubling does the rest.

Place at(const Place& place, uint64_t bytes) {
  Place moved = place;
  if (place.memory != nullptr) {
    moved.offset += bytes;
  } else if (place.host != nullptr) {
    moved.host = static_cast<char*>(place.host) + bytes;
  }
  return moved;
}

chipdock_place to_abi(const Place& place, const Device& device) {
  chipdock_place out{};
  out.struct_size = sizeof(out);
  out.memory = place.memory;
  out.offset = place.memory != nullptr ? place.offset : 0;
  out.host = place.memory != nullptr ? nullptr : place.host;
  if (place.memory != nullptr && place.device != nullptr && place.device != &device) {
    out.device = place.device->handle();
  }
  if (place.memory == nullptr && place.pinned) out.flags = CHIPDOCK_PLACE_PINNED;
  return out;
}

/// Owned by a device of another plugin: no slot of ours takes it.
bool foreign(const Place& place, const Device& device) {
  return place.memory != nullptr && place.device != nullptr &&
         place.device->plugin() != device.plugin();
}

void native_copy(Issue& issue, const Place& source, const Place& target, uint64_t size) {
  const chipdock_place from = to_abi(source, issue.device);
  const chipdock_place to = to_abi(target, issue.device);
  chipdock_copy_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.source = &from;
  desc.target = &to;
  desc.size = size;
  desc.stream = issue.stream;
  desc.correlation_id = issue.correlation_id;
  ErrorRecord error;
  issue.device.check_call(issue.device.tables().memory.copy(issue.device.handle(), &desc, &error),
                          error, "memory.copy");
}

void wait_native(Issue& issue) {
  if (issue.stream == nullptr) return;
  ErrorRecord error;
  issue.device.check_call(issue.device.tables().stream.sync(issue.stream, -1, &error), error,
                          "stream.sync");
}

void staged_copy(Issue& issue, const Place& source, const Place& target, uint64_t size) {
  const auto block = std::make_unique<char[]>(std::min(size, kStageBytes));
  Place stage;
  stage.host = block.get();
  for (uint64_t done = 0; done < size;) {
    const uint64_t part = std::min(size - done, kStageBytes);
    if (foreign(source, issue.device)) {
      source.device->copy(at(source, done), stage, part, nullptr);
    } else {
      native_copy(issue, at(source, done), stage, part);
      wait_native(issue);
    }
    if (foreign(target, issue.device)) {
      target.device->copy(stage, at(target, done), part, nullptr);
    } else {
      native_copy(issue, stage, at(target, done), part);
      wait_native(issue);
    }
    done += part;
  }
}

}  // namespace

void issue_copy(Issue& issue, const Place& source, const Place& target, uint64_t size) {
  if (size == 0) return;
  if (foreign(source, issue.device) || foreign(target, issue.device)) {
    staged_copy(issue, source, target, size);
  } else {
    native_copy(issue, source, target, size);
  }
}

void issue_copy_2d(Issue& issue, const Place& source, uint64_t source_pitch, const Place& target,
                   uint64_t target_pitch, uint64_t row_bytes, uint64_t rows) {
  if (row_bytes == 0 || rows == 0) return;
  Device& device = issue.device;
  if (rows == 1 || (source_pitch == row_bytes && target_pitch == row_bytes)) {
    issue_copy(issue, source, target, row_bytes * rows);
    return;
  }
  const bool native = device.tables().memory.copy_2d != nullptr && !foreign(source, device) &&
                      !foreign(target, device);
  if (native) {
    const chipdock_place from = to_abi(source, device);
    const chipdock_place to = to_abi(target, device);
    chipdock_copy_2d_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.source = &from;
    desc.target = &to;
    desc.row_bytes = row_bytes;
    desc.rows = rows;
    desc.source_pitch = source_pitch;
    desc.target_pitch = target_pitch;
    desc.stream = issue.stream;
    desc.correlation_id = issue.correlation_id;
    ErrorRecord error;
    const chipdock_status status = device.tables().memory.copy_2d(device.handle(), &desc, &error);
    // A NULL slot and UNSUPPORTED mean the same, and a failed call has changed nothing. [BASE-8]
    if (status != CHIPDOCK_UNSUPPORTED) {
      device.check_call(status, error, "memory.copy_2d");
      return;
    }
  }
  for (uint64_t row = 0; row < rows; ++row) {
    issue_copy(issue, at(source, row * source_pitch), at(target, row * target_pitch), row_bytes);
  }
}

void issue_fill(Issue& issue, const Place& target, uint64_t size, const uint8_t* pattern,
                uint32_t pattern_size) {
  if (size == 0) return;
  Device& device = issue.device;
  if (device.tables().memory.fill != nullptr && target.memory != nullptr &&
      !foreign(target, device)) {
    const chipdock_place to = to_abi(target, device);
    chipdock_fill_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.pattern_size = pattern_size;
    desc.target = &to;
    desc.size = size;
    std::memcpy(desc.pattern, pattern, pattern_size);
    desc.stream = issue.stream;
    desc.correlation_id = issue.correlation_id;
    ErrorRecord error;
    const chipdock_status status = device.tables().memory.fill(device.handle(), &desc, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      device.check_call(status, error, "memory.fill");
      return;
    }
  }
  const uint64_t block_size = std::min(size, kFillBlock);
  std::shared_ptr<char> block(new char[block_size], std::default_delete<char[]>());
  // The block is a multiple of every pattern size, so a cut pattern can only stand at the very end.
  for (uint64_t i = 0; i < block_size; ++i)
    block.get()[i] = static_cast<char>(pattern[i % pattern_size]);
  Place source;
  source.host = block.get();
  issue_copy(issue, source, target, block_size);
  if (issue.stream != nullptr) issue.keep.push_back(block);
  for (uint64_t done = block_size; done < size;) {
    const uint64_t part = std::min(done, size - done);
    if (target.memory != nullptr) {
      issue_copy(issue, target, at(target, done), part);
    } else {
      issue_copy(issue, source, at(target, done), std::min(part, block_size));
    }
    done += target.memory != nullptr ? part : std::min(part, block_size);
  }
}

}  // namespace chipdock::runtime
