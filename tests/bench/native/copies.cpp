// SPDX-License-Identifier: Apache-2.0
// Copies of the host to, from and inside a device, in turns with memcpy between the same kinds of
// memory: pages that were touched before, and source and target that are not the same.
//   copies PLUGIN BYTES ROUNDS CALLS
#include <cstdlib>
#include <cstring>
#include <memory>

#include "device.hpp"
#include "turns.hpp"

namespace {

using namespace chipdock::runtime;  // NOLINT(google-build-using-namespace)
using chipdock::bench::Runner;
using chipdock::bench::take_turns;

Place at(const Buffer& buffer) {
  return {buffer.memory(), buffer.offset(), nullptr, buffer.device().get(), false};
}

Place at(void* host) { return {nullptr, 0, host, nullptr, false}; }

Runner copier(Device& device, const Place& source, const Place& target, uint64_t bytes) {
  return {"chipdock",
          [&device, source, target, bytes](uint64_t calls) {
            for (uint64_t i = 0; i < calls; ++i) device.copy(source, target, bytes, nullptr);
          },
          {}};
}

Runner plain(void* target, const void* source, uint64_t bytes) {
  return {"memcpy",
          [target, source, bytes](uint64_t calls) {
            for (uint64_t i = 0; i < calls; ++i) {
              std::memcpy(target, source, bytes);
              asm volatile("" : : "r"(target) : "memory");
            }
          },
          {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: copies PLUGIN BYTES ROUNDS CALLS\n");
    return 2;
  }
  const uint64_t bytes = std::strtoull(argv[2], nullptr, 10);
  const int rounds = std::atoi(argv[3]);
  const uint64_t calls = std::strtoull(argv[4], nullptr, 10);
  try {
    const auto device = Device::open(Plugin::load(argv[1], {"none", {}}), 0, {});
    const auto first = device->allocate(bytes, nullptr);
    const auto second = device->allocate(bytes, nullptr);
    struct Free {
      void operator()(void* p) const { std::free(p); }
    };
    const std::unique_ptr<void, Free> from(std::aligned_alloc(4096, bytes));
    const std::unique_ptr<void, Free> to(std::aligned_alloc(4096, bytes));
    std::memset(from.get(), 1, bytes);
    std::memset(to.get(), 2, bytes);
    device->copy(at(from.get()), at(*first), bytes, nullptr);
    device->copy(at(from.get()), at(*second), bytes, nullptr);
    const Runner peer = plain(to.get(), from.get(), bytes);
    const auto turn = [&](const char* what, const Place& source, const Place& target) {
      take_turns(what, {peer, copier(*device, source, target, bytes)}, rounds, calls);
    };
    turn("H2D", at(from.get()), at(*first));
    turn("D2H", at(*first), at(to.get()));
    turn("D2D", at(*first), at(*second));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  shutdown_all_plugins();
  return 0;
}
