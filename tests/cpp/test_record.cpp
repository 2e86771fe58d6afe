// SPDX-License-Identifier: Apache-2.0
// The record layer: what its file holds after calls, beside other layers, from several threads and
// instances, and after the process died in a call.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "check.hpp"
#include "fakes.hpp"
#include "layers/record.hpp"
#include "pretend.hpp"

using namespace chipdock;
using namespace chipdock::runtime;
using check::failure_of;
using check::pretend_tables;

namespace {

/// A file name that is free, and the file's end.
struct Scratch {
  Scratch() : path("/tmp/chipdock_record_" + std::to_string(getpid())) { unlink(path.c_str()); }
  ~Scratch() { unlink(path.c_str()); }
  const std::string path;
};

struct Recorded {
  explicit Recorded(const std::string& layers)
      : tables(pretend_tables()), stack(apply_layers(tables, layers, {"acme", nullptr})) {}
  ~Recorded() { stack->finish(); }
  Tables tables;
  std::unique_ptr<LayerStack> stack;
};

struct Seen {
  uint64_t sequence;
  uint32_t slot;
  int32_t status;
  uint64_t start_ns;
  uint64_t thread;
};

/// The file as a reader of bytes finds it, with none of the runtime's types.
struct Reader {
  explicit Reader(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    bytes = text.str();
    CHECK_EQ(bytes.size(), 64u + 256u * 32u + kSlotCount * 32u * 8u);
  }
  template <class T>
  T at(size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
  uint64_t next() const { return at<uint64_t>(24); }
  Seen call(size_t index) const { return at<Seen>(64 + 32 * index); }
  uint64_t count(SlotId slot, size_t status) const {
    return at<uint64_t>(64 + 256 * 32 + (static_cast<size_t>(slot) * 32 + status) * 8);
  }
  std::string bytes;
};

auto* const kDevice = reinterpret_cast<chipdock_device*>(64);

chipdock_status trim(const Recorded& recorded) {
  return recorded.tables.memory.trim(kDevice, nullptr);
}

}  // namespace

TEST(a_file_that_is_absent_is_made_with_its_header) {
  const Scratch file;
  const Recorded recorded("record=" + file.path);
  const Reader reader(file.path);
  CHECK_EQ(reader.bytes.substr(0, 8), std::string("CDREC\0\0\1", 8));
  CHECK_EQ(reader.at<uint32_t>(8), 1u);
  CHECK_EQ(reader.at<uint32_t>(12), 256u);
  CHECK_EQ(reader.at<uint32_t>(16), static_cast<uint32_t>(kSlotCount));
  CHECK_EQ(reader.at<uint32_t>(20), 32u);
  CHECK_EQ(reader.bytes.find_first_not_of('\0', 24), std::string::npos);
}

TEST(a_call_leaves_slot_status_time_and_thread) {
  const Scratch file;
  const Recorded recorded("record=" + file.path + ",fault=memory.trim:2:BUSY");
  const auto before = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                            std::chrono::nanoseconds(1));
  CHECK_EQ(trim(recorded), CHIPDOCK_OK);
  CHECK_EQ(trim(recorded), CHIPDOCK_BUSY);
  const Reader reader(file.path);
  CHECK_EQ(reader.next(), 2u);
  CHECK_EQ(reader.call(0).sequence, 1u);
  CHECK_EQ(reader.call(1).sequence, 2u);
  CHECK_EQ(reader.call(2).sequence, 0u);
  CHECK_EQ(reader.call(0).slot, static_cast<uint32_t>(SlotId::memory_trim));
  CHECK_EQ(reader.call(0).status, CHIPDOCK_OK);
  CHECK_EQ(reader.call(1).status, CHIPDOCK_BUSY);
  CHECK(reader.call(0).start_ns >= before && reader.call(1).start_ns >= reader.call(0).start_ns);
  CHECK_EQ(reader.call(0).thread, static_cast<uint64_t>(gettid()));
  CHECK_EQ(reader.count(SlotId::memory_trim, CHIPDOCK_OK), 1u);
  CHECK_EQ(reader.count(SlotId::memory_trim, CHIPDOCK_BUSY), 1u);
}

TEST(it_is_outermost_wherever_it_stands) {
  const Scratch file;
  const Recorded recorded("fault=memory.trim:1,record=" + file.path);
  CHECK(trim(recorded) != CHIPDOCK_OK);
  CHECK_EQ(Reader(file.path).next(), 1u);
}

TEST(the_ring_keeps_the_last_256_calls_and_counts_keep_all) {
  const Scratch file;
  const Recorded recorded("record=" + file.path);
  for (int i = 0; i < 300; ++i) trim(recorded);
  const Reader reader(file.path);
  CHECK_EQ(reader.next(), 300u);
  CHECK_EQ(reader.call(43).sequence, 300u);
  CHECK_EQ(reader.call(44).sequence, 45u);
  CHECK_EQ(reader.count(SlotId::memory_trim, CHIPDOCK_OK), 300u);
}

TEST(a_status_outside_of_the_columns_counts_in_the_last) {
  const Scratch file;
  Recorded recorded("record=" + file.path);
  recorded.stack->inner().memory.trim = [](chipdock_device*, chipdock_error*) { return -7; };
  CHECK_EQ(trim(recorded), -7);
  recorded.stack->inner().memory.trim = [](chipdock_device*, chipdock_error*) { return 32; };
  CHECK_EQ(trim(recorded), 32);
  const Reader reader(file.path);
  CHECK_EQ(reader.count(SlotId::memory_trim, 31), 2u);
  CHECK_EQ(reader.call(0).status, -7);
}

TEST(instances_and_threads_share_one_file) {
  const Scratch file;
  const Recorded first("record=" + file.path);
  const Recorded second("record=" + file.path);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 250; ++i) trim(t % 2 == 0 ? first : second);
    });
  }
  for (auto& thread : threads) thread.join();
  const Reader reader(file.path);
  CHECK_EQ(reader.next(), 1000u);
  CHECK_EQ(reader.count(SlotId::memory_trim, CHIPDOCK_OK), 1000u);
  for (size_t i = 0; i < kRecordRing; ++i) {
    CHECK_EQ((reader.call(i).sequence - 1) % kRecordRing, i);
  }
}

TEST(a_killed_process_leaves_the_call_that_ran) {
  const Scratch file;
  Recorded recorded("record=" + file.path);
  recorded.stack->inner().memory.trim = [](chipdock_device*, chipdock_error*) {
    kill(getpid(), SIGKILL);
    return CHIPDOCK_OK + 0;
  };
  const pid_t child = fork();
  if (child == 0) _exit(trim(recorded));
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const Reader reader(file.path);
  CHECK_EQ(reader.next(), 1u);
  CHECK_EQ(reader.call(0).slot, static_cast<uint32_t>(SlotId::memory_trim));
  CHECK_EQ(reader.call(0).status, INT32_MIN);
  CHECK_EQ(reader.count(SlotId::memory_trim, CHIPDOCK_OK), 0u);
}

TEST(another_file_is_refused_and_left_alone) {
  const Scratch file;
  const auto failure = [&] { return failure_of([&] { const Recorded r("record=" + file.path); }); };
  std::ofstream(file.path) << "notes";
  CHECK_HAS(failure(), "it is 5 bytes long, a record of ");
  std::string bytes(sizeof(RecordFile), 'x');
  std::ofstream(file.path, std::ios::trunc) << bytes;
  CHECK_HAS(failure(), "its header is not that of a record of");
  std::ifstream in(file.path);
  CHECK_EQ(static_cast<char>(in.get()), 'x');
  CHECK_HAS(failure_of([] { const Recorded r("record=/no/such/folder/r"); }),
            "cannot use '/no/such/folder/r': it cannot be made");
  CHECK_HAS(failure_of([] { const Recorded r("record"); }), "lacks its value");
}
