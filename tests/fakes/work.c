/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two devices with host-visible memory and a few kernels, but no streams: what the host's emulations
 * are tested over. Kernels of domain "test": Scale (y = x * s, s a host input int64), Sum (host
 * output int64 of a device input), Fail (INTERNAL in the call), Fault (RESET_REQUIRED, device).
 */
#define FAKE_HEAP_FLAGS \
  (CHIPDOCK_HEAP_HOST_VISIBLE | CHIPDOCK_HEAP_COHERENT | CHIPDOCK_HEAP_ADDRESSABLE)
#ifndef FAKE_HEAP_BYTES
#define FAKE_HEAP_BYTES ((uint64_t)64 << 20)
#endif
#include "fake.h"

static chipdock_status CHIPDOCK_CALL two_devices(chipdock_plugin* plugin, int32_t* out_count,
                                                 chipdock_error* error) {
  (void)plugin, (void)error;
  *out_count = 2;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL info_of_two(chipdock_plugin* plugin, int32_t index,
                                                 chipdock_device_info* out_info,
                                                 chipdock_error* error) {
  (void)index;
  return fake_info(plugin, 0, out_info, error);
}

static chipdock_status CHIPDOCK_CALL address(chipdock_device* device, chipdock_memory* memory,
                                             void** out_address, chipdock_error* error) {
  (void)device, (void)error;
  *out_address = memory->bytes;
  return CHIPDOCK_OK;
}

static const chipdock_kernel kKernels[] = {
    {sizeof(chipdock_kernel), CHIPDOCK_KERNEL_CAPTURABLE, "scale", "test", "Scale", 1, 0, 0, 0, 2,
     0, 0, 0, 0, NULL, NULL, NULL, NULL},
    {sizeof(chipdock_kernel), 0, "sum", "test", "Sum", 1, 0, 0, 0, 0, 1, 0, 0, 0, NULL, NULL, NULL,
     NULL},
    {sizeof(chipdock_kernel), 0, "fail", "test", "Fail", 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL,
     NULL, NULL},
    {sizeof(chipdock_kernel), 0, "fault", "test", "Fault", 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL,
     NULL, NULL}};
static const chipdock_kernel* const kList[] = {&kKernels[0], &kKernels[1], &kKernels[2],
                                               &kKernels[3]};

static chipdock_status CHIPDOCK_CALL list(chipdock_device* device,
                                          const chipdock_kernel* const** out_kernels,
                                          uint64_t* out_count, chipdock_error* error) {
  (void)device, (void)error;
  *out_kernels = kList;
  *out_count = 4;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL supports(chipdock_device* device,
                                              const chipdock_kernel* kernel,
                                              const chipdock_node* node, int32_t* out_answer,
                                              chipdock_error* error) {
  (void)device, (void)error;
  *out_answer = strcmp(kernel->op, node->op) == 0 ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
  return CHIPDOCK_OK;
}

struct chipdock_kernel_instance {
  const chipdock_kernel* kernel;
};

static chipdock_status CHIPDOCK_CALL create(chipdock_device* device, const chipdock_kernel* kernel,
                                            const chipdock_node* node,
                                            chipdock_kernel_instance** out_instance,
                                            chipdock_error* error) {
  chipdock_kernel_instance* instance = (chipdock_kernel_instance*)malloc(sizeof(*instance));
  (void)device, (void)node;
  if (instance == NULL)
    return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: create");
  instance->kernel = kernel;
  *out_instance = instance;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL destroy(chipdock_kernel_instance* instance,
                                             chipdock_error* error) {
  (void)error;
  free(instance);
  return CHIPDOCK_OK;
}

static int64_t* elements(const chipdock_tensor* tensor) {
  return (int64_t*)(tensor->host != NULL ? tensor->host
                                         : (void*)(tensor->memory->bytes + tensor->offset));
}

static chipdock_status CHIPDOCK_CALL launch(chipdock_kernel_instance* instance,
                                            const chipdock_launch_desc* desc,
                                            chipdock_error* error) {
  const char* op = instance->kernel->op;
  int64_t i;
  if (strcmp(op, "Fail") == 0) {
    return chipdock_fail(error, CHIPDOCK_INTERNAL, "INTERNAL: the kernel failed on purpose");
  }
  if (strcmp(op, "Fault") == 0) {
    chipdock_fail(error, CHIPDOCK_RESET_REQUIRED, "RESET_REQUIRED: illegal address");
    if (error != NULL) {
      error->scope = CHIPDOCK_SCOPE_DEVICE;
      error->correlation_id = desc->correlation_id;
    }
    return CHIPDOCK_RESET_REQUIRED;
  }
  if (strcmp(op, "Sum") == 0) {
    int64_t sum = 0;
    for (i = 0; i < desc->inputs[0]->shape[0]; ++i) sum += elements(desc->inputs[0])[i];
    *elements(desc->outputs[0]) = sum;
    return CHIPDOCK_OK;
  }
  for (i = 0; i < desc->outputs[0]->shape[0]; ++i) {
    elements(desc->outputs[0])[i] = elements(desc->inputs[0])[i] * *elements(desc->inputs[1]);
  }
  return CHIPDOCK_OK;
}

static const chipdock_device_api kDevice = {CHIPDOCK_TABLE(DEVICE, device),
                                            two_devices,
                                            info_of_two,
                                            fake_open,
                                            fake_close,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
static const chipdock_memory_api kMemory = {CHIPDOCK_TABLE(MEMORY, memory),
                                            fake_alloc,
                                            fake_free,
                                            fake_copy,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            address,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
static const chipdock_kernel_api kKernel = {CHIPDOCK_TABLE(KERNEL, kernel),
                                            list,
                                            supports,
                                            NULL,
                                            create,
                                            destroy,
                                            NULL,
                                            NULL,
                                            NULL,
                                            launch,
                                            NULL};

static chipdock_status CHIPDOCK_CALL get_table(chipdock_plugin* plugin, const char* table,
                                               uint32_t version, const void** out_table,
                                               chipdock_error* error) {
  (void)plugin, (void)version;
  FAKE_TABLE("device", &kDevice)
  FAKE_TABLE("memory", &kMemory)
  FAKE_TABLE("kernel", &kKernel)
  return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such table");
}

chipdock_status CHIPDOCK_CALL chipdock_plugin_query(const chipdock_host* host,
                                                    const chipdock_query_desc* desc,
                                                    chipdock_plugin** out_plugin,
                                                    chipdock_error* error) {
  static chipdock_plugin plugin = {
      sizeof(chipdock_plugin),
      CHIPDOCK_ABI_VERSION,
      "chipdock.work",
      "work",
      "1.0",
      {0x77, 0x6f, 0x72, 0x6b, 1, 2, 0x40, 3, 0x80, 4, 5, 6, 7, 8, 9, 10},
      get_table,
      NULL,
      NULL};
  CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error);
  *out_plugin = &plugin;
  return CHIPDOCK_OK;
}
