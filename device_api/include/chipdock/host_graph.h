/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Building a model from ONNX operators: values by number, nodes in execution order. The library
 * reads no files and infers no dtypes; the framework that embeds it knows both.
 *
 * Duties:
 *   HGR-1  Every value has one source: it is a graph input, a constant, or the output of one node.
 *   HGR-2  Nodes are added in execution order: what a node reads is an input, a constant, or the
 *          output of a node added before.
 *   HGR-3  Every value that a node reads or writes has the dtype that ONNX's definition of the
 *          operator gives it. The library has no table of those rules: what breaks them is not
 *          found, and kernels may read outside of tensors. Ranks and dims are advice and may be
 *          unknown.
 *   HGR-4  A node names the version at which its operator's definition was introduced (ONNX's "since
 *          version", Softmax 13 in opset 17) and gives every attribute that has a default there.
 *   HGR-5  A graph that was compiled or made a body does not change any more.
 *   HGR-6  The values that a body reads of its outer graph follow its formal inputs, in the order of
 *          `captures`.
 */
#ifndef CHIPDOCK_HOST_GRAPH_H_
#define CHIPDOCK_HOST_GRAPH_H_

#include "chipdock/host_base.h"
#include "chipdock/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** In `inputs` and `outputs` of a node: an optional argument that is not given. */
#define CHIPDOCK_HOST_NO_VALUE (-1)

/** A value of a graph. With data it is a constant. */
typedef struct chipdock_host_value_desc {
  uint32_t struct_size;
  chipdock_dtype dtype; /**< [HGR-3] */
  int32_t rank;         /**< -1 = unknown; a constant's is known. */
  uint32_t flags;       /**< 0. */
  const int64_t* dims;  /**< rank extents, -1 = unknown; a constant's are known. */
  const char* name;     /**< For people and errors; NULL: none. */
  const void* data;     /**< Constants: row-major elements in host memory, else NULL. */
  uint64_t size;        /**< Bytes of `data`. */
  /** NULL: `data` is copied. Else it is kept and this is called once when it is not used. */
  void(CHIPDOCK_CALL* release)(void* context);
  void* context; /**< For `release`. */
} chipdock_host_value_desc;

/** The body of If, Loop or Scan. */
typedef struct chipdock_host_body {
  uint32_t struct_size;
  uint32_t capture_count;
  const char* attribute;      /**< "then_branch", "else_branch", "body". */
  chipdock_host_graph* graph; /**< Stays the caller's. [HGR-5] */
  const int32_t* captures;    /**< Values of the outer graph that the body reads. [HGR-6] */
} chipdock_host_body;

/** One operator call. */
typedef struct chipdock_host_node_desc {
  uint32_t struct_size;
  int32_t since_version; /**< [HGR-4] */
  const char* domain;    /**< NULL or "" is the default ONNX domain. */
  const char* op;        /**< "MatMul". Not NULL. */
  const char* name;      /**< For people and errors; NULL: none. */
  uint32_t attribute_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t body_count;
  const chipdock_attribute* const* attributes; /**< As kernel.h says. */
  const int32_t* inputs;                       /**< Values, or CHIPDOCK_HOST_NO_VALUE. */
  const int32_t* outputs;                      /**< Values, or CHIPDOCK_HOST_NO_VALUE. */
  const chipdock_host_body* const* bodies;     /**< Of If, Loop and Scan. */
} chipdock_host_node_desc;

/**
 * Makes an empty graph; it belongs to no host and no device.
 *
 * @param out_graph Set to the graph. Not NULL.
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: returns `*out_graph`, ended by destroy.
 * Threading: any thread; a graph is built by one thread at a time.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL. OUT_OF_MEMORY.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_graph_create(chipdock_host_graph** out_graph, chipdock_error* error);

/**
 * Gives a graph back; plans that were made of it go on.
 *
 * @param graph Invalid afterwards. NULL does nothing.
 *
 * Ownership: takes `graph`.
 * Threading: one caller, no other call with the graph at the same time.
 * Blocking:  never; may call `release` of constants.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_graph_destroy(chipdock_host_graph* graph);

/**
 * Adds a value or a constant. [HGR-1] [HGR-3]
 *
 * @param graph     From create.
 * @param desc      What it is. Not NULL.
 * @param out_value Set to its number, counted from 0. Not NULL.
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: borrows `desc` for this call; `desc->data` until `release`, or for this call without.
 * Threading: one thread at a time per graph.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size, dtype, rank or dim; a constant whose `size` is not that
 *            of its dtype and dims, or kept data that is not aligned to 16 bytes. `release` was not
 *            called then. FAILED_PRECONDITION: HGR-5.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_graph_add_value(chipdock_host_graph* graph, const chipdock_host_value_desc* desc,
                              int32_t* out_value, chipdock_error* error);

/**
 * Adds a node behind those added before. [HGR-2] [HGR-4]
 *
 * @param graph From create.
 * @param desc  Operator, attributes, values. Not NULL.
 * @param error Filled on failure if not NULL.
 *
 * Ownership: borrows `desc` and all it points to for this call; bodies are kept alive.
 * Threading: one thread at a time per graph.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size, a value that does not exist, is read before it has a
 *            source or gets a second one, a body too few or too many or whose inputs or outputs
 *            do not fit. UNSUPPORTED: an unknown attribute kind. FAILED_PRECONDITION: HGR-5.
 *            Operators are looked up at compile.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_graph_add_node(
    chipdock_host_graph* graph, const chipdock_host_node_desc* desc, chipdock_error* error);

/**
 * Says which values a run is given; called once, before nodes read them. [HGR-1]
 *
 * @param graph  From create.
 * @param count  Of `values`.
 * @param values Numbers of values without a source, each once. May be NULL if `count` is 0.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: one thread at a time per graph.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, no such value, one with a source. FAILED_PRECONDITION: HGR-5,
 *            called twice.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_graph_set_inputs(
    chipdock_host_graph* graph, uint32_t count, const int32_t* values, chipdock_error* error);

/**
 * Says which values a run returns.
 *
 * @param graph  From create.
 * @param count  Of `values`, at least 1.
 * @param values Numbers of values that have a source. Not NULL.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: one thread at a time per graph.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, no such value, one without a source. FAILED_PRECONDITION:
 *            HGR-5.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_graph_set_outputs(
    chipdock_host_graph* graph, uint32_t count, const int32_t* values, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_GRAPH_H_ */
