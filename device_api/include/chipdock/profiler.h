/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The profiler table: records of what the device did, with the device's own time. Optional: without
 * it the host stamps its own clock around enqueues and says so. Version 0.1: slots and structs may
 * still change; define CHIPDOCK_UNSTABLE to see them.
 *
 * Duties:
 *   PRF-1  start_ns and end_ns are taken by the device when the work starts and ends, not by
 *          bracketing it with events or host clocks. A record without such a time is not delivered.
 *   PRF-2  Device time is nanoseconds on one clock per device that never steps back while it is
 *          open.
 *   PRF-3  A record carries the correlation id of the enqueue that caused it. Work of a graph
 *          launch has the captured id and, as parent, the id of the launch.
 *   PRF-4  The sink is called from any thread of the plugin, never from inside an enqueue, never
 *          twice at once for one session, and with no lock held that a call of the host could need.
 *   PRF-5  Records and their strings are the plugin's, valid during the sink call only.
 *   PRF-6  Lost records are reported by one record of kind DROPPED with their number in `bytes`.
 *   PRF-7  After flush returned OK, the records of all work that had ended before the call were
 *          delivered. After stop returned, the sink is not called any more.
 *   PRF-8  A session changes no result and no order of work; several sessions of one device either
 *          work or the second start is BUSY.
 *   PRF-9  start, stop, flush and clock come together.
 */
#ifndef CHIPDOCK_PROFILER_H_
#define CHIPDOCK_PROFILER_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CHIPDOCK_UNSTABLE)

#define CHIPDOCK_PROFILER_MAJOR 0
#define CHIPDOCK_PROFILER_MINOR 1

typedef struct chipdock_profiler_session chipdock_profiler_session; /**< From start to stop. */

/**
 * `chipdock_profiler_record.kind`; bit `1 << kind` of `chipdock_profiler_desc.kinds` asks for it.
 */
enum {
  CHIPDOCK_PROFILER_KERNEL = 1,     /**< A launch of a kernel or of a compiled function. */
  CHIPDOCK_PROFILER_COPY = 2,       /**< A copy. */
  CHIPDOCK_PROFILER_FILL = 3,       /**< A fill. */
  CHIPDOCK_PROFILER_EXECUTE = 4,    /**< A run of a compiled executable. */
  CHIPDOCK_PROFILER_GRAPH = 5,      /**< A whole launch of a captured graph. */
  CHIPDOCK_PROFILER_COLLECTIVE = 6, /**< A collective of a provider. */
  CHIPDOCK_PROFILER_WAIT = 7,       /**< A stream stood still for an event or value. */
  CHIPDOCK_PROFILER_DROPPED = 8     /**< Records were lost; always delivered. [PRF-6] */
};

/** One piece of work on the device. 0 in a field means unknown. */
typedef struct chipdock_profiler_record {
  uint32_t struct_size;
  int32_t kind;            /**< CHIPDOCK_PROFILER_*. */
  uint64_t correlation_id; /**< Of the enqueue. [PRF-3] */
  uint64_t parent_id;      /**< Of the graph launch it was part of, or 0. [PRF-3] */
  int64_t start_ns;        /**< Device time. [PRF-1] [PRF-2] */
  int64_t end_ns;          /**< Device time, not before start_ns. */
  uint64_t bytes;          /**< COPY, FILL, COLLECTIVE: moved; DROPPED: records lost. */
  const char* name;        /**< Of the kernel or function, UTF-8; NULL if it has none. [PRF-5] */
  chipdock_device* device;
  chipdock_stream* stream; /**< NULL: the call had no stream. */
  uint64_t engine;         /**< Which engine or queue of the chip, in numbers of the vendor. */
} chipdock_profiler_record;

/** What to record and where to. */
typedef struct chipdock_profiler_desc {
  uint32_t struct_size;
  uint32_t kinds;        /**< Bits 1 << CHIPDOCK_PROFILER_*; 0 = all. */
  uint64_t buffer_bytes; /**< Wanted size of the plugin's buffers; 0 = its own choice. */
  /** Receives `count` records. [PRF-4] [PRF-5] */
  void(CHIPDOCK_CALL* sink)(void* context, const chipdock_profiler_record* const* records,
                            uint64_t count);
  void* context; /**< First argument of `sink`; the host's until stop returned. */
  uint64_t correlation_id;
} chipdock_profiler_desc;

/**
 * Ties device time to host time: the device's clock read `device_ns` between the two host times.
 */
typedef struct chipdock_clock_sample {
  uint32_t struct_size;
  uint32_t flags;         /**< 0. */
  int64_t device_ns;      /**< Device time. [PRF-2] */
  int64_t host_before_ns; /**< Host's monotonic clock (CLOCK_MONOTONIC, or the platform's like). */
  int64_t host_after_ns;  /**< The same clock after the reading; the gap is the error. */
} chipdock_clock_sample;

/** The profiler table, "chipdock.profiler". */
typedef struct chipdock_profiler_api {
  chipdock_table_header header;

  /**
   * Starts recording the work queued on a device after the call.
   *
   * @param device      From open.
   * @param desc        Kinds and sink. Not NULL, with a sink. [PRF-4]
   * @param out_session Set to the session. Not NULL. [BASE-8]
   * @param error       Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, its context until stop; returns `*out_session`.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    BUSY: another session or tool has the profiler. [PRF-8] UNAVAILABLE: not permitted
   *            to this user, text says how to permit it. INVALID_ARGUMENT: NULL, no sink.
   *            UNSUPPORTED: kinds.
   * Since:     profiler 0.1, optional: the host's clock around enqueues. [PRF-9]
   */
  chipdock_status(CHIPDOCK_CALL* start)(chipdock_device* device, const chipdock_profiler_desc* desc,
                                        chipdock_profiler_session** out_session,
                                        chipdock_error* error);

  /**
   * Ends recording. Records of ended work are delivered first; work in flight goes on unrecorded.
   *
   * @param session From start; invalid afterwards, also on failure. [PRF-7]
   * @param error   Filled on failure if not NULL.
   *
   * Ownership: takes `session`.
   * Threading: one caller, no other call on the session at the same time; not from the sink.
   * Blocking:  may wait for the driver and for a sink call in progress.
   * Errors:    INVALID_ARGUMENT: NULL. DEVICE_LOST: what there was has been delivered.
   * Since:     profiler 0.1, optional: as start.
   */
  chipdock_status(CHIPDOCK_CALL* stop)(chipdock_profiler_session* session, chipdock_error* error);

  /**
   * Delivers the records of all work that has ended. [PRF-6] [PRF-7]
   *
   * @param session    From start.
   * @param timeout_ns Limit in nanoseconds, -1 for ever. [DEV-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread; not from the sink.
   * Blocking:  waits for records, not for work in flight.
   * Errors:    TIMEOUT: the rest comes later. INVALID_ARGUMENT: NULL.
   * Since:     profiler 0.1, optional: as start.
   */
  chipdock_status(CHIPDOCK_CALL* flush)(chipdock_profiler_session* session, int64_t timeout_ns,
                                        chipdock_error* error);

  /**
   * Reads device clock and host clock together. The host takes samples before, during and after a
   * session and fits a line, so drift is seen.
   *
   * @param device     From open; no session is needed.
   * @param out_sample Written up to its struct_size. Not NULL. [BASE-5] [PRF-2]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver; does not wait for queued work.
   * Errors:    INVALID_ARGUMENT: NULL or short output. DEVICE_LOST.
   * Since:     profiler 0.1, optional: as start.
   */
  chipdock_status(CHIPDOCK_CALL* clock)(chipdock_device* device, chipdock_clock_sample* out_sample,
                                        chipdock_error* error);
} chipdock_profiler_api;

#endif /* CHIPDOCK_UNSTABLE */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_PROFILER_H_ */
