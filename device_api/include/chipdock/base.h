/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Words that every chipdock header shares: calling convention, status codes, the error record,
 * dtypes, and the rules by which structs grow. Plugin authors read this first, then plugin.h.
 *
 * How structs grow (duties of both sides):
 *   BASE-1  The first field of every struct that crosses is `struct_size`, set by the writer to its
 *           sizeof.
 *   BASE-2  A reader uses min(own size, given size) and takes fields it was not given as zero. Zero
 *           is always the default of a field.
 *   BASE-3  A larger struct is accepted if all bytes after the reader's size are zero; else the
 *           call fails with UNSUPPORTED and changes nothing.
 *   BASE-4  A struct smaller than its first published size, or with struct_size 0, is
 *           INVALID_ARGUMENT.
 *   BASE-5  An out struct is zero-filled by the caller, with struct_size set; the callee writes at
 *           most struct_size bytes and leaves struct_size as it is.
 *   BASE-6  Arrays of structs cross as arrays of pointers, so elements may grow.
 *   BASE-7  An enum value the reader does not know is UNSUPPORTED going in; an unknown status
 *           coming out is treated as INTERNAL.
 *   BASE-8  A call that returns OK has written all its outputs; a call that fails has written none
 *           of them and, unless its text says otherwise, changed nothing.
 *   BASE-9  No exception, longjmp or abort leaves a plugin, and no plugin changes process state
 *           (signal handlers, locale, floating-point mode, environment, thread affinity of
 *           callers).
 *   BASE-10 Reserved bits of flag words are zero going in; a set bit that the reader does not know
 *           is UNSUPPORTED.
 *   BASE-11 In descriptors that a plugin lists (heaps, peaks, kernels) fields added later only
 *           inform: a reader ignores what lies behind its own size. What it must not miss is a flag
 *           [BASE-10]: an element with an unknown flag is left out, except a heap, whose flag is
 *           ignored.
 */
#ifndef CHIPDOCK_BASE_H_
#define CHIPDOCK_BASE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Calling convention of every function of the ABI. Empty where the platform has one convention. */
#if defined(_WIN32)
#define CHIPDOCK_CALL __cdecl
#else
#define CHIPDOCK_CALL
#endif

/** Marks the one symbol that a plugin exports; everything else is built with hidden visibility. */
#if defined(_WIN32)
#define CHIPDOCK_EXPORT __declspec(dllexport)
#else
#define CHIPDOCK_EXPORT __attribute__((visibility("default")))
#endif

/** Packs a version for comparisons: major in the high, minor in the low 16 bits. */
#define CHIPDOCK_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define CHIPDOCK_VERSION_MAJOR(version) ((uint32_t)(version) >> 16)
#define CHIPDOCK_VERSION_MINOR(version) ((uint32_t)(version) & 0xffffu)

/** Version of this header set's base: structs and functions of base.h and plugin.h. */
#define CHIPDOCK_ABI_MAJOR 1
#define CHIPDOCK_ABI_MINOR 0
#define CHIPDOCK_ABI_VERSION CHIPDOCK_VERSION(CHIPDOCK_ABI_MAJOR, CHIPDOCK_ABI_MINOR)

/** True if `field` lies inside the first `size` bytes of `type`: was it given by the other side? */
#define CHIPDOCK_HAS_FIELD(type, field, size) \
  ((size_t)(size) >= offsetof(type, field) + sizeof(((type*)0)->field))

/**
 * A status code: one of the CHIPDOCK_* values below; a value not known here is INTERNAL. [BASE-7]
 */
typedef int32_t chipdock_status;

/** Status codes of all tables. Values are fixed for ever; new ones are appended. */
enum {
  CHIPDOCK_OK = 0,
  CHIPDOCK_NOT_READY = 1, /**< The work asked about has not finished; not a failure. */
  /** This plugin or device does not offer it; same as a NULL slot. */
  CHIPDOCK_UNSUPPORTED = 2,
  CHIPDOCK_INVALID_ARGUMENT = 3, /**< The caller broke a numbered duty; nothing happened. */
  /** Right call, wrong state: a failed stream, a closed capture. */
  CHIPDOCK_FAILED_PRECONDITION = 4,
  /** Memory of the heap or host is exhausted; retry may succeed. */
  CHIPDOCK_OUT_OF_MEMORY = 5,
  CHIPDOCK_UNAVAILABLE = 6,     /**< Driver, device or library is absent or switched off. */
  CHIPDOCK_BUSY = 7,            /**< Held by someone else; retry may succeed. */
  CHIPDOCK_TIMEOUT = 8,         /**< The caller's time limit ran out; the work goes on. */
  CHIPDOCK_ABORTED = 9,         /**< Ended on request (abort, cancel, interrupt). */
  CHIPDOCK_DEVICE_LOST = 10,    /**< The device is gone; only close works from here. */
  CHIPDOCK_RESET_REQUIRED = 11, /**< The device faulted; reset brings it back. */
  CHIPDOCK_PEER_FAILED = 12,    /**< Another rank or device of a group failed. */
  /** Two sides disagree: blob of another device, other collective. */
  CHIPDOCK_MISMATCH = 13,
  CHIPDOCK_REVOKED = 14,          /**< The communicator was revoked. */
  CHIPDOCK_VERSION_MISMATCH = 15, /**< No common version; the text names both and the fix. */
  CHIPDOCK_SHUTDOWN = 16,         /**< The plugin or host was shut down. */
  /** Host only: a handle of the parent used in a forked child. */
  CHIPDOCK_FORKED = 17,
  CHIPDOCK_INTERNAL = 18 /**< A fault of the callee; the text says what it saw. */
};

/** How far an error reaches, in `chipdock_error.scope`. Errors are sticky in their scope. */
enum {
  CHIPDOCK_SCOPE_CALL = 0,   /**< Only this call failed. */
  CHIPDOCK_SCOPE_STREAM = 1, /**< The stream has failed until it is aborted or destroyed. */
  CHIPDOCK_SCOPE_DEVICE = 2, /**< The opened device has failed until it is reset or closed. */
  CHIPDOCK_SCOPE_PROCESS = 3 /**< The plugin cannot be used in this process any more. */
};

/** Longest error text in bytes, with its closing 0. */
#define CHIPDOCK_ERROR_TEXT_SIZE 512

/** What went wrong. Owned by the caller; filled on failure if not NULL, untouched on success. */
typedef struct chipdock_error {
  uint32_t struct_size;
  int32_t code;                        /**< Same as the returned status. */
  int64_t vendor_code;                 /**< The vendor library's own code, 0 if none. */
  int32_t scope;                       /**< CHIPDOCK_SCOPE_*. */
  uint32_t text_size;                  /**< Bytes of `text` in use, without the closing 0. */
  uint64_t correlation_id;             /**< Of the operation that failed first; 0 if unknown. */
  char text[CHIPDOCK_ERROR_TEXT_SIZE]; /**< UTF-8, closed with 0; longer texts are cut. */
} chipdock_error;

/**
 * A DLPack dtype triple. Elements below a byte are one stream of bits, low bits first, in
 * ceil(n*bits/8) bytes: two of 4 bits in a byte, four of 6 bits in three.
 */
typedef struct chipdock_dtype {
  uint8_t code;   /**< CHIPDOCK_DTYPE_*: the numbers of DLPack 1.1's DLDataTypeCode. */
  uint8_t bits;   /**< Bits of one element: 1, 2, 4, 6, 8, 16, 32, 64, 128. bool is 8. */
  uint16_t lanes; /**< 1; vector types are not used by the host. */
} chipdock_dtype;

/** dtype codes. Values equal DLPack's. Strings have none: they never cross. */
enum {
  CHIPDOCK_DTYPE_INT = 0,
  CHIPDOCK_DTYPE_UINT = 1,
  CHIPDOCK_DTYPE_FLOAT = 2,
  CHIPDOCK_DTYPE_OPAQUE = 3,
  CHIPDOCK_DTYPE_BFLOAT = 4,
  CHIPDOCK_DTYPE_COMPLEX = 5,
  CHIPDOCK_DTYPE_BOOL = 6,
  CHIPDOCK_DTYPE_FLOAT8_E3M4 = 7,
  CHIPDOCK_DTYPE_FLOAT8_E4M3 = 8,
  CHIPDOCK_DTYPE_FLOAT8_E4M3B11FNUZ = 9,
  CHIPDOCK_DTYPE_FLOAT8_E4M3FN = 10,
  CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ = 11,
  CHIPDOCK_DTYPE_FLOAT8_E5M2 = 12,
  CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ = 13,
  CHIPDOCK_DTYPE_FLOAT8_E8M0FNU = 14,
  CHIPDOCK_DTYPE_FLOAT6_E2M3FN = 15,
  CHIPDOCK_DTYPE_FLOAT6_E3M2FN = 16,
  CHIPDOCK_DTYPE_FLOAT4_E2M1FN = 17
};

/** One key/value option, both UTF-8. */
typedef struct chipdock_option {
  uint32_t struct_size;
  uint32_t flags; /**< 0. [BASE-10] */
  const char* key;
  const char* value;
} chipdock_option;

/** What stands first in every table: its size and the version it was built with. */
typedef struct chipdock_table_header {
  uint32_t struct_size; /**< sizeof the table in the plugin's headers. */
  uint16_t major;       /**< Never 0.0: a table left zero is refused with the plugin's name. */
  uint16_t minor;
} chipdock_table_header;

/**
 * Fills a table's header: `static const chipdock_device_api kApi = {CHIPDOCK_TABLE(DEVICE, device),
 * …}`.
 */
#define CHIPDOCK_TABLE(NAME, name) \
  {(uint32_t)sizeof(chipdock_##name##_api), CHIPDOCK_##NAME##_MAJOR, CHIPDOCK_##NAME##_MINOR}

/* Opaque handles. Each belongs to the object that made it; the host never dereferences one. */
typedef struct chipdock_device chipdock_device; /**< One opened device. */
/** One allocation of a device. */
typedef struct chipdock_memory chipdock_memory;
/** One in-order queue of work. */
typedef struct chipdock_stream chipdock_stream;
typedef struct chipdock_event chipdock_event; /**< A point in a stream. */
/** A kernel with its attributes. */
typedef struct chipdock_kernel_instance chipdock_kernel_instance;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CHIPDOCK_BASE_H_ */
