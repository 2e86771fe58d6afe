/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The graph table: record the work of streams once, launch it many times. Optional: without it the
 * host records enqueues and replays them. Version 0.1: slots and structs may still change; define
 * CHIPDOCK_UNSTABLE to see them.
 *
 * Between begin_capture and end_capture the enqueues of a stream are recorded and not run. A
 * captured enqueue is named by its correlation id; update uses that name, so there are no node
 * handles.
 *
 * Private pool: the host allocates all memory a capture touches, from a pool of that graph which
 * gives nothing back before the last exec is destroyed. So addresses stay as captured, and a plugin
 * needs no pool.
 *
 * Duties:
 *   GRA-1  An enqueue on a captured stream checks its arguments as always, records, and does no
 *          work.
 *   GRA-2  Fork: record an event on a captured stream, let another stream wait on it; that stream
 *          is then captured too. Join: the same the other way round. end_capture on the stream that
 *          began wants every forked stream joined.
 *   GRA-3  Inside a capture, these are FAILED_PRECONDITION and doom it: a launch of a kernel that
 *          is not CAPTURABLE, alloc_async, free_async, sync or query of a captured stream or of an
 *          event recorded in the capture, a wait on an event recorded outside of it. end_capture
 *          then returns that first cause and gives no graph.
 *   GRA-4  A captured host function runs once per launch, in its place in the order; its context is
 *          the host's until the exec is destroyed. [STR-7] holds.
 *   GRA-5  Shapes, scalars, attributes, arguments and host_inputs [KRN-7] are read when captured.
 *          Host memory of a captured copy is not: it is read or written anew at each launch and
 *          stays valid until destroy_exec.
 *   GRA-6  Memory that an exec names stays allocated until destroy_exec, or until update replaced
 *          it.
 *   GRA-7  Captured enqueues that will be updated carry correlation ids that are not 0 and are
 *          unique in the capture.
 *   GRA-8  Launches of one exec do not overlap: the host orders them by one stream or by events.
 *          Different execs of one graph may overlap if their written memory does not.
 *   GRA-9  update applies to later launches only; launches in flight keep the values they had. It
 *          changes all it was asked to or nothing.
 *   GRA-10 An error inside a launch fails the stream; the record names the captured correlation id.
 *   GRA-11 An exec stands alone: its graph may be destroyed first.
 *   GRA-12 begin_capture, end_capture, instantiate, launch, destroy_graph and destroy_exec come
 *          together.
 */
#ifndef CHIPDOCK_GRAPH_H_
#define CHIPDOCK_GRAPH_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CHIPDOCK_UNSTABLE)

#define CHIPDOCK_GRAPH_MAJOR 0
#define CHIPDOCK_GRAPH_MINOR 1

typedef struct chipdock_graph chipdock_graph;           /**< What was captured. Immutable. */
typedef struct chipdock_graph_exec chipdock_graph_exec; /**< A graph made ready to launch. */

/** How to capture. */
typedef struct chipdock_capture_desc {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  uint64_t correlation_id;
} chipdock_capture_desc;

/** `*out_state` of capture_state. */
enum {
  CHIPDOCK_CAPTURE_NONE = 0,   /**< Work runs as usual. */
  CHIPDOCK_CAPTURE_ACTIVE = 1, /**< Begun here, or forked into. */
  CHIPDOCK_CAPTURE_DOOMED = 2  /**< A forbidden call was made; only end_capture is left. [GRA-3] */
};

/** What a graph holds. */
typedef struct chipdock_graph_info {
  uint32_t struct_size;
  uint32_t flags;        /**< 0. */
  uint64_t node_count;   /**< Captured enqueues. */
  uint64_t stream_count; /**< Streams that took part. */
} chipdock_graph_info;

/** How to make a graph ready. */
typedef struct chipdock_instantiate_desc {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  uint64_t correlation_id;
} chipdock_instantiate_desc;

/** `chipdock_graph_change.kind`. */
enum {
  CHIPDOCK_GRAPH_CHANGE_MEMORY = 1, /**< Another place for a tensor, buffer, or end of a copy. */
  CHIPDOCK_GRAPH_CHANGE_SCALAR = 2, /**< Other bits for a scalar of launch_function. */
  CHIPDOCK_GRAPH_CHANGE_SEED = 3    /**< Another seed offset of a launch. */
};

/** One change to a captured enqueue. Shapes and dtypes cannot change: that is another graph. */
typedef struct chipdock_graph_change {
  uint32_t struct_size;
  int32_t kind;    /**< CHIPDOCK_GRAPH_CHANGE_*. */
  uint64_t target; /**< Correlation id of the captured enqueue. [GRA-7] */
  /** Input k (or argument k) as k, output k as -1-k; copy: source 0, target -1. */
  int32_t argument;
  uint32_t scalar_size;    /**< SCALAR: bytes of `value`, as captured. */
  chipdock_memory* memory; /**< MEMORY: device memory, or NULL. */
  uint64_t offset;         /**< MEMORY: bytes from the start of `memory`. */
  void* host;              /**< MEMORY: host memory if `memory` is NULL. */
  uint64_t value;          /**< SCALAR: the bits, low bytes; SEED: the new offset. */
} chipdock_graph_change;

/** A set of changes, made together. */
typedef struct chipdock_graph_update_desc {
  uint32_t struct_size;
  uint32_t change_count;
  const chipdock_graph_change* const* changes;
  uint64_t correlation_id;
} chipdock_graph_update_desc;

/** One launch. */
typedef struct chipdock_graph_launch_desc {
  uint32_t struct_size;
  uint32_t flags;          /**< 0. */
  chipdock_stream* stream; /**< NULL: ended on return. */
  uint64_t correlation_id;
} chipdock_graph_launch_desc;

/** The graph table, "chipdock.graph". */
typedef struct chipdock_graph_api {
  chipdock_table_header header;

  /**
   * Starts recording what is queued on `stream`.
   *
   * @param stream From create, not captured and not failed.
   * @param desc   Not NULL. [GRA-1] [GRA-2]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  never; work queued before runs on.
   * Errors:    FAILED_PRECONDITION: already captured, failed. INVALID_ARGUMENT: NULL, size.
   * Since:     graph 0.1, optional: the host records enqueues itself. [GRA-12]
   */
  chipdock_status(CHIPDOCK_CALL* begin_capture)(chipdock_stream* stream,
                                                const chipdock_capture_desc* desc,
                                                chipdock_error* error);

  /**
   * Ends recording and gives the graph. The capture is over also on failure.
   *
   * @param stream    The one that began.
   * @param out_graph Set to the graph. Not NULL. [BASE-8] [GRA-5]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: returns `*out_graph`, ended by destroy_graph.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  never.
   * Errors:    The cause that doomed the capture. [GRA-3] FAILED_PRECONDITION: not captured, not
   *            the one that began, a forked stream is not joined. [GRA-2] OUT_OF_MEMORY.
   * Since:     graph 0.1, optional: as begin_capture.
   */
  chipdock_status(CHIPDOCK_CALL* end_capture)(chipdock_stream* stream, chipdock_graph** out_graph,
                                              chipdock_error* error);

  /**
   * Says whether a stream is being captured.
   *
   * @param stream    From create.
   * @param out_state Set to CHIPDOCK_CAPTURE_*. Not NULL. [BASE-8]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread; dooms nothing.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     graph 0.1, optional: the host knows from its own calls.
   */
  chipdock_status(CHIPDOCK_CALL* capture_state)(chipdock_stream* stream, int32_t* out_state,
                                                chipdock_error* error);

  /**
   * Says what a graph holds.
   *
   * @param graph    From end_capture.
   * @param out_info Written up to its struct_size. Not NULL. [BASE-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL or short output.
   * Since:     graph 0.1, optional: the host counts what it queued.
   */
  chipdock_status(CHIPDOCK_CALL* info)(chipdock_graph* graph, chipdock_graph_info* out_info,
                                       chipdock_error* error);

  /**
   * Makes a graph ready to launch.
   *
   * @param graph    From end_capture; may be instantiated several times.
   * @param desc     Not NULL.
   * @param out_exec Set to the exec. Not NULL. [BASE-8] [GRA-6] [GRA-11]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_exec`, ended by destroy_exec.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    OUT_OF_MEMORY. UNSUPPORTED: the device cannot run it as a graph; the host replays.
   *            INVALID_ARGUMENT: NULL, size.
   * Since:     graph 0.1, optional: as begin_capture.
   */
  chipdock_status(CHIPDOCK_CALL* instantiate)(chipdock_graph* graph,
                                              const chipdock_instantiate_desc* desc,
                                              chipdock_graph_exec** out_exec,
                                              chipdock_error* error);

  /**
   * Changes pointers and scalars of an exec for its later launches.
   *
   * @param exec  From instantiate.
   * @param desc  The changes. Not NULL. [GRA-7] [GRA-9]
   * @param error Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; new memory as in GRA-6.
   * Threading: one caller an exec, no launch of it at the same time.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: no such enqueue or argument, named; scalar_size. UNSUPPORTED:
   *            kind. Nothing was changed.
   * Since:     graph 0.1, optional: the host captures anew.
   */
  chipdock_status(CHIPDOCK_CALL* update)(chipdock_graph_exec* exec,
                                         const chipdock_graph_update_desc* desc,
                                         chipdock_error* error);

  /**
   * Runs the captured work, as one piece of work of the stream.
   *
   * @param exec  From instantiate. [GRA-8]
   * @param desc  Stream. Not NULL.
   * @param error Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, all captured memory until the work has ended. [GRA-4]
   * Threading: one caller an exec; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until done. Else stream-ordered.
   * Errors:    FAILED_PRECONDITION: the stream failed or is captured. DEVICE_LOST. Later ones:
   *            GRA-10.
   * Since:     graph 0.1, optional: as begin_capture.
   */
  chipdock_status(CHIPDOCK_CALL* launch)(chipdock_graph_exec* exec,
                                         const chipdock_graph_launch_desc* desc,
                                         chipdock_error* error);

  /**
   * Ends a graph. Its execs live on. [GRA-11]
   *
   * @param graph From end_capture; invalid afterwards, also on failure.
   * @param error Filled on failure if not NULL.
   *
   * Ownership: takes `graph`.
   * Threading: any thread; no other call on the graph at the same time.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     graph 0.1, optional: as begin_capture.
   */
  chipdock_status(CHIPDOCK_CALL* destroy_graph)(chipdock_graph* graph, chipdock_error* error);

  /**
   * Ends an exec. A launch in flight ends first.
   *
   * @param exec  From instantiate; invalid afterwards, also on failure.
   * @param error Filled on failure if not NULL.
   *
   * Ownership: takes `exec`; captured memory and contexts are the host's to free afterwards.
   * Threading: any thread; no other call on the exec at the same time.
   * Blocking:  may wait for a launch in flight.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     graph 0.1, optional: as begin_capture.
   */
  chipdock_status(CHIPDOCK_CALL* destroy_exec)(chipdock_graph_exec* exec, chipdock_error* error);
} chipdock_graph_api;

#endif /* CHIPDOCK_UNSTABLE */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_GRAPH_H_ */
