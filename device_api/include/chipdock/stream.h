/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The stream table: in-order queues of work. The whole table is optional: a plugin without it runs
 * everything inline, and the host keeps the queues. Version 1.0.
 *
 * Duties:
 *   STR-1  Work queued on one stream takes effect in call order; between streams only events order.
 *   STR-2  An enqueue returns before the work has run, or after; nobody may rely on either.
 *   STR-3  After a piece of work failed, the stream runs nothing more: enqueues return
 *          FAILED_PRECONDITION, and sync returns the first cause with its correlation id, each
 *          time.
 *   STR-4  A wait on an event of a failed stream fails the waiting stream with the same first
 *          cause.
 *   STR-5  destroy of a stream with work in flight is legal: the work ends, destroy may wait for
 *          it.
 *   STR-6  sync, query and abort may run beside an enqueue on the same stream.
 *   STR-7  A host function runs in stream order on some thread of the plugin; it calls no slot that
 *          can wait on that stream, and the plugin holds no lock while it runs.
 *   STR-8  create, destroy, sync, query and wait_event are there together with event create,
 *          destroy, record, query and sync, or none of them is.
 */
#ifndef CHIPDOCK_STREAM_H_
#define CHIPDOCK_STREAM_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHIPDOCK_STREAM_MAJOR 1
#define CHIPDOCK_STREAM_MINOR 0

/** `chipdock_stream_desc.flags`. */
enum {
  /**
   * Import `native` even if it is NULL: the value by which the vendor's API names its default
   * stream.
   */
  CHIPDOCK_STREAM_IMPORT = 1 << 0
};

/** How to make a stream. */
typedef struct chipdock_stream_desc {
  uint32_t struct_size;
  int32_t priority; /**< 0 normal, negative more urgent, positive less; clamped to what there is. */
  uint32_t flags;   /**< CHIPDOCK_STREAM_*. */
  uint32_t native_kind; /**< Import: a tag of the vendor's API, 0 = its ordinary stream type. */
  /** NULL: a new stream, unless IMPORT is set. Else the vendor's own, borrowed. */
  void* native;
} chipdock_stream_desc;

/** A function of the host to run in stream order. */
typedef struct chipdock_host_function_desc {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  /**
   * Called once with `context` and the stream's state: OK, or the first cause if the stream failed.
   */
  void(CHIPDOCK_CALL* function)(void* context, chipdock_status state);
  void* context;
  uint64_t correlation_id;
} chipdock_host_function_desc;

/** `chipdock_value_desc.operation`. */
enum {
  CHIPDOCK_VALUE_WRITE = 0,              /**< *address = value. */
  CHIPDOCK_VALUE_WAIT_EQUAL = 1,         /**< until *address == value */
  CHIPDOCK_VALUE_WAIT_GREATER_EQUAL = 2, /**< until (int64)(*address - value) >= 0 */
  CHIPDOCK_VALUE_WAIT_AND = 3            /**< until (*address & value) != 0 */
};

/** A write of, or a wait for, a 64-bit value in device memory, in stream order. */
typedef struct chipdock_value_desc {
  uint32_t struct_size;
  int32_t operation; /**< CHIPDOCK_VALUE_*. */
  chipdock_memory* memory;
  uint64_t offset; /**< Multiple of 8. */
  uint64_t value;
  uint64_t correlation_id;
} chipdock_value_desc;

/** The stream table, "chipdock.stream". */
typedef struct chipdock_stream_api {
  chipdock_table_header header;

  /**
   * Makes a stream, or imports a native one. Work on it is ordered by [STR-1] and [STR-2].
   *
   * @param device     From open.
   * @param desc       Priority, native stream. Not NULL.
   * @param out_stream Set to the stream. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, `desc->native` until destroy; returns `*out_stream`.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    OUT_OF_MEMORY. UNSUPPORTED: import. INVALID_ARGUMENT: NULL, size.
   * Since:     ABI 1.0, optional: the host runs a queue of its own over NULL-stream calls. [STR-8]
   */
  chipdock_status(CHIPDOCK_CALL* create)(chipdock_device* device, const chipdock_stream_desc* desc,
                                         chipdock_stream** out_stream, chipdock_error* error);

  /**
   * Ends a stream. Work in flight ends first; an imported native stream stays the caller's.
   *
   * @param stream From create; invalid afterwards, also on failure. [STR-5]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `stream`.
   * Threading: one caller, no other call on the stream at the same time.
   * Blocking:  may wait for work in flight.
   * Errors:    INVALID_ARGUMENT: NULL. An error of the stream's work is not reported here.
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* destroy)(chipdock_stream* stream, chipdock_error* error);

  /**
   * Waits until all work queued before the call has ended.
   *
   * @param stream     From create.
   * @param timeout_ns Limit in nanoseconds, -1 for ever, 0 asks. [DEV-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [STR-6]
   * Blocking:  waits for the stream.
   * Errors:    TIMEOUT: the work goes on. The stream's first cause. [STR-3]
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* sync)(chipdock_stream* stream, int64_t timeout_ns,
                                       chipdock_error* error);

  /**
   * Says whether all work queued before the call has ended.
   *
   * @param stream From create.
   * @param error  Filled on failure if not NULL; NOT_READY fills nothing.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [STR-6]
   * Blocking:  never.
   * Errors:    NOT_READY: still at work. The stream's first cause. [STR-3]
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* query)(chipdock_stream* stream, chipdock_error* error);

  /**
   * Makes later work of `stream` wait until `event`, as recorded last before this call, is reached.
   *
   * @param stream From create.
   * @param event  Of the same plugin instance; never recorded means no wait. [STR-4]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows; `event` may be destroyed or recorded anew right after the call.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered.
   * Errors:    INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: the stream failed.
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* wait_event)(chipdock_stream* stream, chipdock_event* event,
                                             chipdock_error* error);

  /**
   * Queues a function of the host.
   *
   * @param stream From create.
   * @param desc   Function and context. Not NULL. [STR-7]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; the context is the caller's until the function ran.
   *            Once queued it runs exactly once, also if the stream fails or is aborted.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered.
   * Errors:    INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: the stream failed; it does not run.
   * Since:     ABI 1.0, optional: the host syncs and calls it from a thread of its own.
   */
  chipdock_status(CHIPDOCK_CALL* host_function)(chipdock_stream* stream,
                                                const chipdock_host_function_desc* desc,
                                                chipdock_error* error);

  /**
   * Queues a write of, or a wait for, a value in device memory.
   *
   * @param stream From create.
   * @param desc   Operation, address, value. Not NULL.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, the memory until the work has ended.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered; a wait holds the stream up until another stream or the host writes.
   * Errors:    INVALID_ARGUMENT: NULL, offset. UNSUPPORTED: operation. FAILED_PRECONDITION.
   * Since:     ABI 1.0, optional: a host function over host-visible memory, else UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* value)(chipdock_stream* stream, const chipdock_value_desc* desc,
                                        chipdock_error* error);

  /**
   * Gives the vendor's own stream under this one, for use with its libraries.
   *
   * @param stream     From create.
   * @param out_native Set to the native stream. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrowed until destroy; the caller queues on it but does not end it.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    UNSUPPORTED. INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* native)(chipdock_stream* stream, void** out_native,
                                         chipdock_error* error);

  /**
   * Ends the work of a stream early. Running work may end or not; queued work does not start.
   *
   * @param stream From create. Afterwards it has failed with ABORTED; destroy is what is left to
   *               do.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call; queued host functions run with ABORTED.
   * Threading: any thread. [STR-6]
   * Blocking:  never for long.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* abort)(chipdock_stream* stream, chipdock_error* error);
} chipdock_stream_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_STREAM_H_ */
