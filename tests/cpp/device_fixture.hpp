// SPDX-License-Identifier: Apache-2.0
// What the tests of devices, streams, graphs and the allocator share: loading plugins from the
// folder of the fakes, the cpu plugin by CHIPDOCK_TEST_CPU_PLUGIN, kernels of the work plugin, and
// a gate for streams.
#ifndef CHIPDOCK_TESTS_CPP_DEVICE_FIXTURE_HPP_
#define CHIPDOCK_TESTS_CPP_DEVICE_FIXTURE_HPP_

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "allocator.hpp"
#include "device.hpp"
#include "graph.hpp"
#include "plugin.hpp"
#include "stream.hpp"

namespace chipdock::check {

using namespace chipdock::runtime;

inline std::shared_ptr<Plugin> load_plugin(const std::string& name) {
  const char* cpu = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  const char* folder = std::getenv("CHIPDOCK_TEST_LIBDIR");
  if (name == "cpu") return Plugin::load(cpu != nullptr ? cpu : "", {"none", {}});
  return Plugin::load(std::string(folder != nullptr ? folder : ".") + "/lib" + name + ".so",
                      {"none", {}});
}

inline std::shared_ptr<Device> open_device(const std::string& name, int32_t index = 0) {
  return Device::open(load_plugin(name), index, {});
}

/// Plugins every test of behaviour runs over: emulated streams, and native ones where the cpu
/// plugin is built.
inline std::vector<std::string> plugins_under_test() {
  std::vector<std::string> names = {"work"};
  const char* cpu = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  if (cpu != nullptr && *cpu != '\0') names.push_back("cpu");
  return names;
}

inline Place at(const Buffer& buffer, uint64_t offset = 0) {
  return {buffer.memory(), buffer.offset() + offset, nullptr, buffer.device().get(), false};
}

inline Place host(const void* address) {
  return {nullptr, 0, const_cast<void*>(address), nullptr, false};
}

/// Holds a stream up: a host function that returns when open() was called.
class Gate {
 public:
  void close(Stream& stream) {
    stream.host_function([state = state_](chipdock_status) {
      std::unique_lock<std::mutex> lock(state->mutex);
      state->entered = true;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->open; });
    });
  }
  void wait_entered() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->entered; });
  }
  void open() {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool entered = false;
    bool open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// A kernel of the work plugin.
class Kernel {
 public:
  Kernel(std::shared_ptr<Device> device, const char* op) : device_(std::move(device)), op_(op) {
    const chipdock_kernel_api& api = device_->tables().kernel;
    const chipdock_kernel* const* list = nullptr;
    uint64_t count = 0;
    ErrorRecord error;
    runtime::check(api.list(device_->handle(), &list, &count, &error), error, "list");
    chipdock_node node{};
    node.struct_size = sizeof(node);
    node.op = op;
    node.domain = "test";
    for (uint64_t i = 0; i < count; ++i) {
      if (std::string(list[i]->op) == op) {
        runtime::check(api.create(device_->handle(), list[i], &node, &instance_, &error), error,
                       "create");
      }
    }
  }
  ~Kernel() {
    ErrorRecord error;
    device_->tables().kernel.destroy(instance_, &error);
  }

  /// int64 vectors; every desc and tensor is gone when this returns.
  void launch(Stream* stream, const Buffer* input, const int64_t* scalar, const Buffer* output,
              int64_t count, int64_t* host_output = nullptr) {
    const int64_t shape[] = {count};
    const int64_t one[] = {1};
    chipdock_tensor tensors[4];
    for (auto& tensor : tensors) {
      tensor = {};
      tensor.struct_size = sizeof(chipdock_tensor);
      tensor.dtype = kit::kInt64;
      tensor.rank = 1;
      tensor.shape = shape;
    }
    if (input != nullptr) {
      tensors[0].memory = input->memory();
      tensors[0].offset = input->offset();
    }
    int64_t copy = scalar != nullptr ? *scalar : 0;
    tensors[1].host = &copy;
    tensors[1].shape = one;
    if (output != nullptr) {
      tensors[2].memory = output->memory();
      tensors[2].offset = output->offset();
    }
    tensors[3].host = host_output;
    tensors[3].shape = one;
    const chipdock_tensor* inputs[] = {&tensors[0], &tensors[1]};
    const chipdock_tensor* outputs[] = {host_output != nullptr ? &tensors[3] : &tensors[2]};
    chipdock_launch_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.inputs = inputs;
    desc.input_count = 2;
    desc.outputs = outputs;
    desc.output_count = 1;
    device_->launch(instance_, desc, stream, op_);
    copy = -1;
  }

 private:
  std::shared_ptr<Device> device_;
  const char* op_;
  chipdock_kernel_instance* instance_ = nullptr;
};

/// The error that `body` throws, or one with code OK.
template <class Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(CHIPDOCK_OK, "no error came");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace chipdock::check

#endif  // CHIPDOCK_TESTS_CPP_DEVICE_FIXTURE_HPP_
