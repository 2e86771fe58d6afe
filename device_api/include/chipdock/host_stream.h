/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Streams and events for embedders: native where the plugin has them, else kept by the host.
 *
 * Duties:
 *   HSM-1  Work queued on one stream takes effect in call order; between streams only events order.
 *   HSM-2  After a piece of work failed, its stream runs nothing more: enqueues return
 *          FAILED_PRECONDITION and sync the first cause, each time. A wait on an event of a failed
 *          stream fails the waiting stream with the same cause.
 *   HSM-3  A function that runs in stream order may call anything that does not wait for its own
 *          stream; a sync of it, and a run on it, return
 *          FAILED_PRECONDITION.
 *   HSM-4  sync runs beside enqueues on the same stream from other threads.
 */
#ifndef CHIPDOCK_HOST_STREAM_H_
#define CHIPDOCK_HOST_STREAM_H_

#include "chipdock/event.h"
#include "chipdock/host_base.h"
#include "chipdock/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a stream, or takes one of the vendor's API. [HSM-1]
 *
 * @param device     From open.
 * @param desc       As stream.h says: a priority, or a native stream that is not NULL. NULL: an
 *                   ordinary new stream.
 * @param out_stream Set to the stream. Not NULL.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows `device` and `desc` for this call, `desc->native` until destroy; returns
 *            `*out_stream`, ended by destroy.
 * Threading: any thread.
 * Blocking:  may wait for the driver.
 * Errors:    UNSUPPORTED: the plugin has no streams to import, an unknown flag or native kind.
 *            INVALID_ARGUMENT: NULL, a size. OUT_OF_MEMORY.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_stream_create(chipdock_host_device* device, const chipdock_stream_desc* desc,
                            chipdock_host_stream** out_stream, chipdock_error* error);

/**
 * Ends a stream; work in flight ends first.
 *
 * @param stream Invalid afterwards. NULL does nothing.
 *
 * Ownership: takes `stream`.
 * Threading: one caller, no other call with the stream at the same time, and not from a function
 *            that runs on it.
 * Blocking:  may wait for work in flight.
 * Errors:    none; an error of its work is not reported here.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_stream_destroy(chipdock_host_stream* stream);

/**
 * Waits until all work queued before the call has ended. [HSM-4]
 *
 * @param stream     From create.
 * @param timeout_ns Limit in nanoseconds, -1 for ever, 0 only asks.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  waits for the stream.
 * Errors:    TIMEOUT: the work goes on. The stream's first cause [HSM-2]. FAILED_PRECONDITION: from
 *            a function that runs on this stream [HSM-3].
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_stream_sync(chipdock_host_stream* stream, int64_t timeout_ns, chipdock_error* error);

/**
 * Makes later work of a stream wait until an event is reached, also across devices and plugins.
 *
 * @param stream From create.
 * @param event  From create; one that was never recorded holds nothing up.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  stream-ordered; between two plugins it may wait on the host.
 * Errors:    INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: the stream has failed. HSM-2.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_stream_wait(
    chipdock_host_stream* stream, chipdock_host_event* event, chipdock_error* error);

/**
 * Runs a function of the caller once, in stream order. [HSM-3]
 *
 * @param stream From create.
 * @param desc   As stream.h says. Not NULL, with a function.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows `desc` for this call, `desc->context` until the function has run.
 * Threading: any thread; the function runs on some thread of the plugin or host.
 * Blocking:  stream-ordered.
 * Errors:    INVALID_ARGUMENT: NULL, a size. FAILED_PRECONDITION: the stream has failed; the
 *            function does not run then.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_stream_call(
    chipdock_host_stream* stream, const chipdock_host_function_desc* desc, chipdock_error* error);

/**
 * Makes an event, for use on any stream of its device.
 *
 * @param device    From open.
 * @param desc      As event.h says; only the flag CHIPDOCK_EVENT_TIMING is taken. NULL: no timing.
 * @param out_event Set to the event. Not NULL.
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: borrows `device` and `desc` for this call; returns `*out_event`, ended by destroy.
 * Threading: any thread.
 * Blocking:  may wait for the driver.
 * Errors:    UNSUPPORTED: other flags, import. INVALID_ARGUMENT: NULL, a size.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_event_create(chipdock_host_device* device, const chipdock_event_desc* desc,
                           chipdock_host_event** out_event, chipdock_error* error);

/**
 * Ends an event; waits on it that were queued before hold.
 *
 * @param event Invalid afterwards. NULL does nothing.
 *
 * Ownership: takes `event`.
 * Threading: one caller, no other call with the event at the same time.
 * Blocking:  never.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_event_destroy(chipdock_host_event* event);

/**
 * Puts the event behind the work queued on a stream so far; an earlier record is forgotten.
 *
 * @param event  From create.
 * @param stream A stream of the event's device.
 * @param error  Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, another device. FAILED_PRECONDITION: the stream has failed.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_event_record(
    chipdock_host_event* event, chipdock_host_stream* stream, chipdock_error* error);

/**
 * Waits until an event is reached.
 *
 * @param event      From create; one that was never recorded counts as reached.
 * @param timeout_ns Limit in nanoseconds, -1 for ever, 0 only asks.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  waits for the event.
 * Errors:    TIMEOUT. The first cause of the stream it was recorded on.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_event_sync(chipdock_host_event* event,
                                                                         int64_t timeout_ns,
                                                                         chipdock_error* error);

/**
 * Measures the time between two reached events that were created with timing.
 *
 * @param start          The earlier event.
 * @param end            The later event, of the same device.
 * @param out_elapsed_ns Set to nanoseconds. Not NULL.
 * @param error          Filled on failure if not NULL; NOT_READY fills it too.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    NOT_READY: one is not reached. FAILED_PRECONDITION: no timing, never recorded.
 *            INVALID_ARGUMENT: NULL, two devices.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_event_elapsed(chipdock_host_event* start, chipdock_host_event* end,
                            int64_t* out_elapsed_ns, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_STREAM_H_ */
