/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device with private layouts of float32: 7 has the elements in reverse and two zeros behind, 9
 * two zeros in front. Kernels find out if the host mixes them up: each has to get the layouts that
 * it was made for, and zeros where they belong. Neg gains by layout 7, Sqrt by 9, Ceil by writing 7;
 * Relu and Add follow; Floor may read 7 and writes none; Exp has no layouts. The option refuse=WHAT
 * makes the device refuse something.
 */
#define FAKE_HEAP_FLAGS \
  (CHIPDOCK_HEAP_HOST_VISIBLE | CHIPDOCK_HEAP_COHERENT | CHIPDOCK_HEAP_ADDRESSABLE)
#define FAKE_HEAP_BYTES ((uint64_t)64 << 20)
#define FAKE_ID "chipdock.layouts"
#define FAKE_NAME "layouts"
#include "fake.h"

enum { kReversed = 7, kBehind = 9, kPadding = 2 };
/* What is refused: kept in chipdock_device.lost. */
enum { kNothing, kReorder, kReorderInCreate, kNegInCreate, kSize };

static const uint32_t kBoth[] = {kReversed, kBehind};
#define RULE(name, argument, first, count)                                                        \
  static const chipdock_layout_rule name = {sizeof(chipdock_layout_rule), (argument), (count), 0, \
                                            kBoth + (first)}
RULE(kReads7, 0, 0, 1);
RULE(kReads9, 0, 1, 1);
RULE(kReadsBoth, 0, 0, 2);
RULE(kWrites7, -1, 0, 1);
RULE(kWrites9, -1, 1, 1);
RULE(kWritesBoth, -1, 0, 2);
static const chipdock_layout_rule* const kOf7[] = {&kReads7, &kWrites7};
static const chipdock_layout_rule* const kOf9[] = {&kReads9, &kWrites9};
static const chipdock_layout_rule* const kOfBoth[] = {&kReadsBoth, &kWritesBoth};

#define KERNEL(domain_, op_, rules, count) \
  {.struct_size = sizeof(chipdock_kernel), \
   .flags = CHIPDOCK_KERNEL_CAPTURABLE,    \
   .name = "padded_" op_,                  \
   .domain = (domain_),                    \
   .op = (op_),                            \
   .since_version = 1,                     \
   .layout_rule_count = (count),           \
   .layout_rules = (rules)}
static const chipdock_kernel kKernels[] = {
    KERNEL("", "Neg", kOf7, 2),      KERNEL("", "Sqrt", kOf9, 2),
    KERNEL("", "Ceil", kOf7 + 1, 1), KERNEL("", "Floor", kOf7, 1),
    KERNEL("", "Relu", kOfBoth, 2),  KERNEL("", "Add", kOfBoth, 2),
    KERNEL("", "Exp", NULL, 0),      KERNEL("ai.chipdock", "Reorder", kOfBoth, 2)};
enum { kCount = sizeof(kKernels) / sizeof(kKernels[0]) };

static chipdock_status CHIPDOCK_CALL list(chipdock_device* device,
                                          const chipdock_kernel* const** out_kernels,
                                          uint64_t* out_count, chipdock_error* error) {
  static const chipdock_kernel* const kernels[] = {&kKernels[0], &kKernels[1], &kKernels[2],
                                                   &kKernels[3], &kKernels[4], &kKernels[5],
                                                   &kKernels[6], &kKernels[7]};
  (void)device, (void)error;
  *out_kernels = kernels;
  *out_count = kCount;
  return CHIPDOCK_OK;
}

static int is(const chipdock_kernel* kernel, const char* op) { return strcmp(kernel->op, op) == 0; }

static chipdock_status CHIPDOCK_CALL supports(chipdock_device* device,
                                              const chipdock_kernel* kernel,
                                              const chipdock_node* node, int32_t* out_answer,
                                              chipdock_error* error) {
  const uint32_t in = node->inputs[0]->layout, out = node->outputs[0]->layout;
  const chipdock_dtype dtype = node->inputs[0]->dtype;
  int yes = in == out;
  uint32_t i;
  (void)error;
  for (i = 1; i < node->input_count; ++i) yes = yes && node->inputs[i]->layout == in;
  if (is(kernel, "Ceil")) yes = in == 0;
  if (is(kernel, "Floor")) yes = out == 0;
  if (is(kernel, "Reorder")) yes = (in == 0) != (out == 0) && device->lost != kReorder;
  yes = yes && dtype.code == CHIPDOCK_DTYPE_FLOAT && dtype.bits == 32;
  *out_answer = yes ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL score(chipdock_device* device, const chipdock_kernel* kernel,
                                           const chipdock_node* node, double* out_score,
                                           chipdock_error* error) {
  const int gains = is(kernel, "Neg") || is(kernel, "Sqrt") || is(kernel, "Ceil");
  (void)device, (void)error;
  *out_score = gains && node->outputs[0]->layout != 0 ? 10 : 0;
  return CHIPDOCK_OK;
}

struct chipdock_kernel_instance {
  const chipdock_kernel* kernel;
  uint32_t inputs[2], output;
};

static chipdock_status CHIPDOCK_CALL create(chipdock_device* device, const chipdock_kernel* kernel,
                                            const chipdock_node* node,
                                            chipdock_kernel_instance** out_instance,
                                            chipdock_error* error) {
  chipdock_kernel_instance* instance;
  uint32_t i;
  if ((device->lost == kReorderInCreate && is(kernel, "Reorder")) ||
      (device->lost == kNegInCreate && is(kernel, "Neg") && node->outputs[0]->layout != 0)) {
    return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: refused on purpose");
  }
  instance = (chipdock_kernel_instance*)calloc(1, sizeof(*instance));
  if (instance == NULL)
    return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: create");
  instance->kernel = kernel;
  for (i = 0; i < node->input_count; ++i) instance->inputs[i] = node->inputs[i]->layout;
  instance->output = node->outputs[0]->layout;
  *out_instance = instance;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL destroy(chipdock_kernel_instance* instance,
                                             chipdock_error* error) {
  (void)error;
  free(instance);
  return CHIPDOCK_OK;
}

static int64_t count_of(const chipdock_tensor* tensor) {
  int64_t count = 1;
  int32_t i;
  for (i = 0; i < tensor->rank; ++i) count *= tensor->shape[i];
  return count;
}

static float* first(const chipdock_tensor* tensor) {
  return (float*)(tensor->host != NULL ? tensor->host
                                       : (void*)(tensor->memory->bytes + tensor->offset));
}

/* Where element `at` is, and the first of the zeros for at < 0. */
static int64_t place(const chipdock_tensor* tensor, int64_t count, int64_t at) {
  if (tensor->layout == kReversed) return at < 0 ? count : count - 1 - at;
  if (tensor->layout == kBehind) return at < 0 ? 0 : at + kPadding;
  return at;
}

static chipdock_status bad_layout(chipdock_error* error) {
  return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: another layout");
}

static chipdock_status CHIPDOCK_CALL workspace_size(chipdock_kernel_instance* instance,
                                                    const chipdock_launch_desc* desc,
                                                    uint64_t* out_size, chipdock_error* error) {
  uint32_t i;
  for (i = 0; i < desc->input_count; ++i) {
    if (desc->inputs[i]->layout != instance->inputs[i]) return bad_layout(error);
  }
  if (desc->outputs[0]->layout != instance->output) return bad_layout(error);
  *out_size = 0;
  return CHIPDOCK_OK;
}

static float compute(const chipdock_kernel* kernel, float x, float y) {
  if (is(kernel, "Neg")) return -x;
  if (is(kernel, "Relu")) return x > 0 ? x : 0;
  if (is(kernel, "Add")) return x + y;
  if (is(kernel, "Reorder")) return x;
  if (is(kernel, "Sqrt")) return x + 100; /* What they compute is nobody's concern, */
  if (is(kernel, "Ceil")) return x + 10;  /* as long as it can be told apart. */
  if (is(kernel, "Floor")) return x - 5;
  return x * 2;
}

static chipdock_status CHIPDOCK_CALL launch(chipdock_kernel_instance* instance,
                                            const chipdock_launch_desc* desc,
                                            chipdock_error* error) {
  const chipdock_tensor* out = desc->outputs[0];
  const int64_t count = count_of(out);
  uint64_t size = 0;
  int64_t i;
  uint32_t k;
  chipdock_status status = workspace_size(instance, desc, &size, error);
  if (status != CHIPDOCK_OK || count == 0) return status;
  for (k = 0; k < desc->input_count; ++k) {
    const chipdock_tensor* in = desc->inputs[k];
    for (i = 0; in->layout != 0 && i < kPadding; ++i) {
      if (first(in)[place(in, count, -1) + i] != 0)
        return chipdock_fail(error, CHIPDOCK_INTERNAL, "INTERNAL: padding is not zero");
    }
  }
  for (i = 0; out->layout != 0 && i < kPadding; ++i) first(out)[place(out, count, -1) + i] = 0;
  for (i = 0; i < count; ++i) {
    const chipdock_tensor* x = desc->inputs[0];
    const chipdock_tensor* y = desc->inputs[desc->input_count - 1];
    first(out)[place(out, count, i)] =
        compute(instance->kernel, first(x)[place(x, count, i)], first(y)[place(y, count, i)]);
  }
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL layout_size(chipdock_device* device,
                                                 const chipdock_value* value, uint64_t* out_size,
                                                 chipdock_error* error) {
  uint64_t count = kPadding;
  uint64_t product = 1;
  int32_t i;
  if (value->rank < 0)
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: unknown rank");
  if (device->lost == kSize || (value->layout != kReversed && value->layout != kBehind))
    return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such layout");
  for (i = 0; i < value->rank; ++i) {
    if (value->dims[i] < 0)
      return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: unknown dims");
    product *= (uint64_t)value->dims[i];
  }
  *out_size = (count + product) * sizeof(float);
  return CHIPDOCK_OK;
}

/* A plugin that is loaded with an option lacks layout_size. */
static int g_lacks_size;
static const chipdock_kernel_api kWithoutSize = {CHIPDOCK_TABLE(KERNEL, kernel),
                                                 .list = list,
                                                 .supports = supports,
                                                 .score = score,
                                                 .create = create,
                                                 .destroy = destroy,
                                                 .workspace_size = workspace_size,
                                                 .launch = launch};
static const chipdock_kernel_api kKernel = {CHIPDOCK_TABLE(KERNEL, kernel),
                                            .list = list,
                                            .supports = supports,
                                            .score = score,
                                            .create = create,
                                            .destroy = destroy,
                                            .workspace_size = workspace_size,
                                            .launch = launch,
                                            .layout_size = layout_size};

static chipdock_status CHIPDOCK_CALL open_with_option(chipdock_plugin* plugin,
                                                      const chipdock_device_open_desc* desc,
                                                      chipdock_device** out_device,
                                                      chipdock_error* error) {
  static const char* const refused[] = {"nothing", "reorder", "reorder in create", "neg in create",
                                        "size"};
  chipdock_status status = fake_open(plugin, desc, out_device, error);
  uint32_t i;
  int what;
  for (i = 0; status == CHIPDOCK_OK && i < desc->option_count; ++i) {
    for (what = 0; what <= kSize; ++what) {
      if (strcmp(desc->options[i]->value, refused[what]) == 0) (*out_device)->lost = what;
    }
  }
  return status;
}
static chipdock_status CHIPDOCK_CALL address(chipdock_device* device, chipdock_memory* memory,
                                             void** out_address, chipdock_error* error) {
  (void)device, (void)error;
  *out_address = memory->bytes;
  return CHIPDOCK_OK;
}

#undef FAKE_ADDRESS
#define FAKE_ADDRESS address
#undef FAKE_OPEN
#define FAKE_OPEN open_with_option

#undef FAKE_QUERY_HOOK
#define FAKE_QUERY_HOOK g_lacks_size = desc->option_count != 0;
FAKE_PLUGIN(FAKE_TABLE("kernel", g_lacks_size ? &kWithoutSize : &kKernel))
