/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Plans: a graph made ready for one device, run at any shapes. And single operators without a graph.
 *
 * Duties:
 *   HPL-1  A plan does not change after compile; many threads may run it at once.
 *   HPL-2  A node without a kernel on the device fails compile, unless fallback is ALLOW; then the
 *          host device runs it, with copies, and the plan's list of nodes says so.
 *   HPL-3  The host device computes shapes, folds constants and runs fallbacks. It is a device
 *          whose memory the host can read; the device itself may be it.
 *   HPL-4  Outputs given to a run are written in place if shape, dtype and memory fit and no input
 *          lies under them, else by a copy. A shape or dtype that does not fit is
 *          INVALID_ARGUMENT.
 *   HPL-5  A run ends before the call returns, also with a stream: its work then stands behind what
 *          the stream had before.
 */
#ifndef CHIPDOCK_HOST_PLAN_H_
#define CHIPDOCK_HOST_PLAN_H_

#include "chipdock/host_base.h"
#include "chipdock/host_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** `fallback` of descs: what becomes of a node without a kernel on the device. [HPL-2] */
enum { CHIPDOCK_HOST_FALLBACK_ERROR = 0, CHIPDOCK_HOST_FALLBACK_ALLOW = 1 };

/** How to compile a graph. */
typedef struct chipdock_host_plan_desc {
  uint32_t struct_size;
  int32_t fallback;           /**< CHIPDOCK_HOST_FALLBACK_*. */
  chipdock_host_device* host; /**< Host device [HPL-3]; NULL: the device itself. */
  uint64_t memory_limit;      /**< Bytes of weights and runs together; 0 = none. */
  uint32_t max_threads;       /**< Of host kernels; 0 = as the device was opened. */
  uint32_t deterministic;     /**< 1: the same inputs give the same bits. */
  uint32_t cached_shapes;     /**< Most sets of input shapes kept ready; 0 = 32. */
  int32_t math_mode;          /**< CHIPDOCK_MATH_*. */
} chipdock_host_plan_desc;

/** A plan as it is. */
typedef struct chipdock_host_plan_info {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t node_count; /**< Of chipdock_host_plan_node. */
  uint64_t weight_bytes;
} chipdock_host_plan_info;

/** `chipdock_host_node_info.placement`: why a node runs where it runs. */
enum {
  CHIPDOCK_HOST_PLACEMENT_DEVICE = 0,   /**< A kernel of the device. */
  CHIPDOCK_HOST_PLACEMENT_FALLBACK = 1, /**< The device has none: the host device, with copies. */
  CHIPDOCK_HOST_PLACEMENT_SHAPE = 2,    /**< Computes shapes: belongs on the host. */
  CHIPDOCK_HOST_PLACEMENT_VIEW = 3,     /**< No work: another shape of the same memory. */
  CHIPDOCK_HOST_PLACEMENT_FOLDED = 4,   /**< Computed at compile from constants. */
  CHIPDOCK_HOST_PLACEMENT_CONTROL = 5   /**< If, Loop, Scan: driven by the host. */
};

/** Where one node of a plan runs. */
typedef struct chipdock_host_node_info {
  uint32_t struct_size;
  int32_t placement; /**< CHIPDOCK_HOST_PLACEMENT_*. */
  int32_t since_version;
  uint32_t flags; /**< 0. */
  const char* name;
  const char* op;
  const char* device; /**< Name of the device that runs it. */
  const char* kernel; /**< "" where there is none. */
  const char* reason; /**< Why other kernels were not taken; "" if there is nothing to say. */
} chipdock_host_node_info;

/** One run of a plan. */
typedef struct chipdock_host_run_desc {
  uint32_t struct_size;
  uint32_t input_count;
  const chipdock_host_tensor* const* inputs; /**< In the graph's order, on any device. */
  chipdock_host_stream* stream;              /**< Of the plan's device, or NULL. [HPL-5] */
  uint64_t seed;                             /**< Of operators that draw random numbers. */
} chipdock_host_run_desc;

/** One operator to run. */
typedef struct chipdock_host_op_desc {
  uint32_t struct_size;
  int32_t since_version; /**< [HGR-4] */
  const char* domain;    /**< NULL or "" is the default ONNX domain. */
  const char* op;        /**< "Add". Not NULL. */
  uint32_t attribute_count;
  uint32_t input_count;
  const chipdock_attribute* const* attributes; /**< As kernel.h says. */
  const chipdock_host_tensor* const* inputs;   /**< NULL entry: optional input not given. */
  const chipdock_dtype* output_dtypes;         /**< output_count of them. [HGR-3] */
  chipdock_host_device* host;                  /**< Host device [HPL-3]; NULL: the device. */
  chipdock_host_stream* stream;                /**< Of the device, or NULL. [HPL-5] */
  uint64_t seed;
  int32_t fallback; /**< CHIPDOCK_HOST_FALLBACK_*. */
  uint32_t flags;   /**< 0. */
} chipdock_host_op_desc;

/**
 * Makes a graph ready for a device: kernels chosen, constants folded and uploaded. [HPL-1] [HPL-2]
 *
 * @param graph    With its outputs set; it does not change any more, also on failure. [HGR-5]
 * @param device   From open.
 * @param desc     Options, or NULL for the defaults.
 * @param out_plan Set to the plan. Not NULL.
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call; what the plan needs it keeps alive itself.
 * Threading: any thread, one at a time per graph.
 * Blocking:  copies weights to the device.
 * Errors:    UNSUPPORTED: operators without a kernel, named; an unknown value of an enum.
 *            INVALID_ARGUMENT: NULL, a size, a graph without outputs. FAILED_PRECONDITION: a host
 *            device that does not satisfy HPL-3. OUT_OF_MEMORY.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_plan_compile(
    chipdock_host_graph* graph, chipdock_host_device* device, const chipdock_host_plan_desc* desc,
    chipdock_host_plan** out_plan, chipdock_error* error);

/**
 * Gives a plan back.
 *
 * @param plan Invalid afterwards. NULL does nothing.
 *
 * Ownership: takes `plan`.
 * Threading: one caller, no run of it in progress.
 * Blocking:  never waits for other plans; may free memory.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_plan_destroy(chipdock_host_plan* plan);

/**
 * Tells how many inputs, outputs and nodes a plan has.
 *
 * @param plan     From compile.
 * @param out_info Filled. Not NULL. [BASE-5]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_plan_describe(
    const chipdock_host_plan* plan, chipdock_host_plan_info* out_info, chipdock_error* error);

/**
 * Tells where a node of a plan runs and why. [HPL-2]
 *
 * @param plan     From compile.
 * @param index    0 to node_count-1.
 * @param out_info Filled. Not NULL. [BASE-5]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call; strings are the plan's. [HST-6]
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size, no such index.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_plan_node(const chipdock_host_plan* plan, uint32_t index,
                        chipdock_host_node_info* out_info, chipdock_error* error);

/**
 * Runs a plan. Any shapes that the graph allows will do; the first run at new ones costs more.
 *
 * @param plan         From compile.
 * @param desc         Inputs, stream, seed. Not NULL.
 * @param output_count Of `outputs`: that of the plan.
 * @param outputs      Entries that are NULL are set to new tensors; others are written [HPL-4].
 * @param error        Filled on failure if not NULL.
 *
 * Ownership: borrows its arguments for this call; returns the new entries of `outputs`, each ended
 *            by chipdock_host_tensor_destroy.
 * Threading: any thread. [HPL-1]
 * Blocking:  until the run has ended. [HPL-5]
 * Errors:    INVALID_ARGUMENT: NULL, counts, dtypes, shapes that do not fit. OUT_OF_MEMORY. Errors
 *            of kernels, with the node's name. SHUTDOWN. `outputs` are as they were then; what
 *            given ones hold is undefined.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_plan_run(
    chipdock_host_plan* plan, const chipdock_host_run_desc* desc, uint32_t output_count,
    chipdock_host_tensor** outputs, chipdock_error* error);

/**
 * Runs one operator on tensors, as a graph of one node would. [HPL-5]
 *
 * What was made ready for a call is kept with the device for the next one with the same operator,
 * attributes and dtypes.
 *
 * @param device       From open.
 * @param desc         Operator, inputs, attributes. Not NULL.
 * @param output_count Of `outputs` and of `desc->output_dtypes`, at least 1.
 * @param outputs      As for chipdock_host_plan_run. [HPL-4]
 * @param error        Filled on failure if not NULL.
 *
 * Ownership: as for chipdock_host_plan_run.
 * Threading: any thread.
 * Blocking:  until the operator has ended.
 * Errors:    As compile and run.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_run_op(chipdock_host_device* device, const chipdock_host_op_desc* desc,
                     uint32_t output_count, chipdock_host_tensor** outputs, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_PLAN_H_ */
