// SPDX-License-Identifier: Apache-2.0
// Checks of the kernel table.
#include "kernel_rules.hpp"
#include "validate_tensor.hpp"

namespace chipdock::runtime {

using Book = Validator;

namespace {

void value(const Book& book, const chipdock_value* given, const char* what) {
  if (given == nullptr) return;
  const auto value = in_struct(book, given, what);
  want(value.rank >= -1 && value.rank <= CHIPDOCK_MAX_RANK, book, "KRN-2", what, " has rank ",
       value.rank);
  want(value.rank <= 0 || value.dims != nullptr, book, "KRN-2", what, " has NULL dims");
  for (int32_t i = 0; i < value.rank; ++i) {
    want(value.dims[i] >= -1, book, "KRN-2", what, " has extent ", value.dims[i], " in dim ", i);
  }
}

void node(const Book& book, const chipdock_node* given) {
  const auto node = in_struct(book, given, "node");
  want(node.domain != nullptr && node.op != nullptr, book, "KRN-2", "node has a NULL domain or op");
  want(node.math_mode >= CHIPDOCK_MATH_STRICT && node.math_mode <= CHIPDOCK_MATH_BF16X3, book,
       "BASE-7", "node has math_mode ", node.math_mode);
  want((node.attribute_count == 0 || node.attributes != nullptr) &&
           (node.input_count == 0 || node.inputs != nullptr) &&
           (node.output_count == 0 || node.outputs != nullptr),
       book, "BASE-6", "node ", node.op, " has a count without its array");
  for (uint32_t i = 0; i < node.attribute_count; ++i) {
    const auto attribute = in_struct(book, node.attributes[i], "attribute");
    want(attribute.name != nullptr, book, "KRN-2", "attribute ", i, " has no name");
  }
  for (uint32_t i = 0; i < node.input_count; ++i) value(book, node.inputs[i], "input");
  for (uint32_t i = 0; i < node.output_count; ++i) value(book, node.outputs[i], "output");
}

void list(Book& book, chipdock_device* device, const chipdock_kernel* const** out_kernels,
          uint64_t* out_count, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_kernels != nullptr && out_count != nullptr, book, "KRN-1", "an output is NULL");
}
void listed(Book& book, chipdock_device* device, const chipdock_kernel* const** out_kernels,
            uint64_t* out_count, chipdock_error*) {
  expect(*out_count == 0 || *out_kernels != nullptr, book, "BASE-8", "returned ", *out_count,
         " kernels and a NULL array");
  for (uint64_t i = 0; i < *out_count; ++i) {
    const chipdock_kernel* kernel = (*out_kernels)[i];
    expect(kernel != nullptr && kernel->struct_size >= sizeof(chipdock_kernel), book, "BASE-4",
           "kernel ", i, " is NULL or has too small a struct_size");
    expect(kernel->name != nullptr && kernel->op != nullptr && kernel->domain != nullptr, book,
           "KRN-1", "kernel ", i, " has a NULL name, domain or op");
    expect(kernel->layout_rule_count == 0 || book.inner().kernel.layout_size != nullptr, book,
           "KRN-1", "kernel ", kernel->name, " has layout rules but layout_size is NULL");
    Handle entry;
    entry.device = device;
    entry.flags = kernel->flags;
    book.add(Kind::kKernel, kernel, entry, "kernel");
  }
}

/// A layout beside 0 is one that the kernel's rules admit for the argument.
void admitted(const Book& book, const chipdock_kernel& kernel, bool input, uint32_t index,
              uint32_t layout) {
  want(layout == 0 || admits_layout(kernel, input, index, layout), book, "KRN-8",
       input ? "input " : "output ", index, " is in layout ", layout, ", which kernel ",
       kernel.name, " does not list for it");
}

void node_of(const Book& book, const chipdock_kernel& kernel, const chipdock_node* given) {
  node(book, given);
  for (uint32_t i = 0; i < given->input_count; ++i) {
    if (given->inputs[i] != nullptr) admitted(book, kernel, true, i, given->inputs[i]->layout);
  }
  for (uint32_t i = 0; i < given->output_count; ++i) {
    if (given->outputs[i] != nullptr) admitted(book, kernel, false, i, given->outputs[i]->layout);
  }
}

void supports(Book& book, chipdock_device* device, const chipdock_kernel* kernel,
              const chipdock_node* given, int32_t* out_answer, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kKernel, kernel, "kernel", device);
  want(out_answer != nullptr, book, "BASE-8", "out_answer is NULL");
  node_of(book, *kernel, given);
}
void supported(Book& book, chipdock_device*, const chipdock_kernel* kernel, const chipdock_node*,
               int32_t* out_answer, chipdock_error*) {
  expect(*out_answer >= CHIPDOCK_SUPPORTS_NO && *out_answer <= CHIPDOCK_SUPPORTS_NEEDS_SHAPE, book,
         "BASE-7", "of kernel ", kernel->name, " answered ", *out_answer);
}
void score(Book& book, chipdock_device* device, const chipdock_kernel* kernel,
           const chipdock_node* given, double* out_score, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kKernel, kernel, "kernel", device);
  want(out_score != nullptr, book, "BASE-8", "out_score is NULL");
  node_of(book, *kernel, given);
}
void scored(Book& book, chipdock_device*, const chipdock_kernel* kernel, const chipdock_node*,
            double* out_score, chipdock_error*) {
  expect(*out_score == *out_score, book, "KRN-2", "of kernel ", kernel->name, " answered NaN");
}

void create(Book& book, chipdock_device* device, const chipdock_kernel* kernel,
            const chipdock_node* given, chipdock_kernel_instance** out_instance, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  book.live(Kind::kKernel, kernel, "kernel", device);
  want(out_instance != nullptr, book, "BASE-8", "out_instance is NULL");
  node_of(book, *kernel, given);
}
std::vector<uint32_t> layouts_of(uint32_t count, const chipdock_value* const* values) {
  std::vector<uint32_t> layouts(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] != nullptr) layouts[i] = values[i]->layout;
  }
  return layouts;
}
void created(Book& book, chipdock_device* device, const chipdock_kernel* kernel,
             const chipdock_node* node, chipdock_kernel_instance** out_instance, chipdock_error*) {
  Handle entry;
  entry.device = device;
  entry.parent = kernel;
  entry.input_layouts = layouts_of(node->input_count, node->inputs);
  entry.output_layouts = layouts_of(node->output_count, node->outputs);
  book.add(Kind::kInstance, *out_instance, entry, "instance");
}
void destroy(Book& book, chipdock_kernel_instance* instance, chipdock_error*) {
  book.end(Kind::kInstance, instance, "instance");
}

void prepack_size(Book& book, chipdock_kernel_instance* instance, uint32_t,
                  const chipdock_value* given, chipdock_prepack_info* out_info, chipdock_error*) {
  book.live(Kind::kInstance, instance, "instance");
  want(given != nullptr, book, "KRN-12", "value is NULL");
  value(book, given, "value");
  out_struct(book, out_info, "out_info");
}
void prepack(Book& book, chipdock_kernel_instance* instance, const chipdock_prepack_desc* desc,
             chipdock_error*) {
  const void* device = book.live(Kind::kInstance, instance, "instance").device;
  const auto given = in_struct(book, desc, "desc");
  book.tensor(given.source, device, true, "source");
  book.range(device, given.target, given.target_offset, 0, "target");
  book.stream_or_null(given.stream, device);
}

chipdock_launch_desc check_launch(Book& book, const chipdock_launch_desc* desc) {
  const auto given = in_struct(book, desc, "desc");
  want((given.input_count == 0 || given.inputs != nullptr) &&
           (given.output_count == 0 || given.outputs != nullptr),
       book, "BASE-6", "desc has a count without its array");
  want(given.math_mode >= CHIPDOCK_MATH_STRICT && given.math_mode <= CHIPDOCK_MATH_BF16X3, book,
       "BASE-7", "math_mode is ", given.math_mode);
  want(given.deterministic == 0 || given.deterministic == 1, book, "BASE-7", "deterministic is ",
       given.deterministic);
  return given;
}

/// Each argument has the layout that the instance was made for.
void same_layouts(const Book& book, uint32_t count, const chipdock_tensor* const* tensors,
                  const std::vector<uint32_t>& layouts, const char* what) {
  for (uint32_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) continue;
    const uint32_t created = i < layouts.size() ? layouts[i] : 0;
    want(tensors[i]->layout == created, book, "KRN-8", what, " ", i, " is in layout ",
         tensors[i]->layout, ", the instance was created for layout ", created);
  }
}

void workspace_size(Book& book, chipdock_kernel_instance* instance,
                    const chipdock_launch_desc* desc, uint64_t* out_size, chipdock_error*) {
  const Handle entry = book.live(Kind::kInstance, instance, "instance");
  want(out_size != nullptr, book, "BASE-8", "out_size is NULL");
  const auto given = check_launch(book, desc);
  for (uint32_t i = 0; i < given.input_count; ++i) {
    if (given.inputs[i] != nullptr) book.tensor(given.inputs[i], entry.device, false, "input");
  }
  same_layouts(book, given.input_count, given.inputs, entry.input_layouts, "input");
  same_layouts(book, given.output_count, given.outputs, entry.output_layouts, "output");
}

/// [KRN-7] [KRN-8] for one argument; `host_mask` is the kernel's own, the operator may add to it.
void argument(Book& book, const chipdock_tensor* tensor, const void* device, uint32_t index,
              uint64_t host_mask, bool strides, const char* what) {
  book.tensor(tensor, device, true, what);
  const bool host = index < 64 && ((host_mask >> index) & 1) != 0;
  want(!host || tensor->memory == nullptr, book, "KRN-7", what, " ", index,
       " is in device memory, the kernel reads it on the host");
  want(strides || tensor->strides == nullptr, book, "KRN-8", what, " ", index,
       " has strides, which the kernel does not accept");
}

void aliases(Book& book, const chipdock_launch_desc& desc, const chipdock_kernel& kernel,
             const void* device) {
  for (uint32_t o = 0; o < desc.output_count; ++o) {
    if (desc.outputs[o] == nullptr) continue;
    const Bytes output = bytes_of(book, *desc.outputs[o], device, "output");
    for (uint32_t i = 0; i < desc.input_count && output.memory != nullptr; ++i) {
      if (desc.inputs[i] == nullptr) continue;
      const Bytes input = bytes_of(book, *desc.inputs[i], device, "input");
      if (input.memory != output.memory || input.end <= output.begin || output.end <= input.begin) {
        continue;
      }
      bool allowed = false;
      for (uint32_t k = 0; k < kernel.alias_count; ++k) {
        allowed = allowed || (kernel.aliases[k]->input == i && kernel.aliases[k]->output == o);
      }
      want(allowed, book, "KRN-9", "output ", o, " overlaps input ", i, ", which kernel ",
           kernel.name, " does not list as an alias");
    }
  }
}

void launch(Book& book, chipdock_kernel_instance* instance, const chipdock_launch_desc* desc,
            chipdock_error*) {
  const Handle entry = book.live(Kind::kInstance, instance, "instance");
  const auto& kernel = *static_cast<const chipdock_kernel*>(entry.parent);
  const auto given = check_launch(book, desc);
  const bool strides = (kernel.flags & CHIPDOCK_KERNEL_ACCEPTS_STRIDES) != 0;
  for (uint32_t i = 0; i < given.input_count; ++i) {
    // A packed input's original may be gone.
    const bool packed = given.packed != nullptr && given.packed[i] != nullptr;
    if (packed) {
      book.tensor(given.packed[i], entry.device, true, "packed input");
    } else if (given.inputs[i] != nullptr) {
      argument(book, given.inputs[i], entry.device, i, kernel.host_inputs, strides, "input");
    }
  }
  for (uint32_t o = 0; o < given.output_count; ++o) {
    if (given.outputs[o] == nullptr) continue;
    const bool late = given.allocator != nullptr && given.outputs[o]->memory == nullptr;
    if (!late)
      argument(book, given.outputs[o], entry.device, o, kernel.host_outputs, strides, "output");
    if (given.extents != nullptr && given.extents[o] != nullptr) {
      book.tensor(given.extents[o], entry.device, true, "extents");
    }
  }
  same_layouts(book, given.input_count, given.inputs, entry.input_layouts, "input");
  same_layouts(book, given.output_count, given.outputs, entry.output_layouts, "output");
  aliases(book, given, kernel, entry.device);
  if (given.workspace != nullptr) {
    book.range(entry.device, given.workspace, given.workspace_offset, given.workspace_size,
               "workspace");
  }
  uint64_t needed = 0;
  ErrorRecord error;
  if (book.inner().kernel.workspace_size != nullptr &&
      book.inner().kernel.workspace_size(instance, desc, &needed, &error) == CHIPDOCK_OK) {
    const uint64_t room = given.workspace != nullptr ? given.workspace_size : 0;
    want(needed <= room, book, "KRN-5", "workspace has ", room, " bytes, ", kernel.name, " needs ",
         needed);
  }
  want(given.allocator == nullptr || (kernel.flags & CHIPDOCK_KERNEL_SYNCHRONIZES) != 0, book,
       "KRN-6", "has an allocator, but kernel ", kernel.name, " does not SYNCHRONIZE");
  book.stream_or_null(given.stream, entry.device);
}

void layout_size(Book& book, chipdock_device* device, const chipdock_value* given,
                 uint64_t* out_size, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(given != nullptr && out_size != nullptr, book, "BASE-8", "value or out_size is NULL");
  value(book, given, "value");
}
void laid_out(Book& book, chipdock_device*, const chipdock_value* given, uint64_t* out_size,
              chipdock_error*) {
  const bool empty = std::find(given->dims, given->dims + std::max(given->rank, 0), 0) !=
                     given->dims + std::max(given->rank, 0);
  expect(*out_size != 0 || empty, book, "BASE-8", "returned 0 bytes for a tensor in layout ",
         given->layout);
}

}  // namespace

void add_kernel_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, kernel_list, list);
  CHIPDOCK_SUCCESS(checks, kernel_list, listed);
  CHIPDOCK_BEFORE(checks, kernel_supports, supports);
  CHIPDOCK_SUCCESS(checks, kernel_supports, supported);
  CHIPDOCK_BEFORE(checks, kernel_score, score);
  CHIPDOCK_SUCCESS(checks, kernel_score, scored);
  CHIPDOCK_BEFORE(checks, kernel_create, create);
  CHIPDOCK_SUCCESS(checks, kernel_create, created);
  CHIPDOCK_BEFORE(checks, kernel_destroy, destroy);
  CHIPDOCK_BEFORE(checks, kernel_prepack_size, prepack_size);
  CHIPDOCK_BEFORE(checks, kernel_prepack, prepack);
  CHIPDOCK_BEFORE(checks, kernel_workspace_size, workspace_size);
  CHIPDOCK_BEFORE(checks, kernel_launch, launch);
  CHIPDOCK_BEFORE(checks, kernel_layout_size, layout_size);
  CHIPDOCK_SUCCESS(checks, kernel_layout_size, laid_out);
}

}  // namespace chipdock::runtime
