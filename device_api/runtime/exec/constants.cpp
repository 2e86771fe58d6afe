// SPDX-License-Identifier: Apache-2.0
#include "exec/constants.hpp"

#include <cstring>

namespace chipdock::runtime {
namespace {

// Finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every output
// bit.
uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t rotate(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

}  // namespace

// Four independent lanes of multiply and rotate, each word in one lane, so that the memory is the
// limit.
ContentHash hash_bytes(const void* data, uint64_t size) {
  constexpr uint64_t kOdd[4] = {0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL, 0x165667b19e3779f9ULL,
                                0xd6e8feb86659fd93ULL};
  uint64_t lane[4] = {size, ~size, size * kOdd[0], size ^ kOdd[1]};
  const char* bytes = static_cast<const char*>(data);
  uint64_t left = size;
  for (; left >= 32; left -= 32, bytes += 32) {
    uint64_t word[4];
    std::memcpy(word, bytes, 32);
    for (int i = 0; i < 4; ++i) lane[i] = rotate((lane[i] ^ word[i]) * kOdd[i], 29);
  }
  if (left > 0) {
    uint64_t word[4] = {};
    std::memcpy(word, bytes, left);
    for (int i = 0; i < 4; ++i) lane[i] = rotate((lane[i] ^ word[i]) * kOdd[i], 31);
  }
  return {mix(lane[0] ^ rotate(lane[1], 17) ^ mix(lane[2])),
          mix(lane[3] ^ rotate(lane[2], 41) ^ mix(lane[1]))};
}

HashedConstant hash_constant(IrConstant constant) {
  HashedConstant hashed;
  hashed.hash = hash_bytes(constant.data, constant.bytes);
  hashed.constant = std::move(constant);
  return hashed;
}

// Leaked on purpose: buffers held by late Python objects may outlive any static destructor's turn.
WeightStore& WeightStore::instance() {
  static auto* store = new WeightStore;
  return *store;
}

std::shared_ptr<Buffer> WeightStore::find_or_make(Device& device, const HashedConstant& constant,
                                                  const std::string& layout, uint64_t size,
                                                  const std::function<void(Buffer&)>& make) {
  const Key key{device.handle(), constant.hash[0], constant.hash[1], constant.constant.bytes,
                layout};
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    it = it->second.expired() ? entries_.erase(it) : std::next(it);
  }
  if (const auto found = entries_.find(key); found != entries_.end()) {
    if (auto buffer = found->second.lock()) return buffer;
  }
  std::shared_ptr<Buffer> buffer = device.allocate(size, nullptr);
  make(*buffer);
  entries_[key] = buffer;
  return buffer;
}

}  // namespace chipdock::runtime
