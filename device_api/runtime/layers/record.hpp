// SPDX-License-Identifier: Apache-2.0
// The file of the record layer, in the machine's byte order. Several plugin instances and processes
// may write one file; slots are numbered as in slots.inc, which chipdock._core.slot_names() lists.
#ifndef CHIPDOCK_RUNTIME_LAYERS_RECORD_HPP_
#define CHIPDOCK_RUNTIME_LAYERS_RECORD_HPP_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "slot_rules.hpp"

namespace chipdock::runtime {

inline constexpr char kRecordMagic[8] = {'C', 'D', 'R', 'E', 'C', 0, 0, 1};
inline constexpr uint32_t kRecordRing = 256;
inline constexpr uint32_t kRecordStatuses = 32;

struct RecordHeader {
  char magic[8];
  uint32_t version;
  uint32_t ring_size;
  uint32_t slot_count;
  uint32_t status_count;
  std::atomic<uint64_t> next;  ///< Calls begun so far.
  uint64_t zero[4];
};

struct RecordedCall {
  /// Number of the call, from 1; 0: empty, or being written. Written last, so a call that is there
  /// is there whole.
  std::atomic<uint64_t> sequence;
  /// uint32_t slot, then int32_t status, which is INT32_MIN while the call runs.
  std::atomic<uint64_t> slot_and_status;
  std::atomic<uint64_t> start_ns;  ///< CLOCK_MONOTONIC.
  std::atomic<uint64_t> thread;    ///< gettid().
};

struct RecordFile {
  RecordHeader header;
  RecordedCall ring[kRecordRing];  ///< Call n lies at (n - 1) % kRecordRing.
  /// Calls ended, by slot and status; a status outside of the columns counts in the last one.
  std::atomic<uint64_t> counts[kSlotCount][kRecordStatuses];
};

static_assert(sizeof(RecordHeader) == 64 && offsetof(RecordHeader, next) == 24,
              "readers rely on it");
static_assert(sizeof(RecordedCall) == 32, "readers rely on it");
static_assert(sizeof(RecordFile) == 64 + 32 * kRecordRing + 8 * kSlotCount * kRecordStatuses,
              "readers rely on it");

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LAYERS_RECORD_HPP_
