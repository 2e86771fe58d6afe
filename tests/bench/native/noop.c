/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with one kernel that does nothing: what is left of a launch is the way to it. */
#define FAKE_ID "chipdock.bench.noop"
#define FAKE_NAME "noop"
#include "fake.h"

static const chipdock_kernel kNothing = {.struct_size = sizeof(chipdock_kernel),
                                         .name = "nothing",
                                         .domain = "bench",
                                         .op = "Nothing",
                                         .since_version = 1};
static const chipdock_kernel* const kList[] = {&kNothing};

static chipdock_status CHIPDOCK_CALL list(chipdock_device* device,
                                          const chipdock_kernel* const** out_kernels,
                                          uint64_t* out_count, chipdock_error* error) {
  (void)device, (void)error;
  *out_kernels = kList;
  *out_count = 1;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL supports(chipdock_device* device,
                                              const chipdock_kernel* kernel,
                                              const chipdock_node* node, int32_t* out_answer,
                                              chipdock_error* error) {
  (void)device, (void)kernel, (void)node, (void)error;
  *out_answer = CHIPDOCK_SUPPORTS_YES;
  return CHIPDOCK_OK;
}

struct chipdock_kernel_instance {
  int unused;
};

static chipdock_status CHIPDOCK_CALL create(chipdock_device* device, const chipdock_kernel* kernel,
                                            const chipdock_node* node,
                                            chipdock_kernel_instance** out_instance,
                                            chipdock_error* error) {
  static chipdock_kernel_instance instance;
  (void)device, (void)kernel, (void)node, (void)error;
  *out_instance = &instance;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL destroy(chipdock_kernel_instance* instance,
                                             chipdock_error* error) {
  (void)instance, (void)error;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL launch(chipdock_kernel_instance* instance,
                                            const chipdock_launch_desc* desc,
                                            chipdock_error* error) {
  (void)instance, (void)desc, (void)error;
  return CHIPDOCK_OK;
}

static const chipdock_kernel_api kKernel = {.header = CHIPDOCK_TABLE(KERNEL, kernel),
                                            .list = list,
                                            .supports = supports,
                                            .create = create,
                                            .destroy = destroy,
                                            .launch = launch};

FAKE_PLUGIN(FAKE_TABLE("kernel", &kKernel))
