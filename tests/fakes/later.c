/* SPDX-License-Identifier: Apache-2.0 */
/* Of a later minor: a kernel with a flag that this host does not know, beside one without, and a
 * 0.x table whose minor is ahead. */
#define CHIPDOCK_UNSTABLE 1
#include "fake.h"

static const chipdock_kernel kNewer = {.struct_size = sizeof(chipdock_kernel),
                                       .flags = CHIPDOCK_KERNEL_DETERMINISTIC | 1u << 20,
                                       .name = "newer",
                                       .domain = "",
                                       .op = "Relu",
                                       .since_version = 1,
                                       .priority = 100};
static const chipdock_kernel kPlain = {.struct_size = sizeof(chipdock_kernel),
                                       .name = "plain",
                                       .domain = "",
                                       .op = "Relu",
                                       .since_version = 1};
static const chipdock_kernel kAlone = {.struct_size = sizeof(chipdock_kernel),
                                       .flags = 1u << 31,
                                       .name = "alone",
                                       .domain = "",
                                       .op = "Abs",
                                       .since_version = 1};

static chipdock_status CHIPDOCK_CALL list(chipdock_device* device,
                                          const chipdock_kernel* const** out_kernels,
                                          uint64_t* out_count, chipdock_error* error) {
  static const chipdock_kernel* const kernels[] = {&kNewer, &kPlain, &kAlone};
  (void)device, (void)error;
  *out_kernels = kernels;
  *out_count = 3;
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

static chipdock_status CHIPDOCK_CALL create(chipdock_device* device, const chipdock_kernel* kernel,
                                            const chipdock_node* node,
                                            chipdock_kernel_instance** out_instance,
                                            chipdock_error* error) {
  static char instance;
  (void)device, (void)kernel, (void)node, (void)error;
  *out_instance = (chipdock_kernel_instance*)(void*)&instance;
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
  (void)instance, (void)desc;
  return chipdock_fail(error, CHIPDOCK_INTERNAL, "INTERNAL: nobody launches these");
}

static const chipdock_kernel_api kKernel = {CHIPDOCK_TABLE(KERNEL, kernel),
                                            .list = list,
                                            .supports = supports,
                                            .create = create,
                                            .destroy = destroy,
                                            .launch = launch};
static const chipdock_graph_api kGraph = {
    .header = {sizeof(chipdock_graph_api), CHIPDOCK_GRAPH_MAJOR, CHIPDOCK_GRAPH_MINOR + 1}};
static const chipdock_compile_api kCompile = {CHIPDOCK_TABLE(COMPILE, compile), .caps = NULL};

#undef FAKE_ID
#undef FAKE_NAME
#define FAKE_ID "chipdock.later"
#define FAKE_NAME "later"
FAKE_PLUGIN(FAKE_TABLE("kernel", &kKernel) FAKE_TABLE("graph", &kGraph)
                FAKE_TABLE("compile", &kCompile))
