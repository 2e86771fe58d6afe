/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The one symbol a plugin exports, what it hands over, and the services it gets from the host.
 *
 * A plugin is loaded once and never unloaded. Loading it runs no code that matters: no thread, no
 * driver call, no static object with a destructor. `chipdock_plugin_query` may be called several
 * times (two hosts in one process); each call returns its own `chipdock_plugin`.
 *
 * Duties:
 *   PLG-1  Exactly one symbol is exported: `chipdock_plugin_query`. Nothing of the host is
 *          imported.
 *   PLG-2  The library loads without a driver or device; what is absent shows as count 0 or
 *          UNAVAILABLE.
 *   PLG-3  Query checks versions with CHIPDOCK_QUERY_CHECK, never by hand.
 *   PLG-4  `id` and `uuid` are the same in every process and version of the plugin.
 *   PLG-5  Tables and strings of a chipdock_plugin stay valid and unchanged until its shutdown
 *          returned.
 *   PLG-6  shutdown waits for the plugin's threads; afterwards every call returns SHUTDOWN or is
 *          not made.
 *   PLG-7  After fork the child makes no call; the host refuses with FORKED.
 *   PLG-8  Deleters and host services may be called from any thread, never with a lock held that a
 *          call of the other side could need.
 */
#ifndef CHIPDOCK_PLUGIN_H_
#define CHIPDOCK_PLUGIN_H_

#include "chipdock/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Severity for `chipdock_host.log`. */
enum {
  CHIPDOCK_LOG_TRACE = 0,
  CHIPDOCK_LOG_DEBUG = 1,
  CHIPDOCK_LOG_INFO = 2,
  CHIPDOCK_LOG_WARNING = 3,
  CHIPDOCK_LOG_ERROR = 4
};

/** Phase for `chipdock_host.trace`. */
enum { CHIPDOCK_TRACE_BEGIN = 0, CHIPDOCK_TRACE_END = 1, CHIPDOCK_TRACE_INSTANT = 2 };

/**
 * Services from the host to the plugin. Valid until shutdown of the plugin returned. A NULL slot is
 * a service this host does not offer; plugins test for it (and for struct_size) before each use.
 */
typedef struct chipdock_host {
  uint32_t struct_size;
  uint32_t abi_version; /**< CHIPDOCK_ABI_VERSION of the host's headers. */
  void* context;        /**< First argument of every service below. */

  /**
   * Writes one line to the host's log.
   *
   * The host adds time and the plugin's id and drops lines under its level.
   *
   * @param context  `chipdock_host.context`.
   * @param severity CHIPDOCK_LOG_*.
   * @param text     UTF-8, closed with 0, no line end; not NULL.
   *
   * Ownership: borrows `text` for this call.
   * Threading: any thread.
   * Blocking:  never for long; not from a real-time thread.
   * Errors:    none; a bad severity is taken as ERROR.
   * Since:     ABI 1.0, optional.
   */
  void(CHIPDOCK_CALL* log)(void* context, int32_t severity, const char* text);

  /**
   * Allocates host memory that counts as the plugin's in the host's statistics and limits.
   *
   * @param context   `chipdock_host.context`.
   * @param size      Bytes, more than 0.
   * @param alignment Power of two, 1 to 4096.
   * @return          Address, or NULL if memory is exhausted or a limit or fault injection says so.
   *
   * Ownership: returns memory that the plugin gives back with `release`.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    NULL is the only failure; the plugin turns it into OUT_OF_MEMORY.
   * Since:     ABI 1.0, optional.
   */
  void*(CHIPDOCK_CALL* allocate)(void* context, uint64_t size, uint64_t alignment);

  /**
   * Frees memory from `allocate`.
   *
   * @param context `chipdock_host.context`.
   * @param memory  From `allocate`, or NULL, which does nothing.
   * @param size    The size given to `allocate`.
   *
   * Ownership: takes `memory`.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    none.
   * Since:     ABI 1.0, optional; present if `allocate` is.
   */
  void(CHIPDOCK_CALL* release)(void* context, void* memory, uint64_t size);

  /**
   * Reports an error that no call is there to return: a kernel fault, a lost device.
   *
   * The host makes it sticky in `error->scope`; the first cause is kept.
   *
   * @param context `chipdock_host.context`.
   * @param device  The device it happened on, or NULL for scope process.
   * @param stream  The stream that failed, or NULL if scope is wider than a stream.
   * @param error   Filled record; `correlation_id` names the operation if known.
   *
   * Ownership: borrows everything for this call.
   * Threading: any thread, also driver call-back threads. [PLG-8]
   * Blocking:  never; calls nothing of the plugin.
   * Errors:    none.
   * Since:     ABI 1.0, optional.
   */
  void(CHIPDOCK_CALL* report)(void* context, chipdock_device* device, chipdock_stream* stream,
                              const chipdock_error* error);

  /**
   * Adds a mark to the host's trace, on the calling thread's time line.
   *
   * @param context        `chipdock_host.context`.
   * @param phase          CHIPDOCK_TRACE_*.
   * @param name           UTF-8, closed with 0; not NULL.
   * @param correlation_id Of the operation it belongs to, or 0.
   *
   * Ownership: borrows `name` for this call.
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    none.
   * Since:     ABI 1.0, optional.
   */
  void(CHIPDOCK_CALL* trace)(void* context, int32_t phase, const char* name,
                             uint64_t correlation_id);
} chipdock_host;

/** What the host tells at query. */
typedef struct chipdock_query_desc {
  uint32_t struct_size;
  uint32_t abi_min; /**< Oldest base version the host still speaks, CHIPDOCK_VERSION. */
  uint32_t abi_max; /**< Newest one: that of its headers. */
  uint32_t option_count;
  const chipdock_option* const* options; /**< Plugin-wide; unknown: INVALID_ARGUMENT. [BASE-6] */
} chipdock_query_desc;

typedef struct chipdock_plugin chipdock_plugin;

/**
 * One instance of a plugin for one host, made by query. Read by the host; `state` is the plugin's.
 */
struct chipdock_plugin {
  uint32_t struct_size;
  uint32_t abi_version; /**< CHIPDOCK_ABI_VERSION the plugin was built with. */
  /** "vendor.plugin", [a-z0-9_.-], at most 63 bytes: the identity. [PLG-4] */
  const char* id;
  const char* name;    /**< Short device name for users: "acme" in "acme:0". [a-z][a-z0-9_]*. */
  const char* version; /**< The plugin's own version, PEP 440. */
  uint8_t uuid[16];    /**< RFC 9562 UUID of the plugin. [PLG-4] */

  /**
   * Returns one table, or a vendor extension, by name.
   *
   * Names of this ABI are "chipdock.device", "chipdock.memory", "chipdock.stream",
   * "chipdock.event", "chipdock.kernel", "chipdock.graph", "chipdock.compile", "chipdock.ccl",
   * "chipdock.profiler"; a vendor's start with its reversed domain ("com.acme.feature"). The same
   * pointer comes back each time.
   *
   * @param plugin    This instance.
   * @param table     Name, closed with 0; not NULL.
   * @param version   Newest version the caller knows, CHIPDOCK_VERSION. The plugin may return an
   *                  older or newer minor of the same major.
   * @param out_table Set to a struct that starts with chipdock_table_header. Not NULL. [BASE-8]
   * @param error     Filled on failure if not NULL.
   *
   * Ownership: borrows arguments for this call; the table belongs to the plugin. [PLG-5]
   * Threading: any thread.
   * Blocking:  never.
   * Errors:    UNSUPPORTED: no such table. VERSION_MISMATCH: no common major. INVALID_ARGUMENT:
   *            NULL.
   * Since:     ABI 1.0, required.
   */
  chipdock_status(CHIPDOCK_CALL* get_table)(chipdock_plugin* plugin, const char* table,
                                            uint32_t version, const void** out_table,
                                            chipdock_error* error);

  /**
   * Ends this instance: waits for its threads and frees what it holds.
   *
   * The host closes all devices first and calls it once, from its exit handler, in an order of its
   * own.
   *
   * @param plugin This instance; invalid afterwards also on failure.
   * @param error  Filled on failure if not NULL.
   *
   * Ownership: takes `plugin`. The library stays loaded.
   * Threading: one caller, no other call of this instance at the same time. [PLG-6]
   * Blocking:  may wait for the plugin's own threads.
   * Errors:    INTERNAL: something leaked or did not end; nothing to do about it.
   * Since:     ABI 1.0, optional: NULL means there is nothing to end.
   */
  chipdock_status(CHIPDOCK_CALL* shutdown)(chipdock_plugin* plugin, chipdock_error* error);

  void* state; /**< The plugin's own; the host never looks at it. */
};

/**
 * The exported symbol: starts one instance for one host. [PLG-1] [PLG-2]
 *
 * Like every call into a plugin it lets no exception out [BASE-9] and is not made in a forked child
 * [PLG-7].
 *
 * @param host       Services; kept until shutdown. Not NULL.
 * @param desc       Version range and options. Not NULL.
 * @param out_plugin Set to the new instance. Not NULL. [BASE-8]
 * @param error      Filled on failure if not NULL.
 *
 * Ownership: borrows `desc` for this call, `host` until shutdown; returns `*out_plugin`, ended by
 *            its shutdown.
 * Threading: any thread; concurrent queries are allowed.
 * Blocking:  may load a vendor library; does not start a device.
 * Errors:    VERSION_MISMATCH: PLG-3. INVALID_ARGUMENT: NULL, bad size, unknown option.
 *            OUT_OF_MEMORY.
 * Since:     ABI 1.0, required.
 */
#define CHIPDOCK_QUERY_SYMBOL "chipdock_plugin_query"
typedef chipdock_status(CHIPDOCK_CALL* chipdock_plugin_query_fn)(const chipdock_host* host,
                                                                 const chipdock_query_desc* desc,
                                                                 chipdock_plugin** out_plugin,
                                                                 chipdock_error* error);
#if defined(CHIPDOCK_PLUGIN_BUILD)
CHIPDOCK_EXPORT chipdock_status CHIPDOCK_CALL chipdock_plugin_query(const chipdock_host* host,
                                                                    const chipdock_query_desc* desc,
                                                                    chipdock_plugin** out_plugin,
                                                                    chipdock_error* error);
#endif

/** Writes code and text to `error` if there is room, and returns the code. For plugins in C. */
static inline chipdock_status chipdock_fail(chipdock_error* error, chipdock_status code,
                                            const char* text) {
  if (error != NULL && error->struct_size >= offsetof(chipdock_error, text)) {
    size_t room = error->struct_size - offsetof(chipdock_error, text);
    size_t i = 0;
    if (room > CHIPDOCK_ERROR_TEXT_SIZE) room = CHIPDOCK_ERROR_TEXT_SIZE;
    error->code = code;
    error->vendor_code = 0;
    error->scope = CHIPDOCK_SCOPE_CALL;
    error->correlation_id = 0;
    for (; room > 0 && i + 1 < room && text[i] != '\0'; ++i) error->text[i] = text[i];
    if (room > 0) error->text[i] = '\0';
    error->text_size = (uint32_t)i;
  }
  return code;
}

/**
 * Checks a struct that came in against [BASE-1] to [BASE-4].
 *
 * @param data   The struct, or NULL.
 * @param first  Size of the struct when it was first published: no smaller one is valid.
 * @param known  sizeof the struct in the reader's headers.
 * @return       OK, INVALID_ARGUMENT or UNSUPPORTED.
 */
static inline chipdock_status chipdock_check_struct(const void* data, size_t first, size_t known) {
  const unsigned char* bytes = (const unsigned char*)data;
  uint32_t size = 0;
  size_t i;
  if (data == NULL) return CHIPDOCK_INVALID_ARGUMENT;
  size = *(const uint32_t*)data;
  if (size < first) return CHIPDOCK_INVALID_ARGUMENT;
  for (i = known; i < size; ++i) {
    if (bytes[i] != 0) return CHIPDOCK_UNSUPPORTED;
  }
  return CHIPDOCK_OK;
}

/** Appends `text` to `buffer` of `room` bytes at `used`, cut to fit; returns the new `used`. */
static inline size_t chipdock_append(char* buffer, size_t room, size_t used, const char* text) {
  size_t i;
  for (i = 0; text[i] != '\0' && used + 1 < room; ++i) buffer[used++] = text[i];
  buffer[used] = '\0';
  return used;
}

/** Appends a packed version as "major.minor", as chipdock_append does. */
static inline size_t chipdock_append_version(char* buffer, size_t room, size_t used,
                                             uint32_t version) {
  uint32_t parts[2];
  int32_t k;
  parts[0] = CHIPDOCK_VERSION_MAJOR(version);
  parts[1] = CHIPDOCK_VERSION_MINOR(version);
  for (k = 0; k < 2; ++k) {
    char digits[12];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
      digits[--at] = (char)('0' + parts[k] % 10);
      parts[k] /= 10;
    } while (parts[k] != 0);
    if (k == 1) used = chipdock_append(buffer, room, used, ".");
    used = chipdock_append(buffer, room, used, digits + at);
  }
  return used;
}

/** Fails with VERSION_MISMATCH and a text that names the versions of both sides and the way out. */
static inline chipdock_status chipdock_fail_version(chipdock_error* error,
                                                    const chipdock_query_desc* desc,
                                                    uint32_t plugin_version, const char* fix) {
  char text[192];
  size_t used = chipdock_append(text, sizeof(text), 0, "VERSION_MISMATCH: the plugin speaks ABI ");
  used = chipdock_append_version(text, sizeof(text), used, plugin_version);
  used = chipdock_append(text, sizeof(text), used, ", the host ");
  used = chipdock_append_version(text, sizeof(text), used, desc->abi_min);
  used = chipdock_append(text, sizeof(text), used, " to ");
  used = chipdock_append_version(text, sizeof(text), used, desc->abi_max);
  (void)chipdock_append(text, sizeof(text), used, fix);
  return chipdock_fail(error, CHIPDOCK_VERSION_MISMATCH, text);
}

/** Version check of query [PLG-3]; returns the status that query passes on if it is not OK. */
static inline chipdock_status chipdock_query_check(const chipdock_host* host,
                                                   const chipdock_query_desc* desc,
                                                   chipdock_plugin** out_plugin,
                                                   uint32_t plugin_version, chipdock_error* error) {
  if (host == NULL || desc == NULL || out_plugin == NULL) {
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT,
                         "INVALID_ARGUMENT: query got NULL for host, desc or out_plugin");
  }
  if (desc->struct_size < offsetof(chipdock_query_desc, option_count) ||
      host->struct_size < offsetof(chipdock_host, log)) {
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT,
                         "INVALID_ARGUMENT: query got a host or desc without struct_size [BASE-1]");
  }
  if (CHIPDOCK_VERSION_MAJOR(desc->abi_min) > CHIPDOCK_VERSION_MAJOR(plugin_version)) {
    return chipdock_fail_version(error, desc, plugin_version, "; update the plugin");
  }
  if (CHIPDOCK_VERSION_MAJOR(desc->abi_max) < CHIPDOCK_VERSION_MAJOR(plugin_version)) {
    return chipdock_fail_version(error, desc, plugin_version, "; update the host (chipdock)");
  }
  return CHIPDOCK_OK;
}

/** First line of every chipdock_plugin_query: returns from it unless host and plugin fit. */
#define CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error)                                \
  do {                                                                                     \
    chipdock_status chipdock_check_status_ =                                               \
        chipdock_query_check((host), (desc), (out_plugin), CHIPDOCK_ABI_VERSION, (error)); \
    if (chipdock_check_status_ != CHIPDOCK_OK) return chipdock_check_status_;              \
  } while (0)

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_PLUGIN_H_ */
