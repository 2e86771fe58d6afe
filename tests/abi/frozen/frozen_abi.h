/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The ABI as a plugin of another time saw it: a private copy that never follows device_api/include.
 *
 * FROZEN_OLD: version 1.0 with fewer slots and shorter structs than were ever published, so that a
 * host has to live with tables and descriptors shorter than its own. FROZEN_NEW: version 1.7, with
 * slots and fields behind those of today. FROZEN_MAJOR 2: a base that no host of today speaks. See
 * README.md.
 */
#ifndef CHIPDOCK_TESTS_FROZEN_ABI_H_
#define CHIPDOCK_TESTS_FROZEN_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifndef FROZEN_MAJOR
#define FROZEN_MAJOR 1
#endif
#ifdef FROZEN_NEW
#define FROZEN_MINOR 7
#else
#define FROZEN_MINOR 0
#endif
#define FROZEN_VERSION (((uint32_t)FROZEN_MAJOR << 16) | FROZEN_MINOR)

enum { OK = 0, UNSUPPORTED = 2, INVALID_ARGUMENT = 3, OUT_OF_MEMORY = 5, VERSION_MISMATCH = 15 };

typedef struct device device;
typedef struct memory memory;
typedef struct stream stream;
typedef struct plugin plugin;

typedef struct error {
  uint32_t struct_size;
  int32_t code;
  int64_t vendor_code;
  int32_t scope;
  uint32_t text_size;
  uint64_t correlation_id;
  char text[512];
#ifdef FROZEN_NEW
  uint64_t when_ns;
#endif
} error;

typedef struct table_header {
  uint32_t struct_size;
  uint16_t major;
  uint16_t minor;
} table_header;

typedef struct query_desc {
  uint32_t struct_size;
  uint32_t abi_min;
  uint32_t abi_max;
  uint32_t option_count;
  const void* const* options;
#ifdef FROZEN_NEW
  uint64_t purpose;
#endif
} query_desc;

typedef struct host {
  uint32_t struct_size;
  uint32_t abi_version;
  void* context;
  void (*log)(void* context, int32_t severity, const char* text);
} host;

struct plugin {
  uint32_t struct_size;
  uint32_t abi_version;
  const char* id;
  const char* name;
  const char* version;
  uint8_t uuid[16];
  int32_t (*get_table)(plugin*, const char*, uint32_t, const void**, error*);
  int32_t (*shutdown)(plugin*, error*);
  void* state;
#ifdef FROZEN_NEW
  const char* licence;
#endif
};

typedef struct heap {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t bytes;
  uint64_t alignment;
#ifndef FROZEN_OLD
  uint64_t sub_allocation_alignment;
  uint64_t max_allocation;
  const char* name;
#endif
#ifdef FROZEN_NEW
  uint64_t bandwidth;
#endif
} heap;

typedef struct device_info {
  uint32_t struct_size;
  uint32_t flags;
  const char* product;
  const char* architecture;
  const char* driver;
  uint8_t uuid[16];
  const char* pci_address;
  int32_t numa_node;
  uint32_t units;
  uint64_t memory_bandwidth;
  uint64_t l2_bytes;
  uint32_t heap_count;
  uint32_t peak_count;
  const heap* const* heaps;
#ifndef FROZEN_OLD
  const void* const* peaks;
#endif
#ifdef FROZEN_NEW
  uint64_t serial;
#endif
} device_info;

typedef struct open_desc {
  uint32_t struct_size;
  int32_t index;
  uint32_t option_count;
  uint32_t flags;
  const void* const* options;
#ifndef FROZEN_OLD
  void* foreign_context;
#endif
#ifdef FROZEN_NEW
  uint64_t share;
#endif
} open_desc;

typedef struct alloc_desc {
  uint32_t struct_size;
  uint32_t heap;
  uint64_t size;
  uint64_t alignment;
  uint32_t usage;
  uint32_t flags;
  stream* stream;
  uint64_t correlation_id;
#ifdef FROZEN_NEW
  uint64_t fill; /* A byte to fill new memory with; the default is 0. */
#endif
} alloc_desc;

typedef struct place {
  uint32_t struct_size;
  uint32_t flags;
  memory* memory;
  uint64_t offset;
  void* host;
#ifndef FROZEN_OLD
  device* device;
#endif
} place;

typedef struct copy_desc {
  uint32_t struct_size;
  uint32_t flags;
  const place* source;
  const place* target;
  uint64_t size;
  stream* stream;
  uint64_t correlation_id;
#ifdef FROZEN_NEW
  uint64_t priority;
#endif
} copy_desc;

typedef struct device_api {
  table_header header;
  int32_t (*count)(plugin*, int32_t*, error*);
  int32_t (*info)(plugin*, int32_t, device_info*, error*);
  int32_t (*open)(plugin*, const open_desc*, device**, error*);
  int32_t (*close)(device*, error*);
#ifdef FROZEN_NEW
  void* today[7]; /* sync to query, which this plugin leaves NULL. */
  int32_t (*sleep)(device*, error*);
#endif
} device_api;

typedef struct memory_api {
  table_header header;
  int32_t (*alloc)(device*, const alloc_desc*, memory**, error*);
  int32_t (*free)(device*, memory*, error*);
  int32_t (*copy)(device*, const copy_desc*, error*);
#ifdef FROZEN_NEW
  void* today[13]; /* alloc_async to import_memory, which this plugin leaves NULL. */
  int32_t (*migrate)(device*, memory*, error*);
#endif
} memory_api;

#endif /* CHIPDOCK_TESTS_FROZEN_ABI_H_ */
