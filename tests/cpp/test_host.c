/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h as an embedder in C99 uses it, linked to libchipdock.so: hosts, devices, tensors, streams,
 * operators. Graphs: test_host_graph.c.
 */
#include "host_support.h"

static chipdock_host_op_desc op_desc(const char* op, int32_t since, uint32_t inputs,
                                     const chipdock_host_tensor* const* tensors,
                                     const chipdock_dtype* output_dtypes) {
  chipdock_host_op_desc desc;
  memset(&desc, 0, sizeof(desc));
  desc.struct_size = sizeof(desc);
  desc.op = op;
  desc.since_version = since;
  desc.input_count = inputs;
  desc.inputs = tensors;
  desc.output_dtypes = output_dtypes;
  return desc;
}

static int g_released = 0;
static void CHIPDOCK_CALL count_release(void* context) {
  (void)context;
  ++g_released;
}

static void plugins_are_listed_with_state_and_cause(void) {
  const char* paths[2] = {"/nowhere/lib.so", NULL};
  chipdock_host_desc desc = {sizeof(desc), 0, 2, 0, NULL, "none"};
  chipdock_host_plugin_info info = {sizeof(info), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL};
  chipdock_host_runtime* host = NULL;
  chipdock_host_device* device = NULL;
  uint32_t count = 0, index = 9;
  paths[1] = cpu_path();
  desc.paths = paths;
  OK(chipdock_host_create(&desc, &host, E));
  OK(chipdock_host_plugin_count(host, &count, E));
  CHECK(count == 2);
  OK(chipdock_host_plugin_describe(host, 0, &info, E));
  CHECK(info.state == CHIPDOCK_HOST_PLUGIN_BROKEN && info.code == CHIPDOCK_UNAVAILABLE);
  CHECK(strstr(info.cause, "/nowhere/lib.so") != NULL && info.device_count == 0);
  OK(chipdock_host_plugin_describe(host, 1, &info, E));
  CHECK(info.state == CHIPDOCK_HOST_PLUGIN_READY && info.code == CHIPDOCK_OK);
  CHECK(strcmp(info.name, "cpu") == 0 && strchr(info.id, '.') != NULL && info.device_count >= 1);
  CHECK(CHIPDOCK_VERSION_MAJOR(info.abi_version) == 1 && info.cause[0] == '\0');
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "plugin 2", chipdock_host_plugin_describe(host, 2, &info, E));
  FAILS(CHIPDOCK_UNAVAILABLE, "gone.so", chipdock_host_load_plugin(host, "/gone.so", &index, E));
  CHECK(index == 9);
  OK(chipdock_host_plugin_count(host, &count, E));
  CHECK(count == 3);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "not loaded: /nowhere/lib.so (UNAVAILABLE",
        chipdock_host_device_open(host, "acme:0", NULL, &device, E));
  CHECK(device == NULL);
  chipdock_host_destroy(host);
}

static void a_folder_with_a_manifest_is_taken(void) {
  char folder[4096];
  const char* paths[1];
  chipdock_host_desc desc = {sizeof(desc), CHIPDOCK_HOST_SEARCH, 1, 0, NULL, "none"};
  chipdock_host_runtime* host = NULL;
  chipdock_host_device* device = NULL;
  strncpy(folder, cpu_path(), sizeof(folder) - 1);
  folder[sizeof(folder) - 1] = '\0';
  *strrchr(folder, '/') = '\0';
  paths[0] = folder;
  desc.paths = paths;
  OK(chipdock_host_create(&desc, &host, E));
  device = open_cpu(host);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

static void devices_are_found_by_name(void) {
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = NULL;
  chipdock_device_info info;
  chipdock_host_memory_stats stats = {sizeof(stats), 0, 0, 0, 0, 0};
  memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  OK(chipdock_host_device_describe(host, "cpu", &info, E));
  CHECK(info.heap_count >= 1 && info.product[0] != '\0');
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "cpu:0",
        chipdock_host_device_open(host, "tpu:0", NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "does not exist",
        chipdock_host_device_open(host, "cpu:99", NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "must look like",
        chipdock_host_device_open(host, "cpu:x", NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "'\\xff\\xfe'",
        chipdock_host_device_open(host, "\xff\xfe", NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "name is NULL",
        chipdock_host_device_open(host, NULL, NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "host is NULL",
        chipdock_host_device_open(NULL, "cpu:0", NULL, &device, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "out_device is NULL",
        chipdock_host_device_open(host, "cpu:0", NULL, NULL, E));
  CHECK(device == NULL);
  {
    const chipdock_option option = {sizeof(option), 0, "no_such_option", "1"};
    const chipdock_option* const options[1] = {&option};
    const chipdock_host_device_desc desc = {sizeof(desc), 1, options};
    FAILS(CHIPDOCK_INVALID_ARGUMENT, "no_such_option",
          chipdock_host_device_open(host, "cpu:0", &desc, &device, E));
  }
  device = open_cpu(host);
  OK(chipdock_host_device_sync(device, -1, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "timeout_ns is -2", chipdock_host_device_sync(device, -2, E));
  OK(chipdock_host_device_memory(device, 0, &stats, E));
  CHECK(stats.used_bytes == 0);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "trim", chipdock_host_device_memory(device, 2, &stats, E));
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

static void a_device_that_does_not_open_is_given_up(void) {
  char path[4096];
  const char* paths[1];
  chipdock_host_desc desc = {sizeof(desc), 0, 1, 50 * 1000 * 1000, NULL, "none"};
  chipdock_host_runtime* host = NULL;
  chipdock_host_device* device = NULL;
  const char* folder = getenv("CHIPDOCK_TEST_LIBDIR");
  CHECK(folder != NULL && strlen(folder) < 4000);
  sprintf(path, "%s/libhangs_open.so", folder);
  paths[0] = path;
  desc.paths = paths;
  OK(chipdock_host_create(&desc, &host, E));
  FAILS(CHIPDOCK_TIMEOUT, "opening fake:0",
        chipdock_host_device_open(host, "fake:0", NULL, &device, E));
  CHECK(device == NULL);
  chipdock_host_destroy(host);
}

static void structs_follow_the_size_rules(void) {
  struct {
    chipdock_host_desc desc;
    uint32_t tail[4];
  } large;
  chipdock_host_runtime* host = NULL;
  chipdock_host_desc desc = {sizeof(desc), 1u << 20, 0, 0, NULL, NULL};
  memset(&large, 0, sizeof(large));
  large.desc.struct_size = sizeof(large);
  large.desc.layers = "none";
  OK(chipdock_host_create(&large.desc, &host, E));
  chipdock_host_destroy(host);
  large.tail[3] = 1;
  host = NULL;
  FAILS(CHIPDOCK_UNSUPPORTED, "does not know", chipdock_host_create(&large.desc, &host, E));
  FAILS(CHIPDOCK_UNSUPPORTED, "flags", chipdock_host_create(&desc, &host, E));
  desc.flags = 0;
  desc.timeout_ns = -2;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "timeout_ns", chipdock_host_create(&desc, &host, E));
  desc.struct_size = 4;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "struct_size", chipdock_host_create(&desc, &host, E));
  /* Without a record, or with one that has no room for the text, the status alone tells. */
  CHECK(chipdock_host_create(&desc, &host, NULL) == CHIPDOCK_INVALID_ARGUMENT && host == NULL);
  OK(chipdock_host_create(NULL, &host, E));
  chipdock_host_destroy(host);
  chipdock_host_destroy(NULL);
}

static void tensors_copy_view_and_borrow(void) {
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  const int64_t shape[2] = {2, 3}, three[1] = {3}, zero[1] = {0};
  const float values[6] = {1, 2, 3, 4, 5, 6}, doubled[3] = {4, 5, 6};
  float mine[6] = {0, 0, 0, 0, 0, 0};
  chipdock_host_tensor* whole = make_tensor(device, kFloat, 2, shape, values);
  chipdock_host_tensor *half = NULL, *borrowed = NULL, *empty = NULL;
  chipdock_host_tensor_desc desc = {sizeof(desc), {0, 0, 0}, 1, 0, NULL, NULL, NULL, NULL};
  chipdock_host_tensor_info info = {sizeof(info), {0, 0, 0}, 0, 0, NULL, 0, NULL, NULL};
  desc.dtype = kFloat;
  desc.shape = three;
  OK(chipdock_host_tensor_view(whole, &desc, 12, &half, E));
  CHECK(holds(half, doubled, 3));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "24", chipdock_host_tensor_view(whole, &desc, 16, &borrowed, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "multiple",
        chipdock_host_tensor_view(whole, &desc, 2, &borrowed, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "8 bytes", chipdock_host_tensor_read(whole, mine, 8, NULL, E));
  desc.dtype.bits = 33;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "dtype",
        chipdock_host_tensor_create(device, &desc, &borrowed, E));
  desc.dtype = kFloat;
  desc.rank = 2;
  desc.shape = shape;
  desc.data = mine;
  desc.release = count_release;
  OK(chipdock_host_tensor_create(device, &desc, &borrowed, E));
  OK(chipdock_host_tensor_copy(whole, borrowed, NULL, E));
  CHECK(mine[0] == 1 && mine[5] == 6);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "share memory",
        chipdock_host_tensor_copy(whole, whole, NULL, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "elements", chipdock_host_tensor_copy(whole, half, NULL, E));
  chipdock_host_tensor_destroy(whole); /* the view keeps its memory */
  CHECK(holds(half, doubled, 3));
  chipdock_host_tensor_destroy(half);
  CHECK(g_released == 0);
  chipdock_host_tensor_destroy(borrowed);
  CHECK(g_released == 1);
  empty = make_tensor(device, kFloat, 1, zero, NULL);
  OK(chipdock_host_tensor_read(empty, NULL, 0, NULL, E));
  OK(chipdock_host_tensor_describe(empty, &info, E));
  CHECK(info.bytes == 0 && info.rank == 1 && strcmp(info.device, "cpu:0") == 0);
  chipdock_host_tensor_destroy(empty);
  chipdock_host_tensor_destroy(NULL);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

struct Inside {
  chipdock_host_stream* stream;
  chipdock_status state, sync;
};

static void CHIPDOCK_CALL sync_own_stream(void* context, chipdock_status state) {
  struct Inside* inside = (struct Inside*)context;
  inside->state = state;
  inside->sync = chipdock_host_stream_sync(inside->stream, -1, NULL);
}

static void streams_order_work(void) {
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  const int64_t shape[1] = {4};
  const float values[4] = {1, 2, 3, 4};
  float back[4] = {0, 0, 0, 0};
  chipdock_host_tensor* tensor = make_tensor(device, kFloat, 1, shape, NULL);
  chipdock_host_stream *first = NULL, *second = NULL;
  chipdock_host_event *begin = NULL, *end = NULL;
  const chipdock_event_desc timing = {sizeof(timing), CHIPDOCK_EVENT_TIMING, NULL, NULL, 0};
  struct Inside inside = {NULL, -1, CHIPDOCK_OK};
  chipdock_host_function_desc function;
  int64_t elapsed = -1;
  OK(chipdock_host_stream_create(device, NULL, &first, E));
  OK(chipdock_host_stream_create(device, NULL, &second, E));
  OK(chipdock_host_event_create(device, &timing, &begin, E));
  OK(chipdock_host_event_create(device, &timing, &end, E));
  OK(chipdock_host_event_record(begin, first, E));
  OK(chipdock_host_tensor_write(tensor, values, sizeof(values), first, E));
  OK(chipdock_host_event_record(end, first, E));
  OK(chipdock_host_stream_wait(second, end, E));
  OK(chipdock_host_tensor_read(tensor, back, sizeof(back), second, E));
  chipdock_host_tensor_destroy(tensor); /* its memory waits for both streams */
  OK(chipdock_host_stream_sync(second, -1, E));
  CHECK(memcmp(values, back, sizeof(back)) == 0);
  OK(chipdock_host_event_sync(end, -1, E));
  OK(chipdock_host_event_elapsed(begin, end, &elapsed, E));
  CHECK(elapsed >= 0);
  memset(&function, 0, sizeof(function));
  function.struct_size = sizeof(function);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "function is NULL",
        chipdock_host_stream_call(first, &function, E));
  function.function = sync_own_stream;
  function.context = &inside;
  inside.stream = first;
  OK(chipdock_host_stream_call(first, &function, E));
  OK(chipdock_host_stream_sync(first, -1, E));
  CHECK(inside.state == CHIPDOCK_OK && inside.sync == CHIPDOCK_FAILED_PRECONDITION);
  chipdock_host_event_destroy(begin);
  chipdock_host_event_destroy(end);
  chipdock_host_stream_destroy(first);
  chipdock_host_stream_destroy(second);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

static void one_operator_runs(void) {
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  const int64_t shape[1] = {3};
  const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30}, sum[3] = {11, 22, 33};
  const int64_t numbers[3] = {1, 2, 3};
  const chipdock_host_tensor* inputs[2] = {NULL, NULL};
  chipdock_host_tensor* tensors[4] = {NULL, NULL, NULL, NULL};
  chipdock_host_tensor* outputs[1] = {NULL};
  chipdock_host_op_desc desc = op_desc("Add", 14, 2, inputs, &kFloat);
  int round;
  inputs[0] = tensors[0] = make_tensor(device, kFloat, 1, shape, a);
  inputs[1] = tensors[1] = make_tensor(device, kFloat, 1, shape, b);
  tensors[2] = make_tensor(device, kInt, 1, shape, numbers);
  tensors[3] = make_tensor(device, kBool, 1, shape, NULL);
  for (round = 0; round < 2; ++round) { /* compiled, then from the cache and into given memory */
    OK(chipdock_host_run_op(device, &desc, 1, outputs, E));
    CHECK(holds(outputs[0], sum, 3));
  }
  chipdock_host_tensor_destroy(outputs[0]);
  outputs[0] = NULL;
  inputs[0] = inputs[1] = tensors[3]; /* no kernel adds truth values */
  FAILS(CHIPDOCK_UNSUPPORTED, "Add", chipdock_host_run_op(device, &desc, 1, outputs, E));
  inputs[0] = tensors[0];
  inputs[1] = tensors[1];
  outputs[0] = tensors[2];
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "int64", chipdock_host_run_op(device, &desc, 1, outputs, E));
  CHECK(outputs[0] == tensors[2]);
  outputs[0] = NULL;
  desc.op = "Ad";
  FAILS(CHIPDOCK_UNSUPPORTED, "Ad", chipdock_host_run_op(device, &desc, 1, outputs, E));
  desc.op = NULL;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "op is NULL",
        chipdock_host_run_op(device, &desc, 1, outputs, E));
  CHECK(outputs[0] == NULL);
  for (round = 0; round < 4; ++round) chipdock_host_tensor_destroy(tensors[round]);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

static void outputs_and_bodies_that_an_operator_has_not_are_refused(void) {
  static const char* const kControl[3] = {"If", "Loop", "Scan"};
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  const int64_t shape[1] = {3};
  const chipdock_dtype dtypes[3] = {kFloat, kFloat, kFloat}, numbers[2] = {kInt, kInt};
  const chipdock_host_tensor* inputs[2];
  chipdock_host_tensor* tensor = make_tensor(device, kFloat, 1, shape, NULL);
  chipdock_host_tensor* outputs[3] = {NULL, NULL, NULL};
  chipdock_host_op_desc desc = op_desc("Relu", 14, 1, inputs, dtypes);
  uint32_t i;
  inputs[0] = inputs[1] = tensor;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "no output 1",
        chipdock_host_run_op(device, &desc, 3, outputs, E));
  CHECK(outputs[0] == NULL && outputs[1] == NULL && outputs[2] == NULL);
  desc = op_desc("Shape", 15, 1, inputs, numbers);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "the operator has 1",
        chipdock_host_run_op(device, &desc, 2, outputs, E));
  for (i = 0; i < 6; ++i) {
    desc = op_desc(kControl[i / 2], 16, 2 * (i % 2), inputs, dtypes);
    FAILS(CHIPDOCK_INVALID_ARGUMENT, "bodies []",
          chipdock_host_run_op(device, &desc, 1, outputs, E));
  }
  chipdock_host_tensor_destroy(tensor);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

static void two_hosts_live_side_by_side(void) {
  chipdock_host_runtime *first = make_host(), *second = make_host();
  chipdock_host_device *one = open_cpu(first), *two = open_cpu(second);
  const int64_t shape[1] = {2};
  const float values[2] = {5, 6};
  float back[2] = {0, 0};
  chipdock_host_tensor* a = make_tensor(one, kFloat, 1, shape, values);
  chipdock_host_tensor* b = make_tensor(two, kFloat, 1, shape, NULL);
  chipdock_host_tensor* late = NULL;
  chipdock_host_tensor_desc desc = {sizeof(desc), {0, 0, 0}, 1, 0, NULL, NULL, NULL, NULL};
  OK(chipdock_host_tensor_copy(a, b, NULL, E));
  chipdock_host_destroy(first); /* what came from it ends, the other host goes on */
  CHECK(holds(b, values, 2));
  desc.dtype = kFloat;
  desc.shape = shape;
  FAILS(CHIPDOCK_SHUTDOWN, "cpu", chipdock_host_tensor_create(one, &desc, &late, E));
  FAILS(CHIPDOCK_SHUTDOWN, "cpu", chipdock_host_tensor_read(a, back, sizeof(back), NULL, E));
  CHECK(late == NULL);
  chipdock_host_tensor_destroy(a);
  chipdock_host_device_close(one);
  chipdock_host_device_close(two); /* before what was made from it */
  CHECK(holds(b, values, 2));
  chipdock_host_tensor_destroy(b);
  chipdock_host_destroy(second);
}

int main(void) {
  CHECK(chipdock_host_version() == CHIPDOCK_HOST_VERSION);
  plugins_are_listed_with_state_and_cause();
  a_folder_with_a_manifest_is_taken();
  devices_are_found_by_name();
  a_device_that_does_not_open_is_given_up();
  structs_follow_the_size_rules();
  tensors_copy_view_and_borrow();
  streams_order_work();
  one_operator_runs();
  outputs_and_bodies_that_an_operator_has_not_are_refused();
  two_hosts_live_side_by_side();
  printf("%d failed checks\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
