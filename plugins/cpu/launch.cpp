// SPDX-License-Identifier: Apache-2.0
// Launches on streams, and the words for tensors that do not fit.
#include "launch.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "profiler.hpp"

namespace chipdock::plugin::cpu {

void bad_tensor(const chipdock_kernel_instance& instance, uint32_t argument,
                const chipdock_tensor& tensor) {
  const bool is_input = argument < instance.input_count;
  const std::string where = std::string(instance.kernel.op) + (is_input ? " input " : " output ") +
                            std::to_string(is_input ? argument : argument - instance.input_count);
  const chipdock_dtype expected = instance.dtypes[argument];
  kit::require(expected.bits != 0, where,
               " is given, the node this instance was made for has none");
  kit::require(same(tensor.dtype, expected), where, " has dtype ", kit::dtype_name(tensor.dtype),
               ", the instance was made for ", kit::dtype_name(expected));
  const uint32_t layout = instance.layouts[argument];
  if (tensor.layout != layout) {
    kit::fail(CHIPDOCK_UNSUPPORTED, where, " has layout ", tensor.layout,
              ", the instance was made for ", layout);
  }
  kit::require(tensor.strides == nullptr, where,
               " has strides; this kernel takes dense tensors [KRN-8]");
  kit::require(tensor.rank >= 0 && tensor.rank <= CHIPDOCK_MAX_RANK, where, " has rank ",
               tensor.rank, ", allowed are 0 to ", CHIPDOCK_MAX_RANK);
  kit::require(tensor.shape != nullptr || tensor.rank == 0, where, " has rank ", tensor.rank,
               " and no shape");
  kit::fail(CHIPDOCK_INVALID_ARGUMENT, where, " starts behind the end of its memory, at ",
            tensor.offset, " of ", tensor.memory->size, " bytes [MEM-3]");
}

LaunchTask::LaunchTask(const chipdock_kernel_instance& instance, const chipdock_launch_desc& desc)
    : Task(desc.correlation_id), instance_(instance), context_(make_context(instance, desc)) {
  const BoundTensors bound(instance, desc);
  const uint32_t count = desc.input_count + desc.output_count;
  tensors_.resize(count);
  given_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const Tensor* tensor = bound.inputs[i];  // Outputs follow inputs.
    if (tensor == nullptr) continue;
    given_[i] = true;
    tensors_[i] = *tensor;
    shapes_.insert(shapes_.end(), tensor->shape, tensor->shape + tensor->rank);
    const bool on_host = i < desc.input_count
                             ? desc.inputs[i]->memory == nullptr
                             : desc.outputs[i - desc.input_count]->memory == nullptr;
    if (!on_host || tensor->data == nullptr) continue;
    if (i >= desc.input_count) {
      writes_host_ = true;
      continue;
    }
    // Host inputs are read before launch returns. [KRN-7]
    const uint64_t bytes = tensor->bytes();
    std::shared_ptr<char[]> copy(new char[bytes > 0 ? bytes : 1]);
    std::memcpy(copy.get(), tensor->data, bytes);
    tensors_[i].data = copy.get();
    host_inputs_.push_back(std::move(copy));
  }
  if (bound.packed != nullptr) packed_.assign(bound.packed, bound.packed + desc.input_count);
  if (bound.extents != nullptr) extents_.assign(bound.extents, bound.extents + desc.output_count);
  point();
}

LaunchTask::LaunchTask(const LaunchTask& other)
    : Task(other.correlation_id()),
      instance_(other.instance_),
      context_(other.context_),
      tensors_(other.tensors_),
      given_(other.given_),
      shapes_(other.shapes_),
      host_inputs_(other.host_inputs_),
      packed_(other.packed_),
      extents_(other.extents_),
      writes_host_(other.writes_host_) {
  point();
}

/// Makes all inner pointers lead to this object's own copies.
void LaunchTask::point() {
  pointers_.assign(tensors_.size(), nullptr);
  const int64_t* shape = shapes_.data();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!given_[i]) continue;
    tensors_[i].shape = shape;
    shape += tensors_[i].rank;
    pointers_[i] = &tensors_[i];
  }
  context_.inputs = pointers_.data();
  context_.outputs = pointers_.data() + context_.input_count;
  context_.packed = packed_.empty() ? nullptr : packed_.data();
  context_.extents = extents_.empty() ? nullptr : extents_.data();
}

void LaunchTask::run(const RunContext& context) {
  const ProfileScope scope(instance_.device, CHIPDOCK_PROFILER_KERNEL, instance_.kernel.name,
                           correlation_id(), 0, context);
  instance_.device.launches.fetch_add(1, std::memory_order_relaxed);
  instance_.body->run(context_);
}

const char* LaunchTask::uncapturable() const {
  if (writes_host_) return "launch of a kernel with an output in host memory";
  const bool capturable = (instance_.kernel.flags & CHIPDOCK_KERNEL_CAPTURABLE) != 0;
  return capturable ? nullptr : "launch of a kernel that is not CAPTURABLE";
}

TaskPtr LaunchTask::changed(const chipdock_graph_change& change) const {
  auto copy = std::make_shared<LaunchTask>(*this);
  if (change.kind == CHIPDOCK_GRAPH_CHANGE_SEED) {
    copy->context_.seed_offset = change.value;
    return copy;
  }
  if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY) {
    kit::fail(CHIPDOCK_UNSUPPORTED,
              "a captured launch has memory and a seed offset to change, asked was kind ",
              change.kind);
  }
  const int64_t index = change.argument >= 0 ? int64_t{change.argument}
                                             : int64_t{context_.input_count} - 1 - change.argument;
  const bool known = (change.argument >= 0 ? index < context_.input_count
                                           : index < static_cast<int64_t>(tensors_.size())) &&
                     given_[static_cast<size_t>(index)];
  kit::require(known, "the captured launch ", correlation_id(), " of ", instance_.kernel.op,
               " has no argument ", change.argument);
  Tensor& tensor = copy->tensors_[static_cast<size_t>(index)];
  if (change.memory != nullptr) {
    tensor.data = resolve(*change.memory, change.offset, tensor.bytes(), "change of a launch");
  } else {
    kit::require(change.host != nullptr && change.argument >= 0,
                 "a change of a launch needs memory, or host memory for an input");
    const uint64_t bytes = tensor.bytes();
    std::shared_ptr<char[]> bits(new char[bytes > 0 ? bytes : 1]);
    std::memcpy(bits.get(), change.host, bytes);
    tensor.data = bits.get();
    copy->host_inputs_.push_back(std::move(bits));
  }
  return copy;
}

}  // namespace chipdock::plugin::cpu

chipdock_kernel_instance::chipdock_kernel_instance(chipdock_device& device_,
                                                   const chipdock_kernel& kernel_,
                                                   const chipdock_node& node)
    : device(device_),
      kernel(kernel_),
      input_count(node.input_count),
      output_count(node.output_count) {
  const chipdock::kit::NodeView view(node);
  for (uint32_t i = 0; i < input_count; ++i) {
    dtypes.push_back(view.has_input(i) ? view.input(i)->dtype : chipdock_dtype{});
    layouts.push_back(view.has_input(i) ? view.input(i)->layout : 0);
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    dtypes.push_back(view.output(i) != nullptr ? view.output(i)->dtype : chipdock_dtype{});
    layouts.push_back(view.output(i) != nullptr ? view.output(i)->layout : 0);
  }
  const auto& def = *static_cast<const chipdock::plugin::cpu::KernelDef*>(kernel.state);
  // What kernels of private layouts take for granted is what their supports asks for.
  if (!def.layouts.empty() && def.supports != nullptr) {
    chipdock::kit::require(def.supports(view) == CHIPDOCK_SUPPORTS_YES, kernel.name,
                           " does not serve this node");
  }
  body = def.create(view);
  device.others.fetch_add(1);
}

void chipdock_kernel_instance::check_counts(const chipdock_launch_desc& desc) const {
  using chipdock::kit::require;
  require(desc.input_count <= input_count && desc.output_count <= output_count, kernel.op,
          " was made for ", input_count, " inputs and ", output_count, " outputs, launch gives ",
          desc.input_count, " and ", desc.output_count);
  require((desc.inputs != nullptr || desc.input_count == 0) &&
              (desc.outputs != nullptr || desc.output_count == 0),
          kernel.op, ": inputs or outputs is NULL");
}
