/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The memory table: allocations of a device, copies between them and the host, sharing.
 *
 * Memory is a pair (handle, offset in bytes). Three slots are required: alloc, free, copy. Version
 * 1.0.
 *
 * Duties:
 *   MEM-1  alloc returns memory of at least `size` bytes at the heap's alignment, never shared with
 *          another live allocation. Contents are undefined.
 *   MEM-2  free is called once per allocation, when no queued work uses it any more; the host sees
 *          to that.
 *   MEM-3  Every range (offset, size) lies inside its allocation; offset + size does not wrap.
 *   MEM-4  Host ranges are readable (source) or writable (target) until the copy has ended.
 *   MEM-5  A copy with a NULL stream has ended when the call returns. With a stream it takes effect
 *          in the stream's order, and a pageable host source is borrowed until the copy has ended.
 *   MEM-6  Source and target of a copy do not overlap; the callee need not check.
 *   MEM-7  Size 0 does nothing, but arguments are checked all the same.
 *   MEM-8  Several threads may call any slot at once, also on the same device.
 *   MEM-9  Out of memory leaves every live allocation as it was, and a later smaller alloc may
 *          succeed.
 *   MEM-10 alloc_async memory may be used by work queued on that stream after the call, and by
 *          other streams only behind an event; free_async takes effect behind all work queued
 *          before it on that stream.
 */
#ifndef CHIPDOCK_MEMORY_H_
#define CHIPDOCK_MEMORY_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHIPDOCK_MEMORY_MAJOR 1
#define CHIPDOCK_MEMORY_MINOR 0

/** `chipdock_alloc_desc.usage`: hints, any combination; 0 = anything. */
enum {
  CHIPDOCK_USAGE_WEIGHTS = 1 << 0,   /**< Written once, read often. */
  CHIPDOCK_USAGE_WORKSPACE = 1 << 1, /**< Scratch of kernels. */
  CHIPDOCK_USAGE_TRANSFER = 1 << 2,  /**< Mostly source or target of copies. */
  CHIPDOCK_USAGE_SHARED = 1 << 3     /**< Will be exported to another process or API. */
};

/** How to allocate. */
typedef struct chipdock_alloc_desc {
  uint32_t struct_size;
  uint32_t heap;           /**< Index into chipdock_device_info.heaps; 0 is the default. */
  uint64_t size;           /**< Bytes, more than 0. */
  uint64_t alignment;      /**< Power of two, or 0 for the heap's own. */
  uint32_t usage;          /**< CHIPDOCK_USAGE_*. */
  uint32_t flags;          /**< 0. */
  chipdock_stream* stream; /**< alloc_async only; NULL for alloc. */
  uint64_t correlation_id;
} chipdock_alloc_desc;

/**
 * A place in device or host memory. Exactly one of `memory` and `host` is not NULL (both may be for
 * size 0).
 */
typedef struct chipdock_place {
  uint32_t struct_size;
  uint32_t flags;          /**< CHIPDOCK_PLACE_*. */
  chipdock_memory* memory; /**< An allocation of `device`. */
  uint64_t offset;         /**< Bytes from its start; 0 with `host`. */
  void* host;              /**< Host address. */
  /** Owner of `memory` if not the device of the call (peer copy); else NULL. */
  chipdock_device* device;
} chipdock_place;

/** `chipdock_place.flags`. */
enum {
  CHIPDOCK_PLACE_PINNED = 1 << 0 /**< `host` lies in memory from host_alloc of this device. */
};

/** One copy: host to device, device to host, device to device, peer; also host to host. */
typedef struct chipdock_copy_desc {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  const chipdock_place* source;
  const chipdock_place* target;
  uint64_t size;           /**< Bytes. [MEM-3] [MEM-7] */
  chipdock_stream* stream; /**< NULL: ended on return. [MEM-5] */
  uint64_t correlation_id;
} chipdock_copy_desc;

/** A copy of `rows` rows of `row_bytes` bytes each, `pitch` bytes from row start to row start. */
typedef struct chipdock_copy_2d_desc {
  uint32_t struct_size;
  uint32_t flags; /**< 0. */
  const chipdock_place* source;
  const chipdock_place* target;
  uint64_t row_bytes;
  uint64_t rows;
  uint64_t source_pitch; /**< At least row_bytes. */
  uint64_t target_pitch; /**< At least row_bytes. */
  chipdock_stream* stream;
  uint64_t correlation_id;
} chipdock_copy_2d_desc;

/** Fill of a range with a repeated pattern. */
typedef struct chipdock_fill_desc {
  uint32_t struct_size;
  uint32_t pattern_size; /**< 1, 2, 4, 8 or 16 bytes; divides offset and size. */
  const chipdock_place* target;
  uint64_t size; /**< Bytes. */
  uint8_t pattern[16];
  chipdock_stream* stream;
  uint64_t correlation_id;
} chipdock_fill_desc;

/** Memory of one heap, device-wide where the driver can tell. */
typedef struct chipdock_memory_info {
  uint32_t struct_size;
  uint32_t heap; /**< In: which heap. */
  uint64_t free_bytes;
  uint64_t total_bytes;
} chipdock_memory_info;

/** `chipdock_external.kind`: what a piece of external memory is named by. */
enum {
  CHIPDOCK_EXTERNAL_FD = 1,      /**< A dma-buf or opaque file descriptor in `fd`. */
  CHIPDOCK_EXTERNAL_POINTER = 2, /**< An address of the vendor's API or of the host in `pointer`. */
  CHIPDOCK_EXTERNAL_IPC = 3      /**< Tagged bytes for another process on this host in `blob`. */
};

/**
 * External memory. `blob` is size-queried: call with blob NULL, then with blob_size bytes of room.
 */
typedef struct chipdock_external {
  uint32_t struct_size;
  int32_t kind;       /**< CHIPDOCK_EXTERNAL_*. */
  int32_t fd;         /**< The receiver of an export owns it; an import takes it only on success. */
  uint32_t heap;      /**< Import: heap it counts to. */
  void* pointer;      /**< Borrowed for as long as the imported memory lives. */
  void* blob;         /**< Caller's bytes. */
  uint64_t blob_size; /**< In: room; out: bytes used or needed. */
  uint64_t size;      /**< Bytes of the memory. */
} chipdock_external;

/** The memory table, "chipdock.memory". */
typedef struct chipdock_memory_api {
  chipdock_table_header header;

  /**
   * Allocates device memory.
   *
   * @param device     From open.
   * @param desc       Heap, size, alignment. Not NULL.
   * @param out_memory Set to the allocation. Not NULL. [MEM-1] [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_memory`, ended by free.
   * Threading: any thread. [MEM-8]
   * Blocking:  may wait for the driver; the host caches blocks so as to call it seldom.
   * Errors:    OUT_OF_MEMORY: text gives size, free and total. [MEM-9] INVALID_ARGUMENT: heap, size
   *            0.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* alloc)(chipdock_device* device, const chipdock_alloc_desc* desc,
                                        chipdock_memory** out_memory, chipdock_error* error);

  /**
   * Frees memory from alloc or an import.
   *
   * @param device From open; the one that made `memory`.
   * @param memory Invalid afterwards, also on failure. [MEM-2]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `memory`.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    INVALID_ARGUMENT: NULL. DEVICE_LOST: the handle is dropped all the same.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* free)(chipdock_device* device, chipdock_memory* memory,
                                       chipdock_error* error);

  /**
   * Copies bytes between any two places, in stream order.
   *
   * @param device From open; the owner of places that name no device.
   * @param desc   Places, size, stream. Not NULL. [MEM-3] [MEM-4] [MEM-6] [MEM-7]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call, both places until the copy has ended. [MEM-5]
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  NULL stream: until the copy has ended. Else stream-ordered; may wait for staging
   *            space.
   * Errors:    INVALID_ARGUMENT: NULL, both or neither of memory and host. FAILED_PRECONDITION: the
   *            stream failed. DEVICE_LOST. Nothing was queued.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* copy)(chipdock_device* device, const chipdock_copy_desc* desc,
                                       chipdock_error* error);

  /**
   * Allocates in the order of `desc->stream`.
   *
   * @param device     From open.
   * @param desc       As alloc, with a stream. Not NULL. [MEM-10]
   * @param out_memory Set to the allocation. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: as alloc; ended by free_async or free.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered.
   * Errors:    as alloc; INVALID_ARGUMENT: NULL stream.
   * Since:     ABI 1.0, optional: the host's caching allocator does it over alloc.
   */
  chipdock_status(CHIPDOCK_CALL* alloc_async)(chipdock_device* device,
                                              const chipdock_alloc_desc* desc,
                                              chipdock_memory** out_memory, chipdock_error* error);

  /**
   * Frees behind all work queued on `stream` so far.
   *
   * @param device From open.
   * @param memory From alloc or alloc_async; not used by the caller any more. [MEM-10]
   * @param stream Not NULL.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `memory`.
   * Threading: any thread; enqueues on one stream are serialised by the host.
   * Blocking:  stream-ordered.
   * Errors:    INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: the stream failed; freed all the same.
   * Since:     ABI 1.0, optional: present if alloc_async is.
   */
  chipdock_status(CHIPDOCK_CALL* free_async)(chipdock_device* device, chipdock_memory* memory,
                                             chipdock_stream* stream, chipdock_error* error);

  /**
   * Copies a rectangle of rows in stream order.
   *
   * @param device From open.
   * @param desc   Places, rows, pitches. Not NULL. [MEM-3] [MEM-6]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: as copy.
   * Threading: as copy.
   * Blocking:  as copy.
   * Errors:    as copy; INVALID_ARGUMENT: a pitch under row_bytes.
   * Since:     ABI 1.0, optional: the host copies row by row.
   */
  chipdock_status(CHIPDOCK_CALL* copy_2d)(chipdock_device* device,
                                          const chipdock_copy_2d_desc* desc, chipdock_error* error);

  /**
   * Fills a range with a pattern in stream order.
   *
   * @param device From open.
   * @param desc   Range and pattern. Not NULL. [MEM-3] [MEM-7]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call.
   * Threading: as copy.
   * Blocking:  as copy.
   * Errors:    INVALID_ARGUMENT: pattern_size, or it does not divide offset or size. As copy.
   * Since:     ABI 1.0, optional: the host copies from a filled host block.
   */
  chipdock_status(CHIPDOCK_CALL* fill)(chipdock_device* device, const chipdock_fill_desc* desc,
                                       chipdock_error* error);

  /**
   * Says how much of a heap is free.
   *
   * @param device   From open.
   * @param out_info `heap` in, the rest out. Not NULL. [BASE-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    INVALID_ARGUMENT: NULL, short output, heap out of range.
   * Since:     ABI 1.0, optional: the host reckons from heap size and its own allocations.
   */
  chipdock_status(CHIPDOCK_CALL* info)(chipdock_device* device, chipdock_memory_info* out_info,
                                       chipdock_error* error);

  /**
   * Drops caches of the plugin, after an out-of-memory, before the host tries again.
   *
   * @param device From open.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: touches no memory that the host holds.
   * Threading: any thread.
   * Blocking:  may wait for work in flight.
   * Errors:    none of its own.
   * Since:     ABI 1.0, optional: nothing to drop.
   */
  chipdock_status(CHIPDOCK_CALL* trim)(chipdock_device* device, chipdock_error* error);

  /**
   * Allocates host memory that the device copies to and from at full speed.
   *
   * @param device   From open.
   * @param size     Bytes, more than 0.
   * @param out_host Set to the address, aligned to 64 bytes or more. Not NULL. [BASE-8]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: returns `*out_host`, ended by host_free.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    OUT_OF_MEMORY. INVALID_ARGUMENT: NULL, size 0.
   * Since:     ABI 1.0, optional: the host uses pageable memory.
   */
  chipdock_status(CHIPDOCK_CALL* host_alloc)(chipdock_device* device, uint64_t size,
                                             void** out_host, chipdock_error* error);

  /**
   * Frees memory from host_alloc. No queued copy uses it any more.
   *
   * @param device From open.
   * @param host   From host_alloc; invalid afterwards.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `host`.
   * Threading: any thread.
   * Blocking:  may wait for the driver.
   * Errors:    INVALID_ARGUMENT: NULL or foreign.
   * Since:     ABI 1.0, optional: present if host_alloc is.
   */
  chipdock_status(CHIPDOCK_CALL* host_free)(chipdock_device* device, void* host,
                                            chipdock_error* error);

  /**
   * Gives the address of an allocation in the device's address space.
   *
   * For heaps flagged ADDRESSABLE. If the heap is HOST_VISIBLE too, the host may use it as a
   * pointer.
   *
   * @param device      From open.
   * @param memory      From alloc or an import.
   * @param out_address Set to the address of offset 0. Not NULL. [BASE-8]
   * @param error       Filled on failure if not NULL.
   *
   * Ownership: valid until `memory` is freed.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    UNSUPPORTED: the heap has no addresses. INVALID_ARGUMENT: NULL.
   * Since:     ABI 1.0, optional: required if a heap is ADDRESSABLE or HOST_VISIBLE.
   */
  chipdock_status(CHIPDOCK_CALL* address)(chipdock_device* device, chipdock_memory* memory,
                                          void** out_address, chipdock_error* error);

  /**
   * Makes host writes to a range visible to the device (flush), for heaps that are not COHERENT.
   *
   * @param device From open.
   * @param memory From alloc or an import.
   * @param offset Bytes.
   * @param size   Bytes. [MEM-3]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL or range.
   * Since:     ABI 1.0, optional: required if a heap is HOST_VISIBLE and not COHERENT.
   */
  chipdock_status(CHIPDOCK_CALL* flush)(chipdock_device* device, chipdock_memory* memory,
                                        uint64_t offset, uint64_t size, chipdock_error* error);

  /**
   * Makes device writes to a range visible to the host (invalidate), for heaps that are not
   * COHERENT.
   *
   * @param device From open.
   * @param memory From alloc or an import.
   * @param offset Bytes.
   * @param size   Bytes. [MEM-3]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never for the device.
   * Errors:    INVALID_ARGUMENT: NULL or range.
   * Since:     ABI 1.0, optional: present if flush is.
   */
  chipdock_status(CHIPDOCK_CALL* invalidate)(chipdock_device* device, chipdock_memory* memory,
                                             uint64_t offset, uint64_t size, chipdock_error* error);

  /**
   * Names an allocation for another process or API.
   *
   * @param device       From open.
   * @param memory       From alloc with usage SHARED.
   * @param out_external `kind` (and blob, blob_size for IPC) in, the rest out. Not NULL. [BASE-5]
   * @param error        Filled on failure if not NULL.
   *
   * Ownership: an fd belongs to the caller; the memory outlives every import of it only if not
   *            freed.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    UNSUPPORTED: kind. INVALID_ARGUMENT: NULL, blob too small (blob_size is set).
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* export_memory)(chipdock_device* device, chipdock_memory* memory,
                                                chipdock_external* out_external,
                                                chipdock_error* error);

  /**
   * Makes an allocation out of external memory, without a copy.
   *
   * @param device     From open.
   * @param external   What to import. Not NULL.
   * @param out_memory Set to the allocation. Not NULL. [BASE-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: returns `*out_memory`, ended by free, which leaves the external memory alone.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    UNSUPPORTED: kind. MISMATCH: a blob of another chip or plugin. INVALID_ARGUMENT.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* import_memory)(chipdock_device* device,
                                                const chipdock_external* external,
                                                chipdock_memory** out_memory,
                                                chipdock_error* error);
} chipdock_memory_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_MEMORY_H_ */
