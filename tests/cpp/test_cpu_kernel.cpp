// SPDX-License-Identifier: Apache-2.0
// The adapter between the kernel table and the classes of plugins/cpu/ops, shown on Add.
#include <thread>

#include "test_cpu_support.hpp"

namespace {

using namespace chipdock::cpu_test;  // NOLINT(google-build-using-namespace)

/// Add with its descs in the open, for tests that bend one of them.
struct OpenLaunch {
  explicit OpenLaunch(Device& cpu) : add(cpu) {
    desc.input_count = 2;
    desc.output_count = 1;
    desc.inputs = inputs;
    desc.outputs = outputs;
    for (chipdock_tensor* tensor : {&a, &b, &y}) {
      *tensor = sized<chipdock_tensor>();
      tensor->dtype = kFloat;
      tensor->rank = 1;
      tensor->shape = &count;
    }
  }
  chipdock_status launch(Device& cpu) {
    return cpu.kernel->launch(add.instance, &desc, &cpu.error);
  }

  Add add;
  int64_t count = 4;
  chipdock_tensor a{}, b{}, y{};
  const chipdock_tensor* inputs[2] = {&a, &b};
  const chipdock_tensor* outputs[1] = {&y};
  chipdock_launch_desc desc = sized<chipdock_launch_desc>();
};

TEST(every_descriptor_is_complete) {
  Device cpu;
  const chipdock_kernel* const* kernels = nullptr;
  uint64_t count = 0;
  CHECK_EQ(cpu.kernel->list(cpu.handle, &kernels, &count, &cpu.error), CHIPDOCK_OK);
  CHECK(count > 0);
  for (uint64_t i = 0; i < count; ++i) {
    const chipdock_kernel& kernel = *kernels[i];
    CHECK_EQ(size_t{kernel.struct_size}, sizeof(kernel));
    CHECK(kernel.name[0] != '\0' && kernel.op[0] != '\0' && kernel.domain != nullptr);
    CHECK(kernel.since_version >= 1);
    CHECK(kernel.until_version == 0 || kernel.until_version >= kernel.since_version);
    for (uint32_t k = 0; k < kernel.dtype_rule_count; ++k) CHECK(kernel.dtype_rules[k]->count > 0);
  }
  const chipdock_kernel* const* again = nullptr;
  CHECK_EQ(cpu.kernel->list(cpu.handle, &again, &count, &cpu.error), CHIPDOCK_OK);
  CHECK(again == kernels);
}

TEST(supports_and_score_answer) {
  Device cpu;
  Add add(cpu);
  int32_t answer = -1;
  double score = -1;
  CHECK_EQ(cpu.kernel->supports(cpu.handle, add.kernel, &add.node, &answer, &cpu.error),
           CHIPDOCK_OK);
  CHECK_EQ(answer, int32_t{CHIPDOCK_SUPPORTS_YES});
  CHECK_EQ(cpu.kernel->score(cpu.handle, add.kernel, &add.node, &score, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.kernel->supports(cpu.handle, nullptr, &add.node, &answer, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(cpu.kernel->supports(cpu.handle, add.kernel, nullptr, &answer, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
}

TEST(launch_inline_on_device_memory_and_in_place) {
  Device cpu;
  Add add(cpu);
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2, 3});
  chipdock_memory* b = cpu.upload(std::vector<float>{10, 20, 30});
  CHECK_EQ(add.launch(a, b, a, 3), CHIPDOCK_OK);
  CHECK(cpu.download<float>(a, 3) == (std::vector<float>{11, 22, 33}));
  auto stats = sized<chipdock_device_stats>();
  CHECK_EQ(cpu.device->stats(cpu.handle, &stats, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(stats.launch_count, 1u);
  cpu.free(a);
  cpu.free(b);
}

TEST(launch_in_strict_mode_uses_the_second_mapping) {
  Device cpu({}, Options{{"strict", "1"}});
  Add add(cpu);
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2, 3});
  chipdock_memory* y = cpu.alloc(12);
  CHECK_EQ(add.launch(a, a, y, 3), CHIPDOCK_OK);
  CHECK(cpu.download<float>(y, 3) == (std::vector<float>{2, 4, 6}));
  cpu.free(a);
  cpu.free(y);
}

TEST(launch_takes_host_tensors_and_offsets) {
  Device cpu;
  OpenLaunch open(cpu);
  float host[4] = {1, 2, 3, 4};
  chipdock_memory* block = cpu.upload(std::vector<float>{9, 9, 9, 9, 5, 6, 7, 8});
  float out[4] = {};
  open.a.host = host;
  open.b.memory = block;
  open.b.offset = 16;
  open.y.host = out;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_OK);
  CHECK(out[0] == 6 && out[3] == 12);
  open.b.offset = 33;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  cpu.free(block);
}

TEST(launch_names_what_does_not_fit) {
  Device cpu;
  OpenLaunch open(cpu);
  float host[4] = {};
  open.a.host = open.b.host = open.y.host = host;
  open.desc.correlation_id = 12;
  open.b.dtype = kDouble;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  CHECK(cpu.text_has("Add input 1 has dtype float64"));
  CHECK_EQ(cpu.error.correlation_id, 12u);
  open.b.dtype = kFloat;
  open.y.layout = 3;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_UNSUPPORTED);
  open.y.layout = 0;
  const int64_t stride = 2;
  open.a.strides = &stride;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  open.a.strides = nullptr;
  open.a.rank = CHIPDOCK_MAX_RANK + 1;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  open.a.rank = 1;
  open.desc.input_count = 3;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  open.desc.input_count = 2;
  open.inputs[1] = nullptr;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  open.inputs[1] = &open.b;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_OK);
}

TEST(launch_honours_struct_sizes) {
  Device cpu;
  OpenLaunch open(cpu);
  float host[4] = {1, 1, 1, 1};
  open.a.host = open.b.host = open.y.host = host;
  struct {
    chipdock_launch_desc desc;
    uint64_t tail;
  } larger{open.desc, 0};
  larger.desc.struct_size = sizeof(larger);
  CHECK_EQ(cpu.kernel->launch(open.add.instance, &larger.desc, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(host[0], 2.0f);
  larger.tail = 1;
  CHECK_EQ(cpu.kernel->launch(open.add.instance, &larger.desc, &cpu.error), CHIPDOCK_UNSUPPORTED);
  open.a.struct_size = 8;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_INVALID_ARGUMENT);
  CHECK_EQ(host[0], 2.0f);
}

TEST(launch_accepts_empty_tensors_without_memory) {
  Device cpu;
  OpenLaunch open(cpu);
  open.count = 0;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_OK);
}

TEST(workspace_size_needs_no_memory) {
  Device cpu;
  OpenLaunch open(cpu);
  uint64_t size = 77;
  CHECK_EQ(cpu.kernel->workspace_size(open.add.instance, &open.desc, &size, &cpu.error),
           CHIPDOCK_OK);
  CHECK_EQ(size, 0u);
  auto info = sized<chipdock_prepack_info>();
  auto value = sized<chipdock_value>();
  value.dtype = kFloat;
  CHECK_EQ(cpu.kernel->prepack_size(open.add.instance, 1, &value, &info, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(info.size, 0u);
  CHECK_EQ(cpu.kernel->prepack_size(open.add.instance, 2, &value, &info, &cpu.error),
           CHIPDOCK_INVALID_ARGUMENT);
}

TEST(a_queued_launch_keeps_nothing_of_the_desc) {
  Device cpu;
  Add add(cpu);
  chipdock_memory* a = cpu.upload(std::vector<float>{1, 2, 3});
  chipdock_memory* b = cpu.upload(std::vector<float>{4, 5, 6});
  chipdock_memory* y = cpu.alloc(12);
  chipdock_stream* queue = cpu.make_stream();
  Gate gate;
  gate.close(cpu, queue);
  CHECK_EQ(add.launch(a, b, y, 3, queue), CHIPDOCK_OK);  // Its descs are gone now.
  gate.open();
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK(cpu.download<float>(y, 3) == (std::vector<float>{5, 7, 9}));
  cpu.destroy(queue);
  for (chipdock_memory* block : {a, b, y}) cpu.free(block);
}

TEST(a_queued_launch_reads_host_inputs_at_once_and_writes_host_outputs_before_it_returns) {
  Device cpu;
  OpenLaunch open(cpu);
  chipdock_stream* queue = cpu.make_stream();
  float host[4] = {1, 2, 3, 4};
  float out[4] = {};
  open.a.host = open.b.host = host;
  open.y.host = out;
  open.desc.stream = queue;
  CHECK_EQ(open.launch(cpu), CHIPDOCK_OK);
  CHECK_EQ(out[3], 8.0f);
  chipdock_memory* y = cpu.alloc(16);
  open.y.host = nullptr;
  open.y.memory = y;
  Gate gate;
  gate.close(cpu, queue);
  CHECK_EQ(open.launch(cpu), CHIPDOCK_OK);
  std::memset(host, 0, sizeof(host));
  gate.open();
  CHECK_EQ(cpu.stream->sync(queue, -1, &cpu.error), CHIPDOCK_OK);
  CHECK_EQ(cpu.download<float>(y, 4)[2], 6.0f);
  cpu.destroy(queue);
  cpu.free(y);
}

TEST(one_instance_is_launched_from_many_threads) {
  Device cpu(Options{{"threads", "4"}});
  Add add(cpu);
  constexpr int64_t kCount = 100'000;
  chipdock_memory* a = cpu.upload(std::vector<float>(kCount, 1.0f));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    chipdock_memory* y = cpu.alloc(kCount * sizeof(float));
    threads.emplace_back([&, y] {
      const int64_t shape = kCount;
      const chipdock_tensor in = Add::tensor(a, &shape);
      const chipdock_tensor out = Add::tensor(y, &shape);
      const chipdock_tensor* inputs[] = {&in, &in};
      const chipdock_tensor* outputs[] = {&out};
      auto desc = sized<chipdock_launch_desc>();
      desc.input_count = 2;
      desc.output_count = 1;
      desc.inputs = inputs;
      desc.outputs = outputs;
      for (int i = 0; i < 5; ++i) {
        right += cpu.kernel->launch(add.instance, &desc, nullptr) == CHIPDOCK_OK ? 1 : 0;
      }
      void* address = nullptr;
      cpu.memory->address(cpu.handle, y, &address, nullptr);
      for (int64_t i = 0; i < kCount; i += 1000) {
        right += static_cast<float*>(address)[i] == 2.0f ? 1 : 0;
      }
      cpu.memory->free(cpu.handle, y, nullptr);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(right.load(), 4 * (5 + 100));
  cpu.free(a);
}

}  // namespace
