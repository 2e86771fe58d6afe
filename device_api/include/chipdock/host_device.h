/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Devices for embedders: described by name, opened, synchronised, closed.
 *
 * Duties:
 *   HDV-1  A device name is "acme:0", "acme" for device 0, or either with the plugin's id,
 *          "vendor.acme:0". Where two plugins of a host share a name, the one loaded first has it.
 *   HDV-2  Each open gives a device of its own: memory, streams and errors of two openings are
 *          apart.
 *   HDV-3  A device that was lost or has failed returns its first cause from every call but close.
 */
#ifndef CHIPDOCK_HOST_DEVICE_H_
#define CHIPDOCK_HOST_DEVICE_H_

#include "chipdock/device.h"
#include "chipdock/host_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How to open a device. */
typedef struct chipdock_host_device_desc {
  uint32_t struct_size;
  uint32_t option_count;
  const chipdock_option* const* options; /**< Of the plugin; an unknown key is refused by it. */
} chipdock_host_device_desc;

/** Memory of a device as the host's caching allocator sees it, in bytes. */
typedef struct chipdock_host_memory_stats {
  uint32_t struct_size;
  uint32_t flags;        /**< 0. */
  uint64_t used_bytes;   /**< In live tensors, weights and runs. */
  uint64_t cached_bytes; /**< Taken from the plugin and free at the moment. */
  uint64_t plugin_bytes; /**< Taken from the plugin in all. */
  uint64_t peak_bytes;   /**< Largest used_bytes so far. */
} chipdock_host_memory_stats;

/**
 * Describes a device by its name, opened or not. [HDV-1]
 *
 * @param host     From create.
 * @param name     Device name. Not NULL.
 * @param out_info Filled as device.h says. Not NULL. [BASE-5]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call; strings and lists are the plugin's, until the host
 *            is destroyed.
 * Threading: any thread.
 * Blocking:  may wait for the driver.
 * Errors:    INVALID_ARGUMENT: NULL, a size, no such device; the text lists those there are.
 *            UNAVAILABLE: the plugin is broken; with its cause. SHUTDOWN. FORKED.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_device_describe(chipdock_host_runtime* host, const char* name,
                              chipdock_device_info* out_info, chipdock_error* error);

/**
 * Opens a device. [HDV-2]
 *
 * @param host       From create.
 * @param name       Device name. Not NULL. [HDV-1]
 * @param desc       Options, or NULL.
 * @param out_device Set to the device. Not NULL.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows `host`, `name` and `desc` for this call; returns `*out_device`, ended by close.
 * Threading: any thread.
 * Blocking:  may start the device; at most the host's `timeout_ns`.
 * Errors:    As describe, and the plugin's own. TIMEOUT.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_device_open(
    chipdock_host_runtime* host, const char* name, const chipdock_host_device_desc* desc,
    chipdock_host_device** out_device, chipdock_error* error);

/**
 * Gives a device back. It is closed when nothing made from it is left. [HST-5]
 *
 * @param device From open, or NULL; invalid afterwards.
 *
 * Ownership: takes `device`.
 * Threading: one caller, no other call with the device at the same time.
 * Blocking:  may wait for work in flight.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_device_close(chipdock_host_device* device);

/**
 * Waits until all work queued on the device's streams before the call has ended.
 *
 * @param device     From open.
 * @param timeout_ns Limit in nanoseconds, -1 for ever.
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  waits for the device.
 * Errors:    TIMEOUT: the work goes on. The first cause of a failed stream or device. [HDV-3]
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_device_sync(chipdock_host_device* device, int64_t timeout_ns, chipdock_error* error);

/**
 * Tells how much memory of a device is in use, and can give what is only cached back.
 *
 * @param device    From open.
 * @param trim      1: give cached memory back to the plugin first. 0: do not.
 * @param out_stats Filled. Not NULL. [BASE-5]
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  with `trim` it may wait for the driver.
 * Errors:    INVALID_ARGUMENT: NULL, a size. HDV-3.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_device_memory(chipdock_host_device* device, int32_t trim,
                            chipdock_host_memory_stats* out_stats, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_DEVICE_H_ */
