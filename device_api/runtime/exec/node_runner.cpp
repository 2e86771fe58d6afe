// SPDX-License-Identifier: Apache-2.0
#include "exec/node_runner.hpp"

#include <algorithm>

namespace chipdock::runtime {
namespace {

/// Tensors of one side of a call, with the pointers that a launch desc wants.
struct Arguments {
  std::vector<chipdock_tensor> tensors;
  std::vector<const chipdock_tensor*> pointers;

  explicit Arguments(size_t count) : tensors(count), pointers(count, nullptr) {}
  void set(size_t i, const TensorRef& tensor, bool as_host) {
    fill_tensor(tensors[i], tensor, as_host);
    pointers[i] = &tensors[i];
  }
};

/// Where a data-dependent kernel writes the true extents of its outputs.
struct Extents {
  std::vector<Dims> dims;
  std::vector<int64_t> ranks;
  Arguments arguments;

  explicit Extents(const std::vector<TensorRef>& outputs)
      : dims(outputs.size()), ranks(outputs.size()), arguments(outputs.size()) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      dims[i] = outputs[i].dims;
      ranks[i] = static_cast<int64_t>(dims[i].size());
      chipdock_tensor& tensor = arguments.tensors[i];
      tensor.struct_size = sizeof(chipdock_tensor);
      tensor.dtype = kit::kInt64;
      tensor.rank = 1;
      tensor.shape = &ranks[i];
      tensor.host = dims[i].data();
      arguments.pointers[i] = &tensor;
    }
  }
};

}  // namespace

std::string describe(const IrNode& node) {
  std::string text = node.op;
  if (!node.domain.empty()) text = node.domain + "." + text;
  return node.name.empty() ? text : text + " node '" + node.name + "'";
}

std::vector<int64_t> shape_of(const IrNode& node, const Dims& dims) {
  NodeDescription description(node, {}, {}, 0);
  const kit::NodeView view(description.get());
  const auto rank = static_cast<int64_t>(dims.size());
  if (view.op() == "Size") {
    int64_t size = 1;
    for (int64_t d : dims) size *= d;
    return {size};
  }
  // ONNX Shape-15: start and end count from the back if negative and are clamped to [0, rank].
  auto clamp = [rank](int64_t at) { return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank); };
  const int64_t start = clamp(view.integer("start", 0));
  const int64_t end = std::max(start, clamp(view.integer("end", rank)));
  return {dims.begin() + start, dims.begin() + end};
}

std::vector<ShapeInput> shape_inputs(const std::vector<const TensorRef*>& inputs,
                                     uint64_t host_inputs) {
  std::vector<ShapeInput> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    out[i].given = true;
    out[i].dtype = inputs[i]->dtype;
    out[i].dims = inputs[i]->dims;
    if (has_bit(host_inputs, i)) {
      static const int64_t kEmpty = 0;  // an empty host input still has to look known
      out[i].data =
          inputs[i]->host() != nullptr ? static_cast<const void*>(inputs[i]->host()) : &kEmpty;
    }
  }
  return out;
}

void infer_shapes(const IrNode& node, const Op& op, const std::vector<ShapeInput>& inputs,
                  std::vector<ShapeOutput>& outputs) {
  const NodeDescription description(node, {}, {}, 0);
  ShapeContext context(description.get(), inputs, outputs);
  try {
    op.shape(context);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool wanted = i < node.outputs.size() && node.outputs[i] >= 0;
      if (wanted && !outputs[i].described) {
        raise(CHIPDOCK_INVALID_ARGUMENT, node.op, " has no output ", i, ", ", outputs.size(),
              " are asked for");
      }
      check_bytes(outputs[i].dtype, outputs[i].dims, node.op);
    }
  } catch (const kit::Failure& failure) {
    throw Error(failure.code(), std::string(failure.what()) + " (in " + describe(node) + ")");
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + " (in " + describe(node) + ")");
  }
}

chipdock_launch_desc launch_desc(const std::vector<const chipdock_tensor*>& inputs,
                                 const std::vector<const chipdock_tensor*>& outputs,
                                 int32_t math_mode, bool deterministic, uint32_t max_threads) {
  chipdock_launch_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.output_count = static_cast<uint32_t>(outputs.size());
  desc.math_mode = math_mode;
  desc.inputs = inputs.data();
  desc.outputs = outputs.data();
  desc.deterministic = deterministic ? 1 : 0;
  desc.max_threads = max_threads;
  return desc;
}

chipdock_tensor packed_tensor(const Buffer& form) {
  chipdock_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  tensor.dtype = kit::kUint8;
  tensor.memory = form.memory();
  tensor.offset = form.offset();
  return tensor;
}

std::vector<TensorRef> run_node(const NodeCall& call, const std::vector<const TensorRef*>& inputs,
                                const std::vector<chipdock_dtype>& dtypes) {
  Device& device = *call.instance.device();
  std::vector<ShapeOutput> shapes(dtypes.size());
  for (size_t i = 0; i < dtypes.size(); ++i) shapes[i].dtype = dtypes[i];
  infer_shapes(call.node, call.op, shape_inputs(inputs, call.host_inputs), shapes);

  Arguments in(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    in.set(i, *inputs[i], has_bit(call.host_inputs, i));
    if (inputs[i]->buffer != nullptr) inputs[i]->buffer->used_on(call.stream);
  }
  std::vector<TensorRef> outputs(shapes.size());
  Arguments out(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (call.node.outputs[i] < 0) continue;
    const uint32_t layout = call.output_layouts.empty() ? 0 : call.output_layouts[i];
    outputs[i] = make_tensor(device, shapes[i].dtype, shapes[i].dims, call.stream, layout);
    if (has_bit(call.host_outputs, i) && outputs[i].buffer != nullptr &&
        outputs[i].host() == nullptr) {
      std::shared_ptr<char[]> bytes(new char[outputs[i].bytes()]);
      outputs[i] =
          wrap_host(device.shared_from_this(), shapes[i].dtype, shapes[i].dims, bytes.get(), bytes);
    }
    out.set(i, outputs[i], has_bit(call.host_outputs, i));
  }
  Arguments packed(inputs.size());
  bool any_packed = false;
  for (size_t i = 0; call.packed != nullptr && i < call.packed->size(); ++i) {
    if ((*call.packed)[i] == nullptr) continue;
    packed.tensors[i] = packed_tensor(*(*call.packed)[i]);
    packed.pointers[i] = &packed.tensors[i];
    any_packed = true;
  }
  const bool data_dependent = (call.op.flags & kOpDataDependent) != 0;
  Extents extents(outputs);

  chipdock_launch_desc desc =
      launch_desc(in.pointers, out.pointers, call.math_mode, call.deterministic, call.max_threads);
  desc.packed = any_packed ? packed.pointers.data() : nullptr;
  desc.extents = data_dependent ? extents.arguments.pointers.data() : nullptr;
  desc.seed = call.seed;
  desc.seed_offset = call.seed_offset;

  std::shared_ptr<Buffer> workspace;
  if (device.tables().kernel.workspace_size != nullptr) {
    uint64_t bytes = 0;
    ErrorRecord error;
    device.check_call(
        device.tables().kernel.workspace_size(call.instance.handle(), &desc, &bytes, &error), error,
        ("workspace_size of " + describe(call.node)).c_str());
    if (bytes > 0) {
      workspace = device.allocate(bytes, call.stream);
      desc.workspace = workspace->memory();
      desc.workspace_offset = workspace->offset();
      desc.workspace_size = bytes;
    }
  }
  device.launch(call.instance.handle(), desc, call.stream.get(), call.node.op.c_str());
  if (data_dependent) {
    if (call.stream != nullptr) call.stream->sync();
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].dims = extents.dims[i];
  }
  return outputs;
}

}  // namespace chipdock::runtime
