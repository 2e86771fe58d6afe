/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The device table: which devices a plugin has, what they are, and opening and closing them.
 *
 * Four slots are required: count, info, open, close. Table version 1.0.
 *
 * Duties:
 *   DEV-1  count may change only between processes; indices 0 to count-1 name the same chip until
 *          exit.
 *   DEV-2  count and info start no context on the chip and work without one being open.
 *   DEV-3  info's strings and heap array stay valid until shutdown. 0 in a numeric field means
 *          unknown.
 *   DEV-4  One chip may be opened several times; the opened devices are independent in handles and
 *          errors.
 *   DEV-5  close is called when no memory, stream, event or kernel instance of the device is left
 *          and no call runs; it works also after DEVICE_LOST.
 *   DEV-6  At least one heap; heap 0 is the default. alignment is a power of two.
 *   DEV-7  sync returns OK only when all work queued before the call has ended; it returns the
 *          first asynchronous error of the device that was not returned yet.
 *   DEV-8  Timeouts are nanoseconds; -1 waits for ever, 0 asks and returns TIMEOUT if not done.
 */
#ifndef CHIPDOCK_DEVICE_H_
#define CHIPDOCK_DEVICE_H_

#include "chipdock/base.h"
#include "chipdock/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHIPDOCK_DEVICE_MAJOR 1
#define CHIPDOCK_DEVICE_MINOR 0

/** `chipdock_device_info.flags`. */
enum {
  /** A NULL stream is the fast path: launches and copies cost no round trip to the device. */
  CHIPDOCK_DEVICE_PREFERS_INLINE = 1 << 0,
  /** Denormals may be flushed to zero by kernels. */
  CHIPDOCK_DEVICE_FLUSHES_DENORMALS = 1 << 1,
  /**
   * Kernels take any input in host memory too, at natural alignment, readable until the work has
   * ended.
   */
  CHIPDOCK_DEVICE_READS_HOST = 1 << 2
};

/** `chipdock_heap.flags`. */
enum {
  /**
   * (char*)address(memory) + offset can be read and written by the host at any time no work uses
   * it.
   */
  CHIPDOCK_HEAP_HOST_VISIBLE = 1 << 0,
  /** Host and device see each other's writes without flush and invalidate. */
  CHIPDOCK_HEAP_COHERENT = 1 << 1,
  /** handle + offset is an address in the device's address space; see memory.h `address`. */
  CHIPDOCK_HEAP_ADDRESSABLE = 1 << 2
};

/** One kind of memory of a device. */
typedef struct chipdock_heap {
  uint32_t struct_size;
  uint32_t flags;                    /**< CHIPDOCK_HEAP_*. */
  uint64_t bytes;                    /**< Size of the heap. */
  uint64_t alignment;                /**< Of what alloc returns; power of two. [DEV-6] */
  uint64_t sub_allocation_alignment; /**< Of offsets given to kernels and copies; 0 = alignment. */
  uint64_t max_allocation;           /**< Largest single alloc; 0 = bytes. */
  const char* name;                  /**< For people: "HBM", "pinned", … */
} chipdock_heap;

/** Peak rate of one dtype. */
typedef struct chipdock_peak {
  uint32_t struct_size;
  chipdock_dtype dtype;
  double operations_per_second; /**< Multiply and add count as two. */
} chipdock_peak;

/** What a device is. Numbers are 0 when unknown. */
typedef struct chipdock_device_info {
  uint32_t struct_size;
  uint32_t flags;            /**< CHIPDOCK_DEVICE_*. */
  const char* product;       /**< Marketing name of the chip. */
  const char* architecture;  /**< The compiler's name of it, "sm_90"; "" if none. */
  const char* driver;        /**< Driver and its version; "" if none. */
  uint8_t uuid[16];          /**< The chip itself; two openings of one chip share it. */
  const char* pci_address;   /**< "0000:01:00.0"; "" if not a PCI device. */
  int32_t numa_node;         /**< Host NUMA node it hangs on; -1 = unknown. */
  uint32_t units;            /**< Compute units, multiprocessors, cores. */
  uint64_t memory_bandwidth; /**< Bytes per second to the default heap. */
  uint64_t l2_bytes;
  uint32_t heap_count; /**< At least 1. [DEV-6] */
  uint32_t peak_count;
  const chipdock_heap* const* heaps;
  const chipdock_peak* const* peaks;
} chipdock_device_info;

/** How to open a device. */
typedef struct chipdock_device_open_desc {
  uint32_t struct_size;
  int32_t index; /**< 0 to count-1. */
  uint32_t option_count;
  uint32_t flags;                        /**< 0. */
  const chipdock_option* const* options; /**< Unknown keys are INVALID_ARGUMENT and named. */
  /** A context of the vendor's own API to join, or NULL. Borrowed until close. */
  void* foreign_context;
} chipdock_device_open_desc;

/** Counters of an opened device, since open. */
typedef struct chipdock_device_stats {
  uint32_t struct_size;
  uint32_t flags;            /**< 0. */
  uint64_t allocated_bytes;  /**< In live allocations now. */
  uint64_t peak_bytes;       /**< Largest value of allocated_bytes. */
  uint64_t allocation_count; /**< Live allocations now. */
  uint64_t launch_count;
  uint64_t copy_bytes;
} chipdock_device_stats;

/** `chipdock_link_info.type`. */
enum {
  CHIPDOCK_LINK_UNKNOWN = 0,
  CHIPDOCK_LINK_SAME = 1,   /**< Two openings of one chip. */
  CHIPDOCK_LINK_FABRIC = 2, /**< Chip-to-chip link of the vendor. */
  CHIPDOCK_LINK_PCI = 3,    /**< Through a PCI switch or root. */
  CHIPDOCK_LINK_HOST = 4,   /**< Through host memory. */
  CHIPDOCK_LINK_NETWORK = 5
};

/** `chipdock_link_info.flags`. */
enum { CHIPDOCK_LINK_LOAD_STORE = 1 << 0, CHIPDOCK_LINK_ATOMICS = 1 << 1 };

/** How two devices are joined. */
typedef struct chipdock_link_info {
  uint32_t struct_size;
  int32_t type;               /**< CHIPDOCK_LINK_*. */
  uint32_t flags;             /**< CHIPDOCK_LINK_LOAD_STORE, CHIPDOCK_LINK_ATOMICS. */
  uint32_t sharing_group;     /**< Links of one group share their bandwidth; 0 = none. */
  uint64_t bandwidth;         /**< Bytes per second from device to peer. */
  uint64_t reverse_bandwidth; /**< From peer to device. */
  uint64_t latency_ns;
} chipdock_link_info;

/** `chipdock_health.state`. */
enum { CHIPDOCK_HEALTH_GOOD = 0, CHIPDOCK_HEALTH_DEGRADED = 1, CHIPDOCK_HEALTH_FAILED = 2 };

/** State of the chip as its driver sees it. */
typedef struct chipdock_health {
  uint32_t struct_size;
  int32_t state;         /**< CHIPDOCK_HEALTH_*. */
  int32_t temperature_c; /**< 0 = unknown. */
  uint32_t power_mw;     /**< 0 = unknown. */
  uint64_t corrected_errors;
  uint64_t uncorrected_errors;
  char text[256]; /**< Cause if not GOOD, closed with 0. */
} chipdock_health;

/** The device table, "chipdock.device". */
typedef struct chipdock_device_api {
  chipdock_table_header header;

  /**
   * Says how many devices this plugin sees.
   *
   * No driver and no device are 0 devices with OK only if that is normal on any machine; a driver
   * that is there but broken is UNAVAILABLE with its reason.
   *
   * @param plugin    The instance.
   * @param out_count Set to the count, 0 or more. Not NULL. [DEV-1]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may load and ask the driver; starts no context. [DEV-2]
   * Errors:    UNAVAILABLE: driver absent or broken. INVALID_ARGUMENT: NULL output.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* count)(chipdock_plugin* plugin, int32_t* out_count,
                                        chipdock_error* error);

  /**
   * Describes device `index`.
   *
   * @param plugin   The instance.
   * @param index    0 to count-1.
   * @param out_info Written up to its struct_size. Not NULL. [BASE-5] [DEV-3]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: strings and arrays belong to the plugin until shutdown.
   * Threading: any thread.
   * Blocking:  may ask the driver; starts no context. [DEV-2]
   * Errors:    INVALID_ARGUMENT: index out of range, NULL or short output. UNAVAILABLE.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* info)(chipdock_plugin* plugin, int32_t index,
                                       chipdock_device_info* out_info, chipdock_error* error);

  /**
   * Opens a device: makes a context in which memory, streams and kernels live.
   *
   * @param plugin     The instance.
   * @param desc       Index, options, foreign context. Not NULL.
   * @param out_device Set to the new device. Not NULL. [BASE-8] [DEV-4]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows `desc` for this call; returns `*out_device`, ended by close.
   * Threading: any thread.
   * Blocking:  may take seconds while the driver starts.
   * Errors:    INVALID_ARGUMENT: index, option or size. UNAVAILABLE. OUT_OF_MEMORY. BUSY: exclusive
   *            mode. Nothing stays open after a failure.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* open)(chipdock_plugin* plugin,
                                       const chipdock_device_open_desc* desc,
                                       chipdock_device** out_device, chipdock_error* error);

  /**
   * Closes a device and frees what is left of it.
   *
   * @param device From open; invalid afterwards, also on failure. [DEV-5]
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `device`.
   * Threading: one caller, no other call on the device at the same time.
   * Blocking:  may wait for work in flight.
   * Errors:    INTERNAL: something was still live; it was freed all the same.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* close)(chipdock_device* device, chipdock_error* error);

  /**
   * Waits until all work queued on the device so far has ended.
   *
   * @param device     From open.
   * @param timeout_ns Limit in nanoseconds, -1 for ever. [DEV-8]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread, also beside enqueues; later work is not waited for.
   * Blocking:  waits for the device.
   * Errors:    TIMEOUT. The first asynchronous error of the device, once. [DEV-7] DEVICE_LOST.
   * Since:     ABI 1.0, optional: the host syncs each stream it knows.
   */
  chipdock_status(CHIPDOCK_CALL* sync)(chipdock_device* device, int64_t timeout_ns,
                                       chipdock_error* error);

  /**
   * Reads the device's counters.
   *
   * @param device    From open.
   * @param out_stats Written up to its struct_size. Not NULL. [BASE-5]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    INVALID_ARGUMENT: NULL or short output.
   * Since:     ABI 1.0, optional: the host counts what passes through it.
   */
  chipdock_status(CHIPDOCK_CALL* stats)(chipdock_device* device, chipdock_device_stats* out_stats,
                                        chipdock_error* error);

  /**
   * Describes the link between two devices of this plugin.
   *
   * @param device   From open.
   * @param peer     From open of the same instance.
   * @param out_link Written up to its struct_size. Not NULL. [BASE-5]
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    INVALID_ARGUMENT: NULL, foreign peer.
   * Since:     ABI 1.0, optional: the host measures a copy.
   */
  chipdock_status(CHIPDOCK_CALL* link)(chipdock_device* device, chipdock_device* peer,
                                       chipdock_link_info* out_link, chipdock_error* error);

  /**
   * Reads the health of the chip.
   *
   * @param device     From open.
   * @param out_health Written up to its struct_size. Not NULL. [BASE-5]
   * @param error      Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    INVALID_ARGUMENT: NULL or short output. A lost device is OK with state FAILED.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* health)(chipdock_device* device, chipdock_health* out_health,
                                         chipdock_error* error);

  /**
   * Brings a failed device back. All memory, streams, events and instances of it are lost but still
   * have to be freed by their own calls, which then only drop the handle.
   *
   * @param device From open.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: one caller, no other call on the device at the same time.
   * Blocking:  may take seconds.
   * Errors:    DEVICE_LOST: it does not come back. UNAVAILABLE: not permitted to this user.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* reset)(chipdock_device* device, chipdock_error* error);

  /**
   * Allows or ends direct access from `device` to memory of `peer`. Copies work without it.
   *
   * @param device From open.
   * @param peer   From open of the same instance, not `device`.
   * @param enable 1 to allow, 0 to end; doing it twice is OK.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may wait for work in flight on both devices.
   * Errors:    UNSUPPORTED: the two cannot. INVALID_ARGUMENT: NULL, foreign or same peer.
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* peer_access)(chipdock_device* device, chipdock_device* peer,
                                              int32_t enable, chipdock_error* error);

  /**
   * Reads one vendor-defined value as text.
   *
   * @param device   From open.
   * @param key      Name, closed with 0; "keys" lists the names, one a line. Not NULL.
   * @param buffer   Receives UTF-8 closed with 0, or NULL to ask for the size.
   * @param size     Bytes of `buffer`; 0 if it is NULL.
   * @param out_size Set to the bytes needed with the closing 0. Not NULL.
   * @param error    Filled on failure if not NULL.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread.
   * Blocking:  may ask the driver.
   * Errors:    UNSUPPORTED: unknown key. INVALID_ARGUMENT: NULL, or buffer too small (out_size is
   *            set).
   * Since:     ABI 1.0, optional: UNSUPPORTED.
   */
  chipdock_status(CHIPDOCK_CALL* query)(chipdock_device* device, const char* key, char* buffer,
                                        uint64_t size, uint64_t* out_size, chipdock_error* error);
} chipdock_device_api;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_DEVICE_H_ */
