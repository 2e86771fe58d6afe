// SPDX-License-Identifier: Apache-2.0
// The kernel table: the ABI in front, the classes of ops/ behind.
#include "kernel.hpp"

#include <memory>
#include <utility>

#include "blocked.hpp"
#include "device.hpp"
#include "kernel_list.hpp"
#include "launch.hpp"
#include "profiler.hpp"

namespace chipdock::plugin::cpu {
namespace {

const KernelDef& def_of(const chipdock_kernel* kernel) {
  kit::require(kernel != nullptr && kernel->state != nullptr, "kernel is NULL");
  return *static_cast<const KernelDef*>(kernel->state);
}

/// The modes only allow less exactness, which this plugin never takes; unknown ones may not. [BASE-7]
void check_math_mode(int32_t mode) {
  if (mode < CHIPDOCK_MATH_STRICT || mode > CHIPDOCK_MATH_BF16X3) {
    kit::fail(CHIPDOCK_UNSUPPORTED, "math_mode ", mode, " is unknown");
  }
}

chipdock_node read_node(const chipdock_node* given) {
  const auto node = kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_node, outputs), "node");
  check_math_mode(node.math_mode);
  return node;
}

chipdock_status list(chipdock_device* device, const chipdock_kernel* const** out_kernels,
                     uint64_t* out_count, chipdock_error* error) {
  return kit::guard(error, [&] {
    kit::require(out_kernels != nullptr && out_count != nullptr,
                 "out_kernels or out_count is NULL");
    const auto& kernels = deref(device, "device").instance.kernels->get();
    *out_kernels = kernels.data();
    *out_count = kernels.size();
  });
}

chipdock_status supports(chipdock_device* device, const chipdock_kernel* kernel,
                         const chipdock_node* node, int32_t* out_answer, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    int32_t& answer = deref(out_answer, "out_answer");
    const KernelDef& def = def_of(kernel);
    const chipdock_node checked = read_node(node);
    if (def.supports == nullptr) {
      answer = CHIPDOCK_SUPPORTS_YES;
      return;
    }
    try {
      answer = def.supports(kit::NodeView(checked));
    } catch (const kit::Failure& failure) {
      answer = CHIPDOCK_SUPPORTS_NO;
      chipdock_fail(error, failure.code(), failure.what());
    }
  });
}

chipdock_status score(chipdock_device* device, const chipdock_kernel* kernel,
                      const chipdock_node* node, double* out_score, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    double& value = deref(out_score, "out_score");
    const KernelDef& def = def_of(kernel);
    const chipdock_node checked = read_node(node);
    value = def.score != nullptr ? def.score(kit::NodeView(checked)) : 0.0;
  });
}

chipdock_status create(chipdock_device* device, const chipdock_kernel* kernel,
                       const chipdock_node* node, chipdock_kernel_instance** out_instance,
                       chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_kernel_instance*& out = deref(out_instance, "out_instance");
    def_of(kernel);
    out = new chipdock_kernel_instance(*device, *kernel, read_node(node));
  });
}

chipdock_status destroy(chipdock_kernel_instance* instance, chipdock_error* error) {
  return kit::guard(error, [&] { delete &deref(instance, "instance"); });
}

chipdock_status prepack_size(chipdock_kernel_instance* instance, uint32_t input,
                             const chipdock_value* value, chipdock_prepack_info* out_info,
                             chipdock_error* error) {
  return kit::guard(error, [&] {
    kit::require(input < deref(instance, "instance").input_count, instance->kernel.op, " has ",
                 instance->input_count, " inputs, asked was ", input);
    const auto checked =
        kit::read_struct(value, CHIPDOCK_CPU_FIRST(chipdock_value, constant_size), "value");
    chipdock_prepack_info info{};
    instance->body->prepack_info(input, checked, info);
    kit::write_struct(out_info, info, "out_info");
  });
}

class PrepackTask : public Task {
 public:
  PrepackTask(const chipdock_kernel_instance& instance, const chipdock_prepack_desc& desc)
      : Task(desc.correlation_id), instance_(instance), input_(desc.input) {
    kit::require(input_ < instance.input_count, instance.kernel.op, " has ", instance.input_count,
                 " inputs, asked was ", input_);
    source_ = bind_tensor(instance, input_, deref(desc.source, "source of prepack"));
    if (source_.rank > 0) shape_.assign(source_.shape, source_.shape + source_.rank);
    source_.shape = shape_.data();
    target_ = resolve(deref(desc.target, "target of prepack"), desc.target_offset, 0, "prepack");
  }
  void run(const RunContext& context) override {
    const ProfileScope scope(instance_.device, CHIPDOCK_PROFILER_KERNEL, "prepack",
                             correlation_id(), 0, context);
    instance_.body->prepack(input_, source_, target_);
  }

 private:
  const chipdock_kernel_instance& instance_;
  const uint32_t input_;
  std::vector<int64_t> shape_;
  Tensor source_;
  void* target_;
};

chipdock_status prepack(chipdock_kernel_instance* instance, const chipdock_prepack_desc* given,
                        chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(instance, "instance");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_prepack_desc, correlation_id), "prepack desc");
    auto task = std::make_shared<PrepackTask>(*instance, desc);
    if (desc.stream == nullptr) {
      task->run({});
    } else {
      desc.stream->push(std::move(task));
    }
  });
}

/// The desc itself if it has today's size, which costs nothing, or a checked copy in `room`.
const chipdock_launch_desc& read_launch_desc(const chipdock_launch_desc* given,
                                             chipdock_launch_desc& room) {
  if (given != nullptr && given->struct_size == sizeof(chipdock_launch_desc)) return *given;
  room =
      kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_launch_desc, allocator), "launch desc");
  return room;
}

chipdock_status workspace_size(chipdock_kernel_instance* instance,
                               const chipdock_launch_desc* given, uint64_t* out_size,
                               chipdock_error* error) {
  return kit::guard(error, [&] {
    uint64_t& size = deref(out_size, "out_size");
    chipdock_launch_desc room;
    const chipdock_launch_desc& desc = read_launch_desc(given, room);
    deref(instance, "instance").check_counts(desc);
    const BoundTensors bound(*instance, desc);
    Context context = make_context(*instance, desc);
    context.inputs = bound.inputs;
    context.outputs = bound.outputs;
    size = instance->body->workspace(context);
  });
}

void launch_inline(const chipdock_kernel_instance& instance, const chipdock_launch_desc& desc) {
  const BoundTensors bound(instance, desc);
  Context context = make_context(instance, desc);
  context.inputs = bound.inputs;
  context.outputs = bound.outputs;
  context.packed = bound.packed;
  context.extents = bound.extents;
  const ProfileScope scope(instance.device, CHIPDOCK_PROFILER_KERNEL, instance.kernel.name,
                           desc.correlation_id, 0, {});
  instance.device.launches.fetch_add(1, std::memory_order_relaxed);
  instance.body->run(context);
}

void launch_queued(const chipdock_kernel_instance& instance, const chipdock_launch_desc& desc) {
  chipdock_stream& stream = *desc.stream;
  const auto task = std::make_shared<LaunchTask>(instance, desc);
  const bool waits =
      task->writes_host() || (instance.kernel.flags & CHIPDOCK_KERNEL_SYNCHRONIZES) != 0;
  stream.push(task);
  if (!waits) return;
  stream.sync(-1);
  if (const CausePtr cause = stream.failure()) throw Poisoned{cause};
}

chipdock_status launch(chipdock_kernel_instance* instance, const chipdock_launch_desc* given,
                       chipdock_error* error) {
  CausePtr cause;
  const chipdock_status status = kit::guard(error, [&] {
    chipdock_launch_desc room;
    const chipdock_launch_desc& desc = read_launch_desc(given, room);
    deref(instance, "instance").check_counts(desc);
    check_math_mode(desc.math_mode);
    if (desc.stream == nullptr) {
      launch_inline(*instance, desc);
      return;
    }
    try {
      launch_queued(*instance, desc);
    } catch (const Poisoned& poisoned) {
      cause = poisoned.cause;
    }
  });
  if (cause != nullptr) return report(*cause, CHIPDOCK_SCOPE_STREAM, error);
  if (status != CHIPDOCK_OK && given != nullptr && error != nullptr &&
      error->struct_size >= offsetof(chipdock_error, text) &&
      given->struct_size >= CHIPDOCK_CPU_FIRST(chipdock_launch_desc, correlation_id)) {
    error->correlation_id = given->correlation_id;
  }
  return status;
}

chipdock_status layout_size(chipdock_device* device, const chipdock_value* value,
                            uint64_t* out_size, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    uint64_t& size = deref(out_size, "out_size");
    const auto checked =
        kit::read_struct(value, CHIPDOCK_CPU_FIRST(chipdock_value, constant_size), "value");
    kit::require(checked.rank >= 0 && (checked.rank == 0 || checked.dims != nullptr),
                 "the value's rank or dims are unknown");
    size = layout_bytes(checked.layout, checked.dtype, checked.rank, checked.dims);
  });
}

}  // namespace

const chipdock_kernel_api kKernelApi = {CHIPDOCK_TABLE(KERNEL, kernel),
                                        list,
                                        supports,
                                        score,
                                        create,
                                        destroy,
                                        prepack_size,
                                        prepack,
                                        workspace_size,
                                        launch,
                                        layout_size};

}  // namespace chipdock::plugin::cpu
