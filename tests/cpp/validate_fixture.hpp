// SPDX-License-Identifier: Apache-2.0
// Pretended tables under the validate layer, ready for calls; shared by the tests of its checks.
#ifndef CHIPDOCK_TESTS_CPP_VALIDATE_FIXTURE_HPP_
#define CHIPDOCK_TESTS_CPP_VALIDATE_FIXTURE_HPP_

#include <memory>
#include <string>

#include "check.hpp"
#include "fakes.hpp"
#include "pretend.hpp"

namespace chipdock::check {

using namespace runtime;  // NOLINT: the whole header is about it.

template <class T>
T desc_of() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

/// Pretended tables under validate, with a device opened and one allocation of 128 bytes.
struct Setup {
  explicit Setup(const Tables& plain = pretend_tables())
      : tables(plain), stack(apply_layers(tables, "validate", {"acme", nullptr})) {
    device = open(0);
    memory = alloc(128);
  }
  ~Setup() { stack->finish(); }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  chipdock_device* open(int32_t index) {
    auto desc = desc_of<chipdock_device_open_desc>();
    desc.index = index;
    chipdock_device* opened = nullptr;
    status = tables.device.open(pretend_plugin(), &desc, &opened, &error);
    return opened;
  }
  chipdock_memory* alloc(uint64_t size) {
    auto desc = desc_of<chipdock_alloc_desc>();
    desc.size = size;
    return alloc(desc);
  }
  chipdock_memory* alloc(const chipdock_alloc_desc& desc) {
    chipdock_memory* made = nullptr;
    status = tables.memory.alloc(device, &desc, &made, &error);
    return made;
  }
  chipdock_stream* stream() {
    const auto desc = desc_of<chipdock_stream_desc>();
    chipdock_stream* made = nullptr;
    status = tables.stream.create(device, &desc, &made, &error);
    return made;
  }
  chipdock_event* event(uint32_t flags) {
    auto desc = desc_of<chipdock_event_desc>();
    desc.flags = flags;
    chipdock_event* made = nullptr;
    status = tables.event.create(device, &desc, &made, &error);
    return made;
  }
  /// "OK", or the text that the call left.
  std::string text(chipdock_status got) {
    const std::string result = got == CHIPDOCK_OK ? "OK" : error.text;
    error = ErrorRecord();
    return result;
  }
  std::string copy(const chipdock_place& source, const chipdock_place& target, uint64_t size,
                   chipdock_stream* queue = nullptr) {
    auto desc = desc_of<chipdock_copy_desc>();
    desc.source = &source;
    desc.target = &target;
    desc.size = size;
    desc.stream = queue;
    return text(tables.memory.copy(device, &desc, &error));
  }
  chipdock_place at(uint64_t offset) const {
    auto place = desc_of<chipdock_place>();
    place.memory = memory;
    place.offset = offset;
    return place;
  }
  chipdock_place host(void* address) const {
    auto place = desc_of<chipdock_place>();
    place.host = address;
    return place;
  }

  Tables tables;
  std::unique_ptr<LayerStack> stack;
  ErrorRecord error;
  chipdock_status status = CHIPDOCK_OK;
  chipdock_device* device = nullptr;
  chipdock_memory* memory = nullptr;
  char bytes[256] = {};
};

}  // namespace chipdock::check

#endif  // CHIPDOCK_TESTS_CPP_VALIDATE_FIXTURE_HPP_
