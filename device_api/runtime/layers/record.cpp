// SPDX-License-Identifier: Apache-2.0
// The record layer: the last calls and a count of every (slot, status), in a file that is mapped
// and shared, so that a reader still has them after this process was killed in the middle of a
// call. The format stands in record.hpp; who reads it is the caller's business.
#include "record.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "builtin.hpp"

namespace chipdock::runtime {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "a lock in a shared file outlives us");

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/// The kernel's number, which debuggers and /proc show too.
uint64_t thread_number() {
  thread_local const auto number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  raise(CHIPDOCK_INVALID_ARGUMENT, "the record layer cannot use '", file, "': ", what,
        "; name a file that this version wrote, or one that does not exist in a folder that can be "
        "written");
}

void fill(RecordHeader& header) {
  std::memcpy(header.magic, kRecordMagic, sizeof(header.magic));
  header.version = 1;
  header.ring_size = kRecordRing;
  header.slot_count = kSlotCount;
  header.status_count = kRecordStatuses;
}

/// Makes the file under another name first: nobody sees it half written, and of two who make it at
/// one time the second finds the first one's.
void create(const std::string& file) {
  std::string name = file + ".XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) refuse(file, std::string("it cannot be made, ") + std::strerror(errno));
  RecordHeader header{};
  fill(header);
  const bool written = ftruncate(fd, sizeof(RecordFile)) == 0 &&
                       pwrite(fd, &header, sizeof(header), 0) == sizeof(header);
  const bool linked = written && (link(name.c_str(), file.c_str()) == 0 || errno == EEXIST);
  const std::string why = linked ? "" : std::strerror(errno);
  close(fd);
  unlink(name.c_str());
  if (!linked) refuse(file, "it cannot be made, " + why);
}

RecordFile* map(const std::string& file) {
  int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    create(file);
    fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  }
  if (fd < 0) refuse(file, std::strerror(errno));
  struct stat status{};
  fstat(fd, &status);
  void* address = MAP_FAILED;
  if (status.st_size == sizeof(RecordFile)) {
    address = mmap(nullptr, sizeof(RecordFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (address == MAP_FAILED) {
    refuse(file, "it is " + std::to_string(status.st_size) + " bytes long, a record of " +
                     std::to_string(kSlotCount) + " slots has " +
                     std::to_string(sizeof(RecordFile)));
  }
  RecordHeader wanted{};
  fill(wanted);
  if (std::memcmp(address, &wanted, offsetof(RecordHeader, next)) != 0) {
    munmap(address, sizeof(RecordFile));
    refuse(file, "its header is not that of a record of " + std::to_string(kSlotCount) + " slots");
  }
  return static_cast<RecordFile*>(address);
}

uint64_t packed(SlotId slot, int32_t status) {
  const struct {
    uint32_t slot;
    int32_t status;
  } pair{static_cast<uint32_t>(slot), status};
  uint64_t bits = 0;
  std::memcpy(&bits, &pair, sizeof(bits));
  return bits;
}

class Record : public Layer {
 public:
  explicit Record(const std::string& file) : file_(map(file)) {}
  ~Record() override { munmap(file_, sizeof(RecordFile)); }

  chipdock_status before(const Call& call, uint64_t& note) override {
    note = file_->header.next.fetch_add(1, std::memory_order_relaxed) + 1;
    RecordedCall& entry = file_->ring[(note - 1) % kRecordRing];
    // What follows must not be seen before it: sequentially consistent, as TSan knows no fences.
    entry.sequence.exchange(0, std::memory_order_seq_cst);
    entry.slot_and_status.store(packed(call.slot, INT_MIN), std::memory_order_relaxed);
    entry.start_ns.store(now_ns(), std::memory_order_relaxed);
    entry.thread.store(thread_number(), std::memory_order_relaxed);
    entry.sequence.store(note, std::memory_order_release);
    return CHIPDOCK_OK;
  }

  chipdock_status after(const Call& call, uint64_t note, chipdock_status status) override {
    RecordedCall& entry = file_->ring[(note - 1) % kRecordRing];
    // A call that took longer than the next 256 has lost its place to another.
    if (entry.sequence.load(std::memory_order_acquire) == note) {
      uint64_t running = packed(call.slot, INT_MIN);
      entry.slot_and_status.compare_exchange_strong(running, packed(call.slot, status),
                                                    std::memory_order_release);
    }
    const bool counted = status >= 0 && status < static_cast<int32_t>(kRecordStatuses);
    const size_t column = counted ? static_cast<size_t>(status) : kRecordStatuses - 1;
    file_->counts[static_cast<size_t>(call.slot)][column].fetch_add(1, std::memory_order_relaxed);
    return status;
  }

 private:
  RecordFile* const file_;
};

}  // namespace

std::unique_ptr<Layer> make_record(const std::string& file) {
  return std::make_unique<Record>(file);
}

}  // namespace chipdock::runtime
