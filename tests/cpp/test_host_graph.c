/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs through host.h, in C99: building, compiling, running at several shapes, and mistakes. */
#include "host_support.h"

static int32_t add_value(chipdock_host_graph* graph, const char* name, chipdock_dtype dtype,
                         int32_t rank, const int64_t* dims, const void* data, uint64_t size) {
  chipdock_host_value_desc desc;
  int32_t value = -7;
  memset(&desc, 0, sizeof(desc));
  desc.struct_size = sizeof(desc);
  desc.name = name;
  desc.dtype = dtype;
  desc.rank = rank;
  desc.dims = dims;
  desc.data = data;
  desc.size = size;
  OK(chipdock_host_graph_add_value(graph, &desc, &value, E));
  return value;
}

static chipdock_host_node_desc node_desc(const char* op, int32_t since, uint32_t inputs,
                                         const int32_t* input_values, const int32_t* output_value) {
  chipdock_host_node_desc desc;
  memset(&desc, 0, sizeof(desc));
  desc.struct_size = sizeof(desc);
  desc.op = op;
  desc.since_version = since;
  desc.input_count = inputs;
  desc.inputs = input_values;
  desc.output_count = 1;
  desc.outputs = output_value;
  return desc;
}

static int g_released = 0;
static void CHIPDOCK_CALL count_release(void* context) {
  (void)context;
  ++g_released;
}

/* Relu(x @ w + b) for x of any number of rows; w is [3,2], b is [2]. */
static chipdock_host_graph* make_layer(void) {
  static const float kW[6] = {1, 0, 0, 1, 1, 1}, kB[2] = {-1, 1};
  static const int64_t kWDims[2] = {3, 2}, kBDims[1] = {2}, kXDims[2] = {-1, 3};
  chipdock_host_graph* graph = NULL;
  chipdock_host_node_desc node;
  int32_t x, w, b, product, sum, y, pair[2];
  OK(chipdock_host_graph_create(&graph, E));
  x = add_value(graph, "x", kFloat, 2, kXDims, NULL, 0);
  w = add_value(graph, "w", kFloat, 2, kWDims, kW, sizeof(kW));
  b = add_value(graph, "b", kFloat, 1, kBDims, kB, sizeof(kB));
  product = add_value(graph, "product", kFloat, -1, NULL, NULL, 0);
  sum = add_value(graph, NULL, kFloat, -1, NULL, NULL, 0);
  y = add_value(graph, "y", kFloat, -1, NULL, NULL, 0);
  OK(chipdock_host_graph_set_inputs(graph, 1, &x, E));
  pair[0] = x;
  pair[1] = w;
  node = node_desc("MatMul", 13, 2, pair, &product);
  OK(chipdock_host_graph_add_node(graph, &node, E));
  pair[0] = product;
  pair[1] = b;
  node = node_desc("Add", 14, 2, pair, &sum);
  OK(chipdock_host_graph_add_node(graph, &node, E));
  node = node_desc("Relu", 14, 1, &sum, &y);
  node.name = "last";
  OK(chipdock_host_graph_add_node(graph, &node, E));
  OK(chipdock_host_graph_set_outputs(graph, 1, &y, E));
  return graph;
}

static void a_graph_runs_at_two_shapes(void) {
  static const float kX[6] = {1, 2, 3, -9, 0, 2}, kY[4] = {3, 6, 0, 3};
  const int64_t one[2] = {1, 3}, two[2] = {2, 3}, bad[2] = {2, 4};
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  chipdock_host_graph* graph = make_layer();
  chipdock_host_plan* plan = NULL;
  chipdock_host_plan_info info = {sizeof(info), 0, 0, 0, 0};
  chipdock_host_node_info node;
  const chipdock_host_tensor* inputs[1];
  chipdock_host_tensor *small, *large, *wrong, *integers, *outputs[1] = {NULL};
  chipdock_host_run_desc run = {sizeof(run), 1, NULL, NULL, 0};
  chipdock_host_stream* stream = NULL;
  const int64_t numbers[3] = {1, 2, 3};
  run.inputs = inputs;
  OK(chipdock_host_plan_compile(graph, device, NULL, &plan, E));
  chipdock_host_graph_destroy(graph);
  OK(chipdock_host_plan_describe(plan, &info, E));
  CHECK(info.input_count == 1 && info.output_count == 1 && info.node_count == 3);
  memset(&node, 0, sizeof(node));
  node.struct_size = sizeof(node);
  OK(chipdock_host_plan_node(plan, 2, &node, E));
  CHECK(strcmp(node.name, "last") == 0 && strcmp(node.op, "Relu") == 0);
  CHECK(node.placement == CHIPDOCK_HOST_PLACEMENT_DEVICE && strcmp(node.device, "cpu:0") == 0);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "node 3", chipdock_host_plan_node(plan, 3, &node, E));

  small = make_tensor(device, kFloat, 2, one, kX);
  large = make_tensor(device, kFloat, 2, two, kX);
  inputs[0] = small;
  OK(chipdock_host_plan_run(plan, &run, 1, outputs, E));
  CHECK(holds(outputs[0], kY, 2));
  inputs[0] = large; /* the output of the first run does not fit the second */
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "[2,2]", chipdock_host_plan_run(plan, &run, 1, outputs, E));
  chipdock_host_tensor_destroy(outputs[0]);
  outputs[0] = NULL;
  OK(chipdock_host_stream_create(device, NULL, &stream, E));
  run.stream = stream;
  OK(chipdock_host_plan_run(plan, &run, 1, outputs, E));
  CHECK(holds(outputs[0], kY, 4));
  OK(chipdock_host_plan_run(plan, &run, 1, outputs, E)); /* and again, into the same tensor */
  CHECK(holds(outputs[0], kY, 4));
  chipdock_host_tensor_destroy(outputs[0]);
  outputs[0] = NULL;

  wrong = make_tensor(device, kFloat, 2, bad, NULL);
  inputs[0] = wrong;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "'x'", chipdock_host_plan_run(plan, &run, 1, outputs, E));
  integers = make_tensor(device, kInt, 2, one, numbers);
  inputs[0] = integers;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "int64", chipdock_host_plan_run(plan, &run, 1, outputs, E));
  inputs[0] = NULL;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "NULL", chipdock_host_plan_run(plan, &run, 1, outputs, E));
  inputs[0] = large;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "1 outputs", chipdock_host_plan_run(plan, &run, 0, outputs, E));
  run.input_count = 0;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "1 inputs", chipdock_host_plan_run(plan, &run, 1, outputs, E));
  CHECK(outputs[0] == NULL);

  chipdock_host_device_close(device); /* before what was made from it */
  chipdock_host_stream_destroy(stream);
  chipdock_host_tensor_destroy(small);
  chipdock_host_tensor_destroy(large);
  chipdock_host_tensor_destroy(wrong);
  chipdock_host_tensor_destroy(integers);
  chipdock_host_plan_destroy(plan);
  chipdock_host_destroy(host);
}

static void mistakes_in_a_graph_are_found(void) {
  chipdock_host_graph* graph = NULL;
  const int64_t dims[1] = {2};
  const float data[2] = {1, 2};
  int32_t x, y, z, twice[2], far = 99;
  chipdock_host_node_desc node;
  chipdock_host_value_desc value;
  chipdock_attribute attribute;
  const chipdock_attribute* const attributes[1] = {&attribute};
  OK(chipdock_host_graph_create(&graph, E));
  x = add_value(graph, "x", kFloat, 1, dims, NULL, 0);
  y = add_value(graph, "y", kFloat, -1, NULL, NULL, 0);
  z = add_value(graph, "z", kFloat, -1, NULL, NULL, 0);
  node = node_desc("Relu", 14, 1, &x, &y);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "'x'", chipdock_host_graph_add_node(graph, &node, E));
  twice[0] = twice[1] = x;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "twice", chipdock_host_graph_set_inputs(graph, 2, twice, E));
  OK(chipdock_host_graph_set_inputs(graph, 1, &x, E));
  FAILS(CHIPDOCK_FAILED_PRECONDITION, "set", chipdock_host_graph_set_inputs(graph, 1, &z, E));
  node.inputs = &far;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "99", chipdock_host_graph_add_node(graph, &node, E));
  node.inputs = &x;
  node.outputs = &x;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "has a source", chipdock_host_graph_add_node(graph, &node, E));
  node.outputs = &y;
  node.since_version = 0;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "since_version", chipdock_host_graph_add_node(graph, &node, E));
  node.since_version = 14;
  memset(&attribute, 0, sizeof(attribute));
  attribute.struct_size = sizeof(attribute);
  attribute.name = "alpha";
  attribute.kind = 99;
  node.attributes = attributes;
  node.attribute_count = 1;
  FAILS(CHIPDOCK_UNSUPPORTED, "alpha", chipdock_host_graph_add_node(graph, &node, E));
  node.attribute_count = 0;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "'y'", chipdock_host_graph_set_outputs(graph, 1, &y, E));
  OK(chipdock_host_graph_add_node(graph, &node, E));
  OK(chipdock_host_graph_set_outputs(graph, 1, &y, E));

  memset(&value, 0, sizeof(value));
  value.struct_size = sizeof(value);
  value.dtype = kFloat;
  value.rank = 1;
  value.dims = dims;
  value.data = data;
  value.size = 7;
  value.release = count_release;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "8 bytes",
        chipdock_host_graph_add_value(graph, &value, &far, E));
  CHECK(g_released == 0 && far == 99);
  chipdock_host_graph_destroy(graph);
}

static void kept_constants_are_released_once(void) {
  static char store[3 * 16];
  const int64_t dims[1] = {4};
  chipdock_host_graph* graph = NULL;
  chipdock_host_value_desc value;
  int32_t number = 0;
  memset(&value, 0, sizeof(value));
  value.struct_size = sizeof(value);
  value.dtype = kFloat;
  value.rank = 1;
  value.dims = dims;
  value.data = store + 16 - (size_t)store % 16; /* C99 has no way to ask for 16 */
  value.size = 4 * sizeof(float);
  value.release = count_release;
  OK(chipdock_host_graph_create(&graph, E));
  g_released = 0;
  OK(chipdock_host_graph_add_value(graph, &value, &number, E));
  CHECK(g_released == 0);
  value.data = (const char*)value.data + 4;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "aligned",
        chipdock_host_graph_add_value(graph, &value, &number, E));
  CHECK(g_released == 0);
  chipdock_host_graph_destroy(graph);
  CHECK(g_released == 1);
}

static void compiling_freezes_and_names_what_is_missing(void) {
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  chipdock_host_graph* graph = NULL;
  chipdock_host_plan* plan = NULL;
  chipdock_host_plan_desc desc;
  chipdock_host_node_desc node;
  int32_t x, y;
  OK(chipdock_host_graph_create(&graph, E));
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "no outputs",
        chipdock_host_plan_compile(graph, device, NULL, &plan, E));
  x = add_value(graph, "x", kFloat, -1, NULL, NULL, 0);
  y = add_value(graph, "y", kFloat, -1, NULL, NULL, 0);
  OK(chipdock_host_graph_set_inputs(graph, 1, &x, E));
  node = node_desc("NoSuchOperator", 1, 1, &x, &y);
  OK(chipdock_host_graph_add_node(graph, &node, E));
  OK(chipdock_host_graph_set_outputs(graph, 1, &y, E));
  memset(&desc, 0, sizeof(desc));
  desc.struct_size = sizeof(desc);
  desc.fallback = 7;
  FAILS(CHIPDOCK_UNSUPPORTED, "fallback",
        chipdock_host_plan_compile(graph, device, &desc, &plan, E));
  FAILS(CHIPDOCK_UNSUPPORTED, "NoSuchOperator",
        chipdock_host_plan_compile(graph, device, NULL, &plan, E));
  FAILS(CHIPDOCK_FAILED_PRECONDITION, "HGR-5", chipdock_host_graph_add_node(graph, &node, E));
  CHECK(plan == NULL);
  chipdock_host_graph_destroy(graph);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

/* If(c) { x + x } else { x } with x captured by both bodies. */
static void bodies_capture_outer_values(void) {
  const int64_t one[1] = {1};
  const float value[1] = {3}, doubled[1] = {6};
  const unsigned char yes = 1, no = 0;
  chipdock_host_runtime* host = make_host();
  chipdock_host_device* device = open_cpu(host);
  chipdock_host_graph *graph = NULL, *bodies[2] = {NULL, NULL};
  chipdock_host_body body[2];
  const chipdock_host_body* const list[2] = {&body[0], &body[1]};
  chipdock_host_node_desc node;
  chipdock_host_plan* plan = NULL;
  const chipdock_host_tensor* inputs[2];
  chipdock_host_tensor *x_tensor, *condition, *outputs[1] = {NULL};
  chipdock_host_run_desc run = {sizeof(run), 2, NULL, NULL, 0};
  int32_t c, x, y, both[2];
  int i;
  OK(chipdock_host_graph_create(&graph, E));
  both[0] = c = add_value(graph, "c", kBool, 0, NULL, NULL, 0);
  both[1] = x = add_value(graph, "x", kFloat, -1, NULL, NULL, 0);
  y = add_value(graph, "y", kFloat, -1, NULL, NULL, 0);
  OK(chipdock_host_graph_set_inputs(graph, 2, both, E));
  for (i = 0; i < 2; ++i) {
    int32_t inner, result, pair[2];
    OK(chipdock_host_graph_create(&bodies[i], E));
    pair[0] = pair[1] = inner = add_value(bodies[i], "inner", kFloat, -1, NULL, NULL, 0);
    result = add_value(bodies[i], "result", kFloat, -1, NULL, NULL, 0);
    OK(chipdock_host_graph_set_inputs(bodies[i], 1, &inner, E));
    node = i == 0 ? node_desc("Add", 14, 2, pair, &result)
                  : node_desc("Identity", 16, 1, pair, &result);
    OK(chipdock_host_graph_add_node(bodies[i], &node, E));
    OK(chipdock_host_graph_set_outputs(bodies[i], 1, &result, E));
    body[i].struct_size = sizeof(body[i]);
    body[i].capture_count = 1;
    body[i].attribute = i == 0 ? "then_branch" : "else_branch";
    body[i].graph = bodies[i];
    body[i].captures = &x;
  }
  node = node_desc("If", 16, 1, &c, &y);
  node.body_count = 2;
  node.bodies = list;
  body[0].captures = &c; /* a bool where the body wants a float */
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "then_branch", chipdock_host_graph_add_node(graph, &node, E));
  body[0].captures = &x;
  OK(chipdock_host_graph_add_node(graph, &node, E));
  OK(chipdock_host_graph_set_outputs(graph, 1, &y, E));
  FAILS(CHIPDOCK_FAILED_PRECONDITION, "body", chipdock_host_graph_set_outputs(bodies[0], 1, &x, E));
  OK(chipdock_host_plan_compile(graph, device, NULL, &plan, E));
  for (i = 0; i < 2; ++i) chipdock_host_graph_destroy(bodies[i]);
  chipdock_host_graph_destroy(graph);
  x_tensor = make_tensor(device, kFloat, 1, one, value);
  for (i = 0; i < 2; ++i) {
    condition = make_tensor(device, kBool, 0, NULL, i == 0 ? &yes : &no);
    inputs[0] = condition;
    inputs[1] = x_tensor;
    run.inputs = inputs;
    OK(chipdock_host_plan_run(plan, &run, 1, outputs, E));
    CHECK(holds(outputs[0], i == 0 ? doubled : value, 1));
    chipdock_host_tensor_destroy(outputs[0]);
    chipdock_host_tensor_destroy(condition);
    outputs[0] = NULL;
  }
  chipdock_host_tensor_destroy(x_tensor);
  chipdock_host_plan_destroy(plan);
  chipdock_host_device_close(device);
  chipdock_host_destroy(host);
}

/* A body without captures: of its values, the first `inputs` are inputs and outputs alike. */
static chipdock_host_graph* make_body(uint32_t inputs, uint32_t outputs) {
  chipdock_host_graph* graph = NULL;
  int32_t values[4];
  uint32_t i;
  OK(chipdock_host_graph_create(&graph, E));
  for (i = 0; i < inputs; ++i) values[i] = add_value(graph, NULL, kFloat, -1, NULL, NULL, 0);
  OK(chipdock_host_graph_set_inputs(graph, inputs, values, E));
  OK(chipdock_host_graph_set_outputs(graph, outputs, values, E));
  return graph;
}

static void bodies_that_do_not_fit_are_refused(void) {
  chipdock_host_graph *graph = NULL, *three = make_body(3, 2), *few = make_body(3, 1);
  chipdock_host_body body = {sizeof(body), 0, "body", NULL, NULL};
  const chipdock_host_body* const list[2] = {&body, &body};
  chipdock_host_node_desc node;
  int32_t x, y, z, three_values[3], outputs[2];
  OK(chipdock_host_graph_create(&graph, E));
  x = add_value(graph, "x", kFloat, -1, NULL, NULL, 0);
  y = add_value(graph, "y", kFloat, -1, NULL, NULL, 0);
  z = add_value(graph, "z", kFloat, -1, NULL, NULL, 0);
  OK(chipdock_host_graph_set_inputs(graph, 1, &x, E));
  three_values[0] = three_values[1] = three_values[2] = x;
  outputs[0] = y;
  outputs[1] = z;
  body.graph = three;
  node = node_desc("Loop", 16, 3, three_values, outputs);
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "bodies []", chipdock_host_graph_add_node(graph, &node, E));
  node.bodies = list;
  node.body_count = 2;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "body, body", chipdock_host_graph_add_node(graph, &node, E));
  node.body_count = 1;
  body.attribute = "banana";
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "banana", chipdock_host_graph_add_node(graph, &node, E));
  body.attribute = "body";
  body.graph = few; /* a condition, and nothing for the carried value */
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "1 outputs", chipdock_host_graph_add_node(graph, &node, E));
  body.graph = three;
  node.input_count = 1;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "must have 2", chipdock_host_graph_add_node(graph, &node, E));
  node.input_count = 2;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "3 inputs", chipdock_host_graph_add_node(graph, &node, E));
  node.input_count = 3;
  three_values[2] = CHIPDOCK_HOST_NO_VALUE;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "not given", chipdock_host_graph_add_node(graph, &node, E));
  three_values[2] = x;
  node.output_count = 2;
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "2 outputs", chipdock_host_graph_add_node(graph, &node, E));
  node.output_count = 1;
  node.op = "Scan";
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "num_scan_inputs=0",
        chipdock_host_graph_add_node(graph, &node, E));
  node.op = "If";
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "then_branch", chipdock_host_graph_add_node(graph, &node, E));
  node.op = "Relu";
  FAILS(CHIPDOCK_INVALID_ARGUMENT, "only If", chipdock_host_graph_add_node(graph, &node, E));
  node.op = "Loop";
  OK(chipdock_host_graph_add_node(graph, &node, E));
  chipdock_host_graph_destroy(three);
  chipdock_host_graph_destroy(few);
  chipdock_host_graph_destroy(graph);
}

int main(void) {
  a_graph_runs_at_two_shapes();
  mistakes_in_a_graph_are_found();
  kept_constants_are_released_once();
  compiling_freezes_and_names_what_is_missing();
  bodies_capture_outer_values();
  bodies_that_do_not_fit_are_refused();
  printf("%d failed checks\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
