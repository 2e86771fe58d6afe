/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and short forms for tests of host.h that are written in C, as an embedder would write. */
#ifndef CHIPDOCK_TESTS_HOST_SUPPORT_H_
#define CHIPDOCK_TESTS_HOST_SUPPORT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chipdock/host.h"

static int g_failures = 0;
static chipdock_error g_error;

/* An error record that is ready, with the text of the last call gone. */
static chipdock_error* fresh(void) {
  memset(&g_error, 0, sizeof(g_error));
  g_error.struct_size = sizeof(g_error);
  return &g_error;
}

static void note(int good, const char* text, int line) {
  if (good) return;
  ++g_failures;
  fprintf(stderr, "line %d: %s, error text '%s'\n", line, text, g_error.text);
}
#define CHECK(condition) note(condition, #condition, __LINE__)
/* The calls below pass E for their error. */
#define E fresh()
#define OK(call) note((call) == CHIPDOCK_OK, #call, __LINE__)
/* The call fails with `code`, the record says the same, and its text holds `part`. */
#define FAILS(code_, part, call)                                                          \
  do {                                                                                    \
    const chipdock_status status_ = (call);                                               \
    note(status_ == (code_) && g_error.code == (code_) && strstr(g_error.text, (part)) && \
             g_error.text_size == strlen(g_error.text),                                   \
         #call " fails with " #code_ " and " #part, __LINE__);                            \
  } while (0)

static const chipdock_dtype kFloat = {CHIPDOCK_DTYPE_FLOAT, 32, 1};
static const chipdock_dtype kInt = {CHIPDOCK_DTYPE_INT, 64, 1};

static const chipdock_dtype kBool = {CHIPDOCK_DTYPE_BOOL, 8, 1};

static const char* cpu_path(void) {
  const char* path = getenv("CHIPDOCK_TEST_CPU_PLUGIN");
  if (path == NULL) {
    fprintf(stderr, "CHIPDOCK_TEST_CPU_PLUGIN names no plugin; run this through ctest\n");
    exit(1);
  }
  return path;
}

static chipdock_host_runtime* make_host(void) {
  const char* paths[1];
  chipdock_host_desc desc = {sizeof(desc), 0, 1, 0, NULL, "none"};
  chipdock_host_runtime* host = NULL;
  paths[0] = cpu_path();
  desc.paths = paths;
  OK(chipdock_host_create(&desc, &host, E));
  return host;
}

static chipdock_host_device* open_cpu(chipdock_host_runtime* host) {
  chipdock_host_device* device = NULL;
  OK(chipdock_host_device_open(host, "cpu:0", NULL, &device, E));
  return device;
}

static chipdock_host_tensor* make_tensor(chipdock_host_device* device, chipdock_dtype dtype,
                                         int32_t rank, const int64_t* shape, const void* data) {
  chipdock_host_tensor_desc desc = {sizeof(desc), {0, 0, 0}, 0, 0, NULL, NULL, NULL, NULL};
  chipdock_host_tensor_info info = {sizeof(info), {0, 0, 0}, 0, 0, NULL, 0, NULL, NULL};
  chipdock_host_tensor* tensor = NULL;
  desc.dtype = dtype;
  desc.rank = rank;
  desc.shape = shape;
  OK(chipdock_host_tensor_create(device, &desc, &tensor, E));
  OK(chipdock_host_tensor_describe(tensor, &info, E));
  if (data != NULL) OK(chipdock_host_tensor_write(tensor, data, info.bytes, NULL, E));
  return tensor;
}

/* True if the tensor is float32, has `count` elements, and they are these. */
static int holds(const chipdock_host_tensor* tensor, const float* wanted, size_t count) {
  float found[32];
  chipdock_host_tensor_info info = {sizeof(info), {0, 0, 0}, 0, 0, NULL, 0, NULL, NULL};
  OK(chipdock_host_tensor_describe(tensor, &info, E));
  if (info.bytes != count * sizeof(float) || count > 32) return 0;
  OK(chipdock_host_tensor_read(tensor, found, info.bytes, NULL, E));
  return memcmp(found, wanted, info.bytes) == 0;
}

#endif /* CHIPDOCK_TESTS_HOST_SUPPORT_H_ */
