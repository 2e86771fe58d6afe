// SPDX-License-Identifier: Apache-2.0
// The private layout as the kernel table shows it: its rules, its size, and Reorder there and back
// on a stream. What kernels compute in it is test_cpu_blocked*.cpp's matter.
#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

constexpr int64_t kShape[] = {1, 3, 2, 2};
constexpr uint32_t kBlocked = 1;

/// An instance of Reorder from one layout to the other, and its launch.
class Reorder {
 public:
  Reorder(Device& cpu, uint32_t from, uint32_t to) : cpu_(cpu) {
    const chipdock_kernel* const* kernels = nullptr;
    uint64_t count = 0;
    CHECK_EQ(cpu.kernel->list(cpu.handle, &kernels, &count, &cpu.error), CHIPDOCK_OK);
    for (uint64_t i = 0; i < count; ++i) {
      if (std::string(kernels[i]->op) == "Reorder") kernel = kernels[i];
    }
    if (kernel == nullptr) throw std::runtime_error("the plugin lists no Reorder");
    const uint32_t layouts[] = {from, to};
    for (int i = 0; i < 2; ++i) {
      values[i] = value(layouts[i]);
      tensors[i] = sized<chipdock_tensor>();
      tensors[i].dtype = kFloat;
      tensors[i].rank = 4;
      tensors[i].layout = layouts[i];
      tensors[i].shape = kShape;
    }
    node.since_version = 1;
    node.domain = "ai.chipdock";
    node.op = "Reorder";
    node.input_count = node.output_count = 1;
    node.inputs = &inputs_[0];
    node.outputs = &inputs_[1];
  }
  ~Reorder() {
    if (instance != nullptr) CHECK_EQ(cpu_.kernel->destroy(instance, &cpu_.error), CHIPDOCK_OK);
  }
  Reorder(const Reorder&) = delete;
  Reorder& operator=(const Reorder&) = delete;

  static chipdock_value value(uint32_t layout) {
    auto made = sized<chipdock_value>();
    made.dtype = kFloat;
    made.rank = 4;
    made.layout = layout;
    made.dims = kShape;
    return made;
  }
  int32_t answer() {
    int32_t out = -1;
    CHECK_EQ(cpu_.kernel->supports(cpu_.handle, kernel, &node, &out, &cpu_.error), CHIPDOCK_OK);
    return out;
  }
  chipdock_status create() {
    return cpu_.kernel->create(cpu_.handle, kernel, &node, &instance, &cpu_.error);
  }
  chipdock_status launch(chipdock_stream* queue) {
    const chipdock_tensor* in[] = {&tensors[0]};
    const chipdock_tensor* out[] = {&tensors[1]};
    auto desc = sized<chipdock_launch_desc>();
    desc.input_count = desc.output_count = 1;
    desc.inputs = in;
    desc.outputs = out;
    desc.stream = queue;
    return cpu_.kernel->launch(instance, &desc, &cpu_.error);
  }

  const chipdock_kernel* kernel = nullptr;
  chipdock_kernel_instance* instance = nullptr;
  chipdock_value values[2]{};
  chipdock_tensor tensors[2]{};
  chipdock_node node = sized<chipdock_node>();

 private:
  Device& cpu_;
  const chipdock_value* inputs_[2] = {&values[0], &values[1]};
};

chipdock_status size_of(Device& cpu, const chipdock_value& value, uint64_t* out) {
  return cpu.kernel->layout_size(cpu.handle, &value, out, &cpu.error);
}

/// Bytes of the blocked tensor, or 0 on a machine without blocks.
uint64_t blocked_size(Device& cpu) {
  uint64_t size = 0;
  const chipdock_status status = size_of(cpu, Reorder::value(kBlocked), &size);
  if (status == CHIPDOCK_UNSUPPORTED) return 0;
  CHECK_EQ(status, CHIPDOCK_OK);
  return size;
}

TEST(layout_size_counts_whole_blocks) {
  Device cpu;
  uint64_t size = 0;
  CHECK_EQ(size_of(cpu, Reorder::value(0), &size), CHIPDOCK_OK);
  CHECK_EQ(size, uint64_t{48});
  const uint64_t blocked = blocked_size(cpu);
  CHECK(blocked == 0 || blocked == 4 * 8 * 4 || blocked == 4 * 16 * 4);
  CHECK_EQ(size_of(cpu, Reorder::value(2), &size), CHIPDOCK_UNSUPPORTED);
  CHECK(cpu.text_has("layout 2"));
  chipdock_value unknown = Reorder::value(0);
  unknown.rank = -1;
  CHECK_EQ(size_of(cpu, unknown, &size), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.kernel->layout_size(cpu.handle, nullptr, &size, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
}

TEST(the_level_baseline_has_no_layout) {
  Device cpu({}, {{"isa", "baseline"}});
  CHECK_EQ(blocked_size(cpu), uint64_t{0});
  Reorder reorder(cpu, 0, kBlocked);
  CHECK_EQ(reorder.answer(), CHIPDOCK_SUPPORTS_NO);
  CHECK_EQ(reorder.create(), CHIPDOCK_INVALID_ARGUMENT);
}

TEST(a_stream_reorders_from_host_memory_and_back_into_it) {
  for (const char* strict : {"0", "1"}) {
    Device cpu({}, {{"strict", strict}});
    const uint64_t size = blocked_size(cpu);
    if (size == 0) return;  // Nothing to show: layout_size said so above.
    Reorder forth(cpu, 0, kBlocked), back(cpu, kBlocked, 0);
    for (Reorder* each : {&forth, &back}) {
      CHECK_EQ(each->answer(), CHIPDOCK_SUPPORTS_YES);
      CHECK_EQ(each->create(), CHIPDOCK_OK);
    }
    chipdock_memory* block = cpu.alloc(size);
    chipdock_stream* queue = cpu.make_stream();
    std::vector<float> x(12), y(12);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 1;
    const std::vector<float> expected = x;
    forth.tensors[0].host = x.data();
    forth.tensors[1].memory = block;
    Gate gate;
    gate.close(cpu, queue);
    CHECK_EQ(forth.launch(queue), CHIPDOCK_OK);
    x.assign(12, 0);  // Read before launch returned. [KRN-7]
    gate.open();
    back.tensors[0].memory = block;
    back.tensors[1].host = y.data();
    CHECK_EQ(back.launch(queue), CHIPDOCK_OK);
    CHECK(y == expected);
    const std::vector<float> stored = cpu.download<float>(block, size / sizeof(float));
    const size_t lanes = stored.size() / 4;
    CHECK(stored[0] == 1 && stored[1] == 5 && stored[2] == 9 && stored[3] == 0);
    CHECK(stored[lanes] == 2 && stored[lanes + 1] == 6 && stored[2 * lanes - 1] == 0);
    cpu.destroy(queue);
    cpu.free(block);
  }
}

TEST(a_launch_in_another_layout_than_the_node_had_is_refused) {
  Device cpu;
  if (blocked_size(cpu) == 0) return;
  Reorder reorder(cpu, 0, kBlocked);
  CHECK_EQ(reorder.create(), CHIPDOCK_OK);
  float host[4 * 16] = {};
  reorder.tensors[0].host = reorder.tensors[1].host = host;
  reorder.tensors[0].layout = kBlocked;
  CHECK_EQ(reorder.launch(nullptr), CHIPDOCK_UNSUPPORTED);
  CHECK(cpu.text_has("Reorder input 0 has layout 1, the instance was made for 0"));
}

}  // namespace
