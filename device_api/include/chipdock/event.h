/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The event table: points in streams, for order between streams, waiting and timing. Optional
 * together with the stream table [STR-8]. Version 1.0.
 *
 * Duties:
 *   EVT-1  record marks the point behind all work queued on the stream so far; a second record
 *          moves the event. Waits that were queued before keep the earlier point.
 *   EVT-2  An event that was never recorded counts as reached.
 *   EVT-3  destroy of an event that is not reached is legal and does not block; work that waits on
 *          it is not disturbed.
 *   EVT-4  An event of a stream that failed is reached with the stream's first cause: query and
 *          sync return it.
 *   EVT-5  elapsed is measured on the device, between two timing events recorded on streams of one
 *          device.
 *   EVT-6  query, sync and destroy may run beside an enqueue.
 */
#ifndef CHIPDOCK_EVENT_H_
#define CHIPDOCK_EVENT_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHIPDOCK_EVENT_MAJOR 1
#define CHIPDOCK_EVENT_MINOR 0

/** `chipdock_event_desc.flags`. */
enum {
  CHIPDOCK_EVENT_TIMING = 1 << 0, /**< elapsed may be asked of it. */
  CHIPDOCK_EVENT_IPC = 1 << 1     /**< It will be exported to another process. */
};

/** How to make an event. */
typedef struct chipdock_event_desc {
  uint32_t struct_size;
  uint32_t flags;       /**< CHIPDOCK_EVENT_*. */
  void* native;         /**< NULL: a new event. Else the vendor's own event to import, borrowed. */
  const void* ipc_blob; /**< NULL, or bytes from `export_ipc` of another process. */
  uint64_t ipc_blob_size;
} chipdock_event_desc;

/** The event table, "chipdock.event". */
typedef struct chipdock_event_api {
  chipdock_table_header header;

  /**
   * Makes an event, or imports one.
   *
   * @param device    From open.
   * @param desc      Flags, import. Not NULL.
   * @param out_event Set to the event. Not NULL. [BASE-8]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_event`, ended by destroy.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    OUT_OF_MEMORY. UNSUPPORTED: flag or import. MISMATCH: blob. INVALID_ARGUMENT.
   * Since:     ABI 1.0, optional: the host keeps events beside its own queues. [STR-8]
   */
  chipdock_status(CHIPDOCK_CALL* create)(chipdock_device* device, const chipdock_event_desc* desc,
                                         chipdock_event** out_event, chipdock_error* error);

  /**
   * Ends an event.
   *
   * @param event From create; invalid afterwards, also on failure. [EVT-3]
   * @param error Filled on failure if not NULL.
   *
   * Ownership: takes `event`.
   * Threading: any thread. [EVT-6]
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* destroy)(chipdock_event* event, chipdock_error* error);

  /**
   * Records the event behind the work queued on `stream` so far.
   *
   * @param event  From create.
   * @param stream Of the same device; NULL means reached now. [EVT-1]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows; `event` may be destroyed right after the call. [EVT-3]
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered.
   * Errors:    INVALID_ARGUMENT: NULL event. FAILED_PRECONDITION: the stream failed.
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* record)(chipdock_event* event, chipdock_stream* stream,
                                         chipdock_error* error);

  /**
   * Says whether the event is reached.
   *
   * @param event From create. [EVT-2]
   * @param error Filled on failure if not NULL; NOT_READY fills nothing.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [EVT-6]
   * Blocking:  never.
   * Errors:    NOT_READY. The stream's first cause. [EVT-4]
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* query)(chipdock_event* event, chipdock_error* error);

  /**
   * Waits until the event is reached.
   *
   * @param event      From create. [EVT-2]
   * @param timeout_ns Limit in nanoseconds, -1 for ever, 0 asks. [DEV-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [EVT-6]
   * Blocking:  waits for the event.
   * Errors:    TIMEOUT. The stream's first cause. [EVT-4]
   * Since:     ABI 1.0, optional: as create.
   */
  chipdock_status(CHIPDOCK_CALL* sync)(chipdock_event* event, int64_t timeout_ns,
                                       chipdock_error* error);

  /**
   * Time between two events.
   *
   * @param start          Recorded and reached, made with TIMING. [EVT-5]
   * @param end            The same.
   * @param out_nanoseconds Set to end - start; negative if they are the other way round. Not NULL.
   * @param error          Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    NOT_READY: one is not reached. INVALID_ARGUMENT: not a timing event, never recorded.
   * Since:     ABI 1.0, optional: the host's clock at the moment its queue reached the point.
   */
  chipdock_status(CHIPDOCK_CALL* elapsed)(chipdock_event* start, chipdock_event* end,
                                          int64_t* out_nanoseconds, chipdock_error* error);

  /**
   * Gives the vendor's own event under this one.
   *
   * @param event      From create.
   * @param out_native Set to the native event. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrowed until destroy.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    UNSUPPORTED. INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* native)(chipdock_event* event, void** out_native,
                                         chipdock_error* error);

  /**
   * Names an IPC event for another process on this host.
   *
   * @param event    From create with CHIPDOCK_EVENT_IPC.
   * @param blob     Receives tagged bytes, or NULL to ask for the size.
   * @param size     Bytes of `blob`; 0 if it is NULL.
   * @param out_size Set to the bytes needed. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    UNSUPPORTED. INVALID_ARGUMENT: no IPC flag, blob too small (out_size is set).
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* export_ipc)(chipdock_event* event, void* blob, uint64_t size,
                                             uint64_t* out_size, chipdock_error* error);
} chipdock_event_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_EVENT_H_ */
