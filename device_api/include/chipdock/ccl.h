/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The ccl table: collectives that a vendor's library does itself. Optional: without it, or for an
 * operation it does not take, chipdock's portable collectives stage through host memory. Version
 * 0.1: slots and structs may still change; define CHIPDOCK_UNSTABLE to see them.
 *
 * This is the provider's side. What callers see (work handles, groups, time-outs of a wait, join,
 * agree, the recorder) is made by the host out of streams, events and these slots. A group of
 * operations is one enqueue of several, so no slot has hidden state.
 *
 * Duties:
 *   CCL-1  An operation reads its inputs after earlier work of the stream and is complete before
 *          later work. All ranks queue the same operations in the same order on a comm.
 *   CCL-2  The operations of one enqueue run as if at once: none waits for another of them to end.
 *   CCL-3  In place is legal as follows: all_reduce, broadcast, reduce: send is receive;
 *          reduce_scatter: receive is send + rank*count; all_gather: send is receive + rank*count.
 *          all_to_all never.
 *   CCL-4  Every rank gets the same bits from all_reduce. With DETERMINISTIC the same inputs give
 *          the same bits each time. 16-bit and 8-bit floats are summed in fp32 and rounded once, to
 *          nearest even.
 *   CCL-5  min and max give NaN if any input is NaN, and -0 is less than +0. Integers wrap. avg of
 *          integers rounds towards zero.
 *   CCL-6  Counts of 0, one rank, and counts over 2^31 are valid.
 *   CCL-7  The first error of a comm is kept: afterwards every call but abort, error, shrink and
 *          destroy returns that code within a millisecond, and no queued operation hangs: its
 *          stream fails with it.
 *   CCL-8  error and abort may run beside any call. Other calls on one comm are serialised by the
 *          host; different comms are independent.
 *   CCL-9  With SUPPORT_TIMEOUT, an operation that has not ended timeout_ns after it could start
 *          fails the comm with TIMEOUT. Without, the host watches and calls abort.
 *   CCL-10 Ids are good for one comm; another process of the same user cannot guess one.
 *   CCL-11 After abort the outputs of unfinished operations are undefined; inputs are untouched.
 *   CCL-12 query, unique_id, init, enqueue, error, abort and destroy come together; so do
 *          register_memory and deregister_memory.
 */
#ifndef CHIPDOCK_CCL_H_
#define CHIPDOCK_CCL_H_

#include "chipdock/base.h"
#include "chipdock/memory.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CHIPDOCK_UNSTABLE)

#define CHIPDOCK_CCL_MAJOR 0
#define CHIPDOCK_CCL_MINOR 1

typedef struct chipdock_ccl_comm chipdock_ccl_comm; /**< One rank of a group. */
/** Memory made known to a comm. */
typedef struct chipdock_ccl_registration chipdock_ccl_registration;

/** `chipdock_ccl_op.kind`. */
enum {
  CHIPDOCK_CCL_ALL_REDUCE = 1,
  CHIPDOCK_CCL_REDUCE = 2,
  CHIPDOCK_CCL_BROADCAST = 3,
  CHIPDOCK_CCL_ALL_GATHER = 4,     /**< With receive_counts: ranks give different counts. */
  CHIPDOCK_CCL_REDUCE_SCATTER = 5, /**< With receive_counts: ranks get different counts. */
  CHIPDOCK_CCL_ALL_TO_ALL = 6,     /**< With send_counts and receive_counts: all counts differ. */
  CHIPDOCK_CCL_GATHER = 7,
  CHIPDOCK_CCL_SCATTER = 8,
  CHIPDOCK_CCL_SEND = 9,
  CHIPDOCK_CCL_RECEIVE = 10,
  CHIPDOCK_CCL_BARRIER = 11
};

/** `chipdock_ccl_op.reduction`. */
enum {
  CHIPDOCK_CCL_SUM = 0,
  CHIPDOCK_CCL_PROD = 1,
  CHIPDOCK_CCL_MIN = 2,
  CHIPDOCK_CCL_MAX = 3,
  CHIPDOCK_CCL_AVG = 4,
  CHIPDOCK_CCL_PREMUL_SUM = 5, /**< Each rank's input times its `scalar`, then the sum. */
  CHIPDOCK_CCL_BIT_AND = 6,
  CHIPDOCK_CCL_BIT_OR = 7,
  CHIPDOCK_CCL_BIT_XOR = 8,
  CHIPDOCK_CCL_LOGICAL_AND = 9,
  CHIPDOCK_CCL_LOGICAL_OR = 10
};

/** `chipdock_ccl_support.order`: how an operation keeps stream order. */
enum {
  CHIPDOCK_CCL_ORDER_NONE = 0,          /**< Not offered; the host stages it. */
  CHIPDOCK_CCL_ORDER_NATIVE = 1,        /**< Device work of the stream. */
  CHIPDOCK_CCL_ORDER_HOST_FUNCTION = 2, /**< A function of the plugin in stream order. */
  CHIPDOCK_CCL_ORDER_BLOCKING = 3       /**< enqueue waits for the stream; reported to the user. */
};

/** Question and answer of query. */
typedef struct chipdock_ccl_support {
  uint32_t struct_size;
  int32_t kind;         /**< In: CHIPDOCK_CCL_ALL_REDUCE …. */
  chipdock_dtype dtype; /**< In. */
  int32_t reduction;    /**< In: CHIPDOCK_CCL_SUM …; 0 if the kind reduces nothing. */
  int32_t order;        /**< Out: CHIPDOCK_CCL_ORDER_*. */
  uint32_t flags;       /**< Out: CHIPDOCK_CCL_SUPPORT_*. */
} chipdock_ccl_support;

/** `chipdock_ccl_support.flags`. */
enum {
  CHIPDOCK_CCL_SUPPORT_CAPTURABLE = 1 << 0, /**< May be queued on a captured stream. */
  CHIPDOCK_CCL_SUPPORT_TIMEOUT = 1 << 1     /**< The provider keeps timeout_ns itself. [CCL-9] */
};

/** Keys and values shared by all ranks, given by the host: any launcher's store fits behind it. */
typedef struct chipdock_ccl_store {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  void* context;  /**< First argument of the functions. */
  /** Sets `key` to `size` bytes. */
  chipdock_status(CHIPDOCK_CALL* set)(void* context, const char* key, const void* data,
                                      uint64_t size);
  /**
   * Waits for `key`; `size` in: room, out: bytes. TIMEOUT, or INVALID_ARGUMENT if room is too
   * small.
   */
  chipdock_status(CHIPDOCK_CALL* get)(void* context, const char* key, void* data, uint64_t* size,
                                      int64_t timeout_ns);
  /** Adds to a counter that starts at 0 and gives its new value. */
  chipdock_status(CHIPDOCK_CALL* add)(void* context, const char* key, int64_t amount, int64_t* out);
} chipdock_ccl_store;

/** `chipdock_ccl_comm_desc.flags`. */
enum {
  CHIPDOCK_CCL_DETERMINISTIC = 1 << 0, /**< [CCL-4] */
  CHIPDOCK_CCL_NONBLOCKING = 1 << 1    /**< init returns NOT_READY; poll it. */
};

/** How to join a comm. Every rank gives the same rank_count and id. */
typedef struct chipdock_ccl_comm_desc {
  uint32_t struct_size;
  uint32_t flags;     /**< CHIPDOCK_CCL_DETERMINISTIC, CHIPDOCK_CCL_NONBLOCKING. */
  int32_t rank;       /**< 0 to rank_count-1. */
  int32_t rank_count; /**< 1 or more. */
  const void* id;     /**< From unique_id of one rank, carried to all by the host. [CCL-10] */
  uint64_t id_size;   /**< Bytes of `id`. */
  const chipdock_ccl_store* store; /**< The host's store, valid until destroy; never NULL. */
  const char* name;                /**< For messages. */
  int64_t init_timeout_ns;         /**< -1 = for ever. */
  uint32_t option_count;
  uint32_t max_units; /**< Compute units that operations may take; 0 = the library's choice. */
  const chipdock_option* const* options; /**< Unknown keys are INVALID_ARGUMENT and named. */
  uint64_t correlation_id;
} chipdock_ccl_comm_desc;

/** One operation. Counts are elements of `dtype`. */
typedef struct chipdock_ccl_op {
  uint32_t struct_size;
  int32_t kind; /**< CHIPDOCK_CCL_ALL_REDUCE …. */
  chipdock_dtype dtype;
  int32_t reduction;             /**< CHIPDOCK_CCL_SUM …. */
  int32_t root;                  /**< Root, or the other rank of SEND and RECEIVE. */
  uint32_t flags;                /**< 0. */
  const chipdock_place* send;    /**< NULL if this rank sends nothing. [CCL-3] */
  const chipdock_place* receive; /**< NULL if it receives nothing. */
  /** Sent by each rank; REDUCE_SCATTER: received; ALL_TO_ALL, SCATTER: a rank pair. */
  uint64_t count;
  const uint64_t* send_counts;     /**< NULL, or rank_count counts. */
  const uint64_t* send_offsets;    /**< As send_counts: elements from the start of `send`. */
  const uint64_t* receive_counts;  /**< NULL, or rank_count counts. */
  const uint64_t* receive_offsets; /**< As receive_counts: elements from the start of `receive`. */
  /** PREMUL_SUM: one element; on the device it is read in stream order. */
  const chipdock_place* scalar;
} chipdock_ccl_op;

/** One or more operations that go together. [CCL-2] */
typedef struct chipdock_ccl_enqueue_desc {
  uint32_t struct_size;
  uint32_t op_count;
  const chipdock_ccl_op* const* ops;
  chipdock_stream* stream; /**< NULL: ended on return. */
  int64_t timeout_ns;      /**< -1 = for ever. [CCL-9] */
  uint64_t correlation_id;
} chipdock_ccl_enqueue_desc;

/** Why a comm failed. */
typedef struct chipdock_ccl_failure {
  uint32_t struct_size;
  int32_t code;                        /**< CHIPDOCK_OK: it did not. */
  int64_t vendor_code;                 /**< The library's own code. */
  int32_t failed_rank;                 /**< 1 + the first rank known to have failed; 0 = unknown. */
  uint32_t text_size;                  /**< Bytes of `text` in use, without the closing 0. */
  uint64_t correlation_id;             /**< Of the operation that failed first; 0 = unknown. */
  char text[CHIPDOCK_ERROR_TEXT_SIZE]; /**< UTF-8, closed with 0. */
} chipdock_ccl_failure;

/** How to make a comm out of a comm: all its ranks call. */
typedef struct chipdock_ccl_split_desc {
  uint32_t struct_size;
  int32_t color;  /**< Ranks of one color form a comm; -1 = in none, `*out_comm` is NULL. */
  int32_t key;    /**< Order of ranks in it; ties by old rank. */
  uint32_t flags; /**< As chipdock_ccl_comm_desc.flags. */
  int64_t timeout_ns;
  uint64_t correlation_id;
} chipdock_ccl_split_desc;

/** How to go on without some ranks: the others call, all with the same list. */
typedef struct chipdock_ccl_shrink_desc {
  uint32_t struct_size;
  uint32_t excluded_count;
  const int32_t* excluded; /**< Ranks to leave out, agreed on by the host. */
  int64_t timeout_ns;
  uint64_t correlation_id;
} chipdock_ccl_shrink_desc;

/** The ccl table, "chipdock.ccl". */
typedef struct chipdock_ccl_api {
  chipdock_table_header header;

  /**
   * Says whether and how an operation is done natively.
   *
   * @param device      From open.
   * @param out_support Question in, answer out; order NONE is a normal answer. Not NULL. [BASE-5]
   * @param error       Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may load the library.
   * Errors:    INVALID_ARGUMENT: NULL or short output. UNAVAILABLE: the library is absent, named.
   * Since:     ccl 0.1, optional: the host stages everything. [CCL-12]
   */
  chipdock_status(CHIPDOCK_CALL* query)(chipdock_device* device, chipdock_ccl_support* out_support,
                                        chipdock_error* error);

  /**
   * Makes an id for one new comm, on one rank.
   *
   * @param device   From open.
   * @param id       Receives the bytes, or NULL to ask for the size.
   * @param size     Bytes of `id`; 0 if it is NULL.
   * @param out_size Set to the bytes needed. Not NULL. [CCL-10]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may open a listening socket.
   * Errors:    INVALID_ARGUMENT: NULL, id too small (out_size is set). UNAVAILABLE: no network.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* unique_id)(chipdock_device* device, void* id, uint64_t size,
                                            uint64_t* out_size, chipdock_error* error);

  /**
   * Joins a comm as one rank.
   *
   * @param device   From open.
   * @param desc     Rank, id, store. Not NULL.
   * @param out_comm Set to the comm, also with NOT_READY. Not NULL. [BASE-8]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, its store until destroy; returns `*out_comm`.
   * Threading: any thread.
   * Blocking:  waits for all ranks; with NONBLOCKING never for long.
   * Errors:    NOT_READY: see poll. TIMEOUT: ranks that did not come are named. PEER_FAILED.
   *            MISMATCH: counts or libraries differ. INVALID_ARGUMENT.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* init)(chipdock_device* device, const chipdock_ccl_comm_desc* desc,
                                       chipdock_ccl_comm** out_comm, chipdock_error* error);

  /**
   * Says whether init, split or shrink of a comm has ended.
   *
   * @param comm  From init with NONBLOCKING.
   * @param error Filled on failure if not NULL; NOT_READY fills nothing.
   *
   * Ownership: borrows everything for this call.
   * Threading: serialised by the host. [CCL-8]
   * Blocking:  never.
   * Errors:    NOT_READY. What init would have returned.
   * Since:     ccl 0.1, optional: NONBLOCKING is then UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* poll)(chipdock_ccl_comm* comm, chipdock_error* error);

  /**
   * Queues operations. [CCL-1] to [CCL-6]
   *
   * @param comm  From init.
   * @param desc  Operations, stream, time limit. Not NULL. [CCL-2] [CCL-9]
   * @param error Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` and its arrays for this call, memory until the work has ended.
   * Threading: serialised by the host for one comm and one stream. [CCL-8]
   * Blocking:  NULL stream or order BLOCKING: until done. Else stream-ordered.
   * Errors:    INVALID_ARGUMENT: nothing was queued. UNSUPPORTED: as query said. The comm's first
   *            error.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* enqueue)(chipdock_ccl_comm* comm,
                                          const chipdock_ccl_enqueue_desc* desc,
                                          chipdock_error* error);

  /**
   * Reads the first error of a comm.
   *
   * @param comm        From init.
   * @param out_failure Written up to its struct_size. Not NULL. [BASE-5] [CCL-7]
   * @param error       Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [CCL-8]
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL or short output. A failed comm is OK here.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* error)(chipdock_ccl_comm* comm, chipdock_ccl_failure* out_failure,
                                        chipdock_error* error);

  /**
   * Fails a comm here and, where the library can, at its peers. Queued operations end.
   *
   * @param comm  From init. Afterwards error, shrink and destroy are left. [CCL-11]
   * @param code  Kept as the first error if there is none: ABORTED, TIMEOUT, PEER_FAILED or
   *              REVOKED.
   * @param error Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread. [CCL-8]
   * Blocking:  never for long.
   * Errors:    INVALID_ARGUMENT: NULL, code.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* abort)(chipdock_ccl_comm* comm, int32_t code,
                                        chipdock_error* error);

  /**
   * Ends one rank of a comm. Local: it waits for no peer.
   *
   * @param comm  From init; invalid afterwards, also on failure.
   * @param error Filled on failure if not NULL.
   *
   * Ownership: takes `comm`; its registrations end with it.
   * Threading: one caller, no other call on the comm at the same time.
   * Blocking:  may wait for operations in flight; after abort never for long.
   * Errors:    INVALID_ARGUMENT: NULL. Errors of operations are not reported here.
   * Since:     ccl 0.1, optional: as query.
   */
  chipdock_status(CHIPDOCK_CALL* destroy)(chipdock_ccl_comm* comm, chipdock_error* error);

  /**
   * Makes comms out of a comm.
   *
   * @param comm     From init; it goes on.
   * @param desc     Color and key. Not NULL.
   * @param out_comm Set to the new comm, or NULL for color -1. Not NULL. [BASE-8]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_comm`, ended by destroy.
   * Threading: serialised by the host; all ranks call. [CCL-8]
   * Blocking:  waits for all ranks; NONBLOCKING: NOT_READY.
   * Errors:    as init. The comm's first error.
   * Since:     ccl 0.1, optional: the host makes a new comm by init.
   */
  chipdock_status(CHIPDOCK_CALL* split)(chipdock_ccl_comm* comm,
                                        const chipdock_ccl_split_desc* desc,
                                        chipdock_ccl_comm** out_comm, chipdock_error* error);

  /**
   * Makes a comm of the ranks that are left. Works on a failed comm.
   *
   * @param comm     From init; only destroy is left for it.
   * @param desc     Ranks to leave out. Not NULL.
   * @param out_comm Set to the new comm; ranks keep their order. Not NULL. [BASE-8]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_comm`, ended by destroy.
   * Threading: serialised by the host; all ranks left call. [CCL-8]
   * Blocking:  waits for the ranks left; NONBLOCKING: NOT_READY.
   * Errors:    as init.
   * Since:     ccl 0.1, optional: the host makes a new comm by init.
   */
  chipdock_status(CHIPDOCK_CALL* shrink)(chipdock_ccl_comm* comm,
                                         const chipdock_ccl_shrink_desc* desc,
                                         chipdock_ccl_comm** out_comm, chipdock_error* error);

  /**
   * Makes memory known to a comm, so that operations on it need no staging.
   *
   * @param comm             From init.
   * @param place            Start of the range. Not NULL. [MEM-3]
   * @param size             Bytes, more than 0.
   * @param out_registration Set to the registration. Not NULL. [BASE-8]
   * @param error            Filled on failure if not NULL.
   *
   * Ownership: borrows `place` for this call, the memory until deregister_memory or destroy.
   * Threading: serialised by the host. [CCL-8]
   * Blocking:  may wait for the driver.
   * Errors:    UNSUPPORTED: this memory; operations on it work all the same. INVALID_ARGUMENT.
   * Since:     ccl 0.1, optional: nothing is registered.
   */
  chipdock_status(CHIPDOCK_CALL* register_memory)(chipdock_ccl_comm* comm,
                                                  const chipdock_place* place, uint64_t size,
                                                  chipdock_ccl_registration** out_registration,
                                                  chipdock_error* error);

  /**
   * Ends a registration. No queued operation uses the memory any more.
   *
   * @param comm         The one that registered.
   * @param registration From register_memory; invalid afterwards, also on failure.
   * @param error        Filled on failure if not NULL.
   *
   * Ownership: takes `registration`.
   * Threading: serialised by the host. [CCL-8]
   * Blocking:  may wait for the driver.
   * Errors:    INVALID_ARGUMENT: NULL.
   * Since:     ccl 0.1, optional: present if register_memory is.
   */
  chipdock_status(CHIPDOCK_CALL* deregister_memory)(chipdock_ccl_comm* comm,
                                                    chipdock_ccl_registration* registration,
                                                    chipdock_error* error);
} chipdock_ccl_api;

#endif /* CHIPDOCK_UNSTABLE */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_CCL_H_ */
