// SPDX-License-Identifier: Apache-2.0
// What the test_cpu_* files share: the plugin's raw tables through dlopen, with no runtime in
// between, and short words for descs. CHIPDOCK_TEST_CPU_PLUGIN names the library.
#ifndef CHIPDOCK_TESTS_CPP_TEST_CPU_SUPPORT_HPP_
#define CHIPDOCK_TESTS_CPP_TEST_CPU_SUPPORT_HPP_

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "chipdock/chipdock.h"

namespace chipdock::cpu_test {

template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

using Options = std::vector<std::pair<std::string, std::string>>;

/// Options as the ABI wants them; lives as long as the desc that points into it.
class OptionList {
 public:
  explicit OptionList(const Options& options) : texts_(options) {
    for (const auto& [key, value] : texts_) {
      items_.push_back({sizeof(chipdock_option), 0, key.c_str(), value.c_str()});
    }
    for (const auto& item : items_) pointers_.push_back(&item);
  }
  const chipdock_option* const* data() const { return pointers_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(pointers_.size()); }

 private:
  Options texts_;
  std::vector<chipdock_option> items_;
  std::vector<const chipdock_option*> pointers_;
};

/// One instance of the plugin with its tables; shut down at the end of the test.
class Cpu {
 public:
  explicit Cpu(const Options& options = {}) {
    host.struct_size = sizeof(host);
    host.abi_version = CHIPDOCK_ABI_VERSION;
    host.context = this;
    host.report = [](void* context, chipdock_device*, chipdock_stream*,
                     const chipdock_error* error) {
      static_cast<Cpu*>(context)->reported.store(error->correlation_id);
    };
    status = query(options);
    if (status != CHIPDOCK_OK) return;
    device = table<chipdock_device_api>("chipdock.device", 1, 0);
    memory = table<chipdock_memory_api>("chipdock.memory", 1, 0);
    stream = table<chipdock_stream_api>("chipdock.stream", 1, 0);
    event = table<chipdock_event_api>("chipdock.event", 1, 0);
    kernel = table<chipdock_kernel_api>("chipdock.kernel", 1, 0);
    graph = table<chipdock_graph_api>("chipdock.graph", 0, 1);
    compile = table<chipdock_compile_api>("chipdock.compile", 0, 1);
    profiler = table<chipdock_profiler_api>("chipdock.profiler", 0, 1);
  }
  ~Cpu() {
    if (plugin != nullptr) CHECK_EQ(plugin->shutdown(plugin, &error), CHIPDOCK_OK);
  }
  Cpu(const Cpu&) = delete;
  Cpu& operator=(const Cpu&) = delete;

  static chipdock_plugin_query_fn entry() {
    const char* path = std::getenv("CHIPDOCK_TEST_CPU_PLUGIN");
    if (path == nullptr) throw std::runtime_error("CHIPDOCK_TEST_CPU_PLUGIN is not set");
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<chipdock_plugin_query_fn>(dlsym(library, CHIPDOCK_QUERY_SYMBOL));
  }
  chipdock_status query(const Options& options) {
    const OptionList list(options);
    auto desc = sized<chipdock_query_desc>();
    desc.abi_min = desc.abi_max = CHIPDOCK_ABI_VERSION;
    desc.option_count = list.size();
    desc.options = list.data();
    return entry()(&host, &desc, &plugin, &error);
  }
  template <class T>
  const T* table(const char* name, uint32_t major, uint32_t minor) {
    const void* found = nullptr;
    CHECK_EQ(plugin->get_table(plugin, name, CHIPDOCK_VERSION(major, minor), &found, &error),
             CHIPDOCK_OK);
    return static_cast<const T*>(found);
  }
  std::string text() const { return error.text; }
  bool text_has(const char* part) const { return text().find(part) != std::string::npos; }

  chipdock_error error = sized<chipdock_error>();
  chipdock_host host{};
  chipdock_plugin* plugin = nullptr;
  chipdock_status status = CHIPDOCK_OK;
  std::atomic<uint64_t> reported{0};  ///< Correlation id of the last asynchronous error.
  const chipdock_device_api* device = nullptr;
  const chipdock_memory_api* memory = nullptr;
  const chipdock_stream_api* stream = nullptr;
  const chipdock_event_api* event = nullptr;
  const chipdock_kernel_api* kernel = nullptr;
  const chipdock_graph_api* graph = nullptr;
  const chipdock_compile_api* compile = nullptr;
  const chipdock_profiler_api* profiler = nullptr;
};

/// A plugin with one opened device, and calls that check their own status.
class Device : public Cpu {
 public:
  explicit Device(const Options& open_options = {}, const Options& query_options = {})
      : Cpu(query_options) {
    if (status != CHIPDOCK_OK) throw std::runtime_error(text());
    open_status = open(0, open_options, &handle);
  }
  ~Device() { close(); }
  void close() {
    if (handle != nullptr) CHECK_EQ(device->close(handle, &error), CHIPDOCK_OK);
    handle = nullptr;
  }
  chipdock_status open(int32_t index, const Options& options, chipdock_device** out) {
    const OptionList list(options);
    auto desc = sized<chipdock_device_open_desc>();
    desc.index = index;
    desc.option_count = list.size();
    desc.options = list.data();
    return device->open(plugin, &desc, out, &error);
  }

  chipdock_status try_alloc(uint64_t size, chipdock_memory** out, uint32_t usage = 0) {
    auto desc = sized<chipdock_alloc_desc>();
    desc.size = size;
    desc.usage = usage;
    return memory->alloc(handle, &desc, out, &error);
  }
  chipdock_memory* alloc(uint64_t size, uint32_t usage = 0) {
    chipdock_memory* out = nullptr;
    CHECK_EQ(try_alloc(size, &out, usage), CHIPDOCK_OK);
    return out;
  }
  void free(chipdock_memory* block) { CHECK_EQ(memory->free(handle, block, &error), CHIPDOCK_OK); }

  static chipdock_place at(chipdock_memory* block, uint64_t offset = 0) {
    auto place = sized<chipdock_place>();
    place.memory = block;
    place.offset = offset;
    return place;
  }
  static chipdock_place at(void* host) {
    auto place = sized<chipdock_place>();
    place.host = host;
    return place;
  }
  chipdock_status copy(chipdock_place from, chipdock_place to, uint64_t size,
                       chipdock_stream* queue = nullptr, uint64_t correlation_id = 0) {
    auto desc = sized<chipdock_copy_desc>();
    desc.source = &from;
    desc.target = &to;
    desc.size = size;
    desc.stream = queue;
    desc.correlation_id = correlation_id;
    return memory->copy(handle, &desc, &error);
  }
  template <class T>
  chipdock_memory* upload(const std::vector<T>& values) {
    chipdock_memory* block = alloc(values.size() * sizeof(T));
    CHECK_EQ(copy(at(const_cast<T*>(values.data())), at(block), values.size() * sizeof(T)),
             CHIPDOCK_OK);
    return block;
  }
  template <class T>
  std::vector<T> download(chipdock_memory* block, size_t count, uint64_t offset = 0) {
    std::vector<T> values(count);
    CHECK_EQ(copy(at(block, offset), at(values.data()), count * sizeof(T)), CHIPDOCK_OK);
    return values;
  }

  chipdock_stream* make_stream() {
    auto desc = sized<chipdock_stream_desc>();
    chipdock_stream* out = nullptr;
    CHECK_EQ(stream->create(handle, &desc, &out, &error), CHIPDOCK_OK);
    return out;
  }
  void destroy(chipdock_stream* queue) { CHECK_EQ(stream->destroy(queue, &error), CHIPDOCK_OK); }
  chipdock_event* make_event(uint32_t flags = 0) {
    auto desc = sized<chipdock_event_desc>();
    desc.flags = flags;
    chipdock_event* out = nullptr;
    CHECK_EQ(event->create(handle, &desc, &out, &error), CHIPDOCK_OK);
    return out;
  }
  void destroy(chipdock_event* point) { CHECK_EQ(event->destroy(point, &error), CHIPDOCK_OK); }
  chipdock_status host_function(chipdock_stream* queue, void (*function)(void*, chipdock_status),
                                void* context, uint64_t correlation_id = 0) {
    auto desc = sized<chipdock_host_function_desc>();
    desc.function = function;
    desc.context = context;
    desc.correlation_id = correlation_id;
    return stream->host_function(queue, &desc, &error);
  }
  chipdock_status value(chipdock_stream* queue, int32_t operation, chipdock_memory* block,
                        uint64_t bits, uint64_t offset = 0) {
    auto desc = sized<chipdock_value_desc>();
    desc.operation = operation;
    desc.memory = block;
    desc.offset = offset;
    desc.value = bits;
    return stream->value(queue, &desc, &error);
  }

  chipdock_device* handle = nullptr;
  chipdock_status open_status = CHIPDOCK_OK;
};

/// Holds a stream up until open() is called, so that tests need no sleeps.
class Gate {
 public:
  void close(Device& cpu, chipdock_stream* queue) {
    CHECK_EQ(
        cpu.host_function(
            queue, [](void* gate, chipdock_status) { static_cast<Gate*>(gate)->future_.wait(); },
            this),
        CHIPDOCK_OK);
  }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

inline constexpr chipdock_dtype kFloat = {CHIPDOCK_DTYPE_FLOAT, 32, 1};
inline constexpr chipdock_dtype kDouble = {CHIPDOCK_DTYPE_FLOAT, 64, 1};

/// An instance of Add over float32 vectors.
class Add {
 public:
  explicit Add(Device& cpu) : cpu_(cpu) {
    const chipdock_kernel* const* kernels = nullptr;
    uint64_t count = 0;
    CHECK_EQ(cpu.kernel->list(cpu.handle, &kernels, &count, &cpu.error), CHIPDOCK_OK);
    for (uint64_t i = 0; i < count; ++i) {
      // Kernels with layout rules are for nodes that have such a layout.
      if (std::string(kernels[i]->op) == "Add" && kernels[i]->domain[0] == '\0' &&
          kernels[i]->layout_rule_count == 0) {
        kernel = kernels[i];
      }
    }
    if (kernel == nullptr) throw std::runtime_error("the plugin lists no Add");
    value_.dtype = kFloat;
    value_.rank = 1;
    value_.dims = &unknown_;
    node.since_version = kernel->since_version;
    node.domain = "";
    node.op = "Add";
    node.input_count = 2;
    node.output_count = 1;
    node.inputs = values_;
    node.outputs = values_;
    CHECK_EQ(cpu.kernel->create(cpu.handle, kernel, &node, &instance, &cpu.error), CHIPDOCK_OK);
  }
  ~Add() { CHECK_EQ(cpu_.kernel->destroy(instance, &cpu_.error), CHIPDOCK_OK); }
  Add(const Add&) = delete;
  Add& operator=(const Add&) = delete;

  static chipdock_tensor tensor(chipdock_memory* block, const int64_t* shape) {
    auto tensor = sized<chipdock_tensor>();
    tensor.dtype = kFloat;
    tensor.rank = 1;
    tensor.shape = shape;
    tensor.memory = block;
    return tensor;
  }
  /// y = a + b over `count` elements. All descs are gone when it returns.
  chipdock_status launch(chipdock_memory* a, chipdock_memory* b, chipdock_memory* y, int64_t count,
                         chipdock_stream* queue = nullptr, uint64_t correlation_id = 0,
                         int64_t count_b = -1) {
    const int64_t shape = count;
    const int64_t shape_b = count_b < 0 ? count : count_b;
    const chipdock_tensor ta = tensor(a, &shape);
    const chipdock_tensor tb = tensor(b, &shape_b);
    const chipdock_tensor ty = tensor(y, &shape);
    const chipdock_tensor* inputs[] = {&ta, &tb};
    const chipdock_tensor* outputs[] = {&ty};
    auto desc = sized<chipdock_launch_desc>();
    desc.input_count = 2;
    desc.output_count = 1;
    desc.inputs = inputs;
    desc.outputs = outputs;
    desc.stream = queue;
    desc.correlation_id = correlation_id;
    return cpu_.kernel->launch(instance, &desc, &cpu_.error);
  }

  const chipdock_kernel* kernel = nullptr;
  chipdock_kernel_instance* instance = nullptr;
  chipdock_node node = sized<chipdock_node>();

 private:
  Device& cpu_;
  const int64_t unknown_ = -1;
  chipdock_value value_ = sized<chipdock_value>();
  const chipdock_value* values_[2] = {&value_, &value_};
};

}  // namespace chipdock::cpu_test

#endif  // CHIPDOCK_TESTS_CPP_TEST_CPU_SUPPORT_HPP_
