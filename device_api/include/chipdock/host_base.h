/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the headers of the embedding interface share: its version, linkage, the host object and the
 * plugins that it loads. Frameworks include host.h; plugins include none of these.
 *
 * Duties of every function of host*.h:
 *   HST-1  Structs grow by the rules of base.h: `struct_size` first, zero means the default, a
 *          larger struct with a zero tail is taken. The reader of such a struct is the host.
 *   HST-2  A failing function returns the status, fills `error` if that is not NULL, and writes
 *          none of its outputs. No exception leaves the library. A NULL argument that may not be
 *          NULL is INVALID_ARGUMENT.
 *   HST-3  The library holds no host, device or setting of its own: everything hangs on a
 *          chipdock_host_runtime, and several of them live side by side, each with plugin instances
 *          of its own.
 *   HST-4  A handle is used until its destroy or close, by any thread; that call is the last on it
 *          and no other call on it is in progress. destroy and close accept NULL and do nothing.
 *   HST-5  Handles keep what they were made from alive, so they may be destroyed in any order.
 *          After the host was destroyed every call on what came from it returns SHUTDOWN, except
 *          destroy, close and the info calls that say so; what a plugin held for it is then kept
 *          until the process ends, so a host that is destroyed last loses nothing.
 *   HST-6  Strings and arrays that a function returns belong to the handle they came from and stay
 *          as they are until it is destroyed.
 *   HST-7  In a forked child every call on a handle of the parent returns FORKED.
 *   HST-8  A plugin that cannot be loaded or has no device is listed with its cause; it fails
 *          neither the creation of the host nor the other plugins.
 */
#ifndef CHIPDOCK_HOST_BASE_H_
#define CHIPDOCK_HOST_BASE_H_

#include "chipdock/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of host*.h. While the major is 0, a minor may change anything. */
#define CHIPDOCK_HOST_MAJOR 0
#define CHIPDOCK_HOST_MINOR 1
#define CHIPDOCK_HOST_VERSION CHIPDOCK_VERSION(CHIPDOCK_HOST_MAJOR, CHIPDOCK_HOST_MINOR)

/** Marks a function of libchipdock. */
#if defined(_WIN32)
#define CHIPDOCK_HOST_API
#else
#define CHIPDOCK_HOST_API __attribute__((visibility("default")))
#endif

/* Opaque handles of the host; none is a handle of the plugin ABI. [HST-4] */
/** A host with its plugins. */
typedef struct chipdock_host_runtime chipdock_host_runtime;
/** One opened device: host_device.h. */
typedef struct chipdock_host_device chipdock_host_device;
/** Elements in memory: host_tensor.h. */
typedef struct chipdock_host_tensor chipdock_host_tensor;
/** A queue of work: host_stream.h. */
typedef struct chipdock_host_stream chipdock_host_stream;
/** A point in a stream: host_stream.h. */
typedef struct chipdock_host_event chipdock_host_event;
/** A model that is being built: host_graph.h. */
typedef struct chipdock_host_graph chipdock_host_graph;
/** A model made ready for one device: host_plan.h. */
typedef struct chipdock_host_plan chipdock_host_plan;

/** `chipdock_host_desc.flags`. */
enum {
  /**
   * Load what the environment variable CHIPDOCK_PLUGIN_PATH names too: libraries, plugin.toml
   * files, folders with one, and folders of such folders, with ':' between them.
   */
  CHIPDOCK_HOST_SEARCH = 1 << 0
};

/** How to make a host. */
typedef struct chipdock_host_desc {
  uint32_t struct_size;
  uint32_t flags;      /**< CHIPDOCK_HOST_*. [BASE-10] */
  uint64_t path_count; /**< Of `paths`. */
  /**
   * Limit in nanoseconds of loading a plugin and of opening a device, -1 for ever;
   * 0 = CHIPDOCK_PROBE_TIMEOUT, which is 20 s if it is not set.
   */
  int64_t timeout_ns;
  /** Libraries, or what CHIPDOCK_HOST_SEARCH says; loaded first, in this order. */
  const char* const* paths;
  /** Layers as in CHIPDOCK_LAYERS; NULL or "" takes the environment's, "none" means none. */
  const char* layers;
} chipdock_host_desc;

/** `chipdock_host_plugin_info.state`. */
enum {
  CHIPDOCK_HOST_PLUGIN_READY = 0,       /**< Loaded; may have 0 devices. */
  CHIPDOCK_HOST_PLUGIN_UNAVAILABLE = 1, /**< Loaded; its driver or device is absent or broken. */
  CHIPDOCK_HOST_PLUGIN_BROKEN = 2,      /**< Not loaded, or it broke a duty of the ABI. */
  CHIPDOCK_HOST_PLUGIN_TIMEOUT = 3      /**< A call into it did not come back. */
};

/** One plugin of a host. */
typedef struct chipdock_host_plugin_info {
  uint32_t struct_size;
  int32_t state; /**< CHIPDOCK_HOST_PLUGIN_*. */
  int32_t code;  /**< Status of the first failure; OK if ready. */
  int32_t device_count;
  uint32_t abi_version; /**< That it was built with, CHIPDOCK_VERSION; 0 if not loaded. */
  uint32_t flags;       /**< 0. */
  const char* path;
  const char* id;      /**< "vendor.acme"; "" if not loaded. */
  const char* name;    /**< "acme" of "acme:0"; "" if not loaded. */
  const char* version; /**< Of the plugin; "" if not loaded. */
  const char* cause;   /**< Text of the first failure; "" if ready. */
} chipdock_host_plugin_info;

/**
 * Tells the version of the library, which a program compares with CHIPDOCK_HOST_VERSION.
 *
 * Programs built with another 0.x minor do not fit and should stop here.
 *
 * Ownership: nothing.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    none.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API uint32_t CHIPDOCK_CALL chipdock_host_version(void);

/**
 * Makes a host and loads its plugins. [HST-3] [HST-8]
 *
 * @param desc     Paths, layers. NULL: no plugin yet. [HST-1]
 * @param out_host Set to the host. Not NULL. [HST-2]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows `desc` for this call; returns `*out_host`, ended by chipdock_host_destroy.
 * Threading: any thread.
 * Blocking:  loads libraries and asks each for its devices, at most `timeout_ns` a plugin.
 * Errors:    INVALID_ARGUMENT: NULL, a size. UNSUPPORTED: an unknown flag. A bad layer is the cause
 *            of every plugin.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_create(
    const chipdock_host_desc* desc, chipdock_host_runtime** out_host, chipdock_error* error);

/**
 * Shuts the plugins of a host down, newest first, and ends it.
 *
 * What came from it may be destroyed afterwards, and nothing else. [HST-5]
 *
 * @param host From create, or NULL; invalid afterwards. [HST-4]
 *
 * Ownership: takes `host`.
 * Threading: one caller, no other call on the host at the same time.
 * Blocking:  waits for runs in progress, at most 10 s a plugin.
 * Errors:    none; what a plugin says to its shutdown goes to the log.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API void CHIPDOCK_CALL chipdock_host_destroy(chipdock_host_runtime* host);

/**
 * Loads one more plugin into a host.
 *
 * A plugin that fails is listed too, with its cause. [HST-8]
 *
 * @param host      From create.
 * @param path      The library. Not NULL, not empty.
 * @param out_index Set to its place in the list. Not NULL. [HST-2]
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  as chipdock_host_create, for one plugin.
 * Errors:    The plugin's own, VERSION_MISMATCH, UNAVAILABLE. INVALID_ARGUMENT: NULL, no plugin.
 *            TIMEOUT. SHUTDOWN. FORKED. [HST-7]
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL chipdock_host_load_plugin(
    chipdock_host_runtime* host, const char* path, uint32_t* out_index, chipdock_error* error);

/**
 * Counts the plugins of a host, broken ones included.
 *
 * @param host      From create.
 * @param out_count Set to the number. Not NULL.
 * @param error     Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call.
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_plugin_count(chipdock_host_runtime* host, uint32_t* out_count, chipdock_error* error);

/**
 * Describes a plugin: what it is, or why it is of no use.
 *
 * Its devices are "name:0" to "name:device_count-1", and the same with the id for the name.
 *
 * @param host     From create.
 * @param index    0 to count-1.
 * @param out_info Filled. Not NULL. [BASE-5]
 * @param error    Filled on failure if not NULL.
 *
 * Ownership: borrows everything for this call; strings stay the host's. [HST-6]
 * Threading: any thread.
 * Blocking:  never.
 * Errors:    INVALID_ARGUMENT: NULL, a size, no such index.
 * Since:     host 0.1.
 */
CHIPDOCK_HOST_API chipdock_status CHIPDOCK_CALL
chipdock_host_plugin_describe(chipdock_host_runtime* host, uint32_t index,
                              chipdock_host_plugin_info* out_info, chipdock_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_HOST_BASE_H_ */
