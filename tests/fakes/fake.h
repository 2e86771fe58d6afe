/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A working pretended plugin in pieces, for fakes that are wrong or odd in one way: each defines
 * FAKE_* macros to replace a piece, texts and numbers before it includes this file, functions
 * before FAKE_PLUGIN. To learn how a plugin is written read nano.c.
 */
#ifndef CHIPDOCK_TESTS_FAKES_FAKE_H_
#define CHIPDOCK_TESTS_FAKES_FAKE_H_

#define CHIPDOCK_PLUGIN_BUILD
#include <stdlib.h>
#include <string.h>

#include "chipdock/chipdock.h"

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_HEAP_BYTES
#define FAKE_HEAP_BYTES ((uint64_t)1 << 30)
#endif
#ifndef FAKE_HEAP_FLAGS
#define FAKE_HEAP_FLAGS 0
#endif

struct chipdock_device {
  uint64_t used;
  uint64_t copies;
  int lost;
};
struct chipdock_memory {
  uint64_t size;
  unsigned char bytes[1];
};

#define FAKE_UNUSED __attribute__((unused))

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_count(chipdock_plugin* plugin,
                                                            int32_t* out_count,
                                                            chipdock_error* error) {
  (void)plugin, (void)error;
  *out_count = FAKE_DEVICES;
  return CHIPDOCK_OK;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_info(chipdock_plugin* plugin, int32_t index,
                                                           chipdock_device_info* out_info,
                                                           chipdock_error* error) {
  static const chipdock_heap heap = {
      sizeof(chipdock_heap), FAKE_HEAP_FLAGS, FAKE_HEAP_BYTES, 64, 0, 0, "fake"};
  static const chipdock_heap* const heaps[] = {&heap};
  (void)plugin;
  if (index < 0 || index >= FAKE_DEVICES) {
    return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT: no such index");
  }
  out_info->product = "Fake";
  out_info->architecture = out_info->driver = out_info->pci_address = "";
  out_info->numa_node = -1;
  out_info->heap_count = 1;
  out_info->heaps = heaps;
  return CHIPDOCK_OK;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_open(chipdock_plugin* plugin,
                                                           const chipdock_device_open_desc* desc,
                                                           chipdock_device** out_device,
                                                           chipdock_error* error) {
  chipdock_device* device = (chipdock_device*)calloc(1, sizeof(chipdock_device));
  (void)plugin, (void)desc;
  if (device == NULL) return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: open");
  *out_device = device;
  return CHIPDOCK_OK;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_close(chipdock_device* device,
                                                            chipdock_error* error) {
  (void)error;
  free(device);
  return CHIPDOCK_OK;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_alloc(chipdock_device* device,
                                                            const chipdock_alloc_desc* desc,
                                                            chipdock_memory** out_memory,
                                                            chipdock_error* error) {
  chipdock_memory* memory = NULL;
  if (desc->size <= FAKE_HEAP_BYTES - __atomic_load_n(&device->used, __ATOMIC_RELAXED)) {
    memory = (chipdock_memory*)malloc(sizeof(chipdock_memory) + (size_t)desc->size);
  }
  if (memory == NULL) {
    return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: the heap has no room");
  }
  __atomic_add_fetch(&device->used, desc->size, __ATOMIC_RELAXED);
  memory->size = desc->size;
  *out_memory = memory;
  return CHIPDOCK_OK;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_free(chipdock_device* device,
                                                           chipdock_memory* memory,
                                                           chipdock_error* error) {
  (void)error;
  __atomic_sub_fetch(&device->used, memory->size, __ATOMIC_RELAXED);
  free(memory);
  return CHIPDOCK_OK;
}

static FAKE_UNUSED unsigned char* fake_bytes(const chipdock_place* place) {
  return place->host != NULL ? (unsigned char*)place->host : place->memory->bytes + place->offset;
}

static FAKE_UNUSED chipdock_status CHIPDOCK_CALL fake_copy(chipdock_device* device,
                                                           const chipdock_copy_desc* desc,
                                                           chipdock_error* error) {
  (void)device, (void)error;
  if (desc->size != 0)
    memcpy(fake_bytes(desc->target), fake_bytes(desc->source), (size_t)desc->size);
  return CHIPDOCK_OK;
}

/* Functions a fake may replace: #undef and #define anew before FAKE_PLUGIN. */
#define FAKE_COUNT fake_count
#define FAKE_OPEN fake_open
#define FAKE_ALLOC fake_alloc
#define FAKE_COPY fake_copy
#define FAKE_ADDRESS NULL
#ifndef FAKE_DEVICE_HEADER
#define FAKE_DEVICE_HEADER CHIPDOCK_TABLE(DEVICE, device)
#endif
#ifndef FAKE_ABI
#define FAKE_ABI CHIPDOCK_ABI_VERSION
#endif
/* What query does after the version check. */
#ifndef FAKE_QUERY_HOOK
#define FAKE_QUERY_HOOK
#endif
#if defined(FAKE_SKIPS_CHECK)
#define FAKE_CHECK(version) CHIPDOCK_OK
#else
#define FAKE_CHECK(version) chipdock_query_check(host, desc, out_plugin, version, error)
#endif
#ifndef FAKE_ID
#define FAKE_ID "chipdock.fake"
#endif
#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif

/* Defines tables, get_table and query. `more` is a chain of FAKE_TABLE(...), or nothing. */
#define FAKE_TABLE(name, address) \
  if (strcmp(table, "chipdock." name) == 0) return *out_table = (address), CHIPDOCK_OK;
#define FAKE_PLUGIN(more)                                                                         \
  static const chipdock_device_api kDevice = {FAKE_DEVICE_HEADER,                                 \
                                              FAKE_COUNT,                                         \
                                              fake_info,                                          \
                                              FAKE_OPEN,                                          \
                                              fake_close,                                         \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL};                                              \
  static const chipdock_memory_api kMemory = {CHIPDOCK_TABLE(MEMORY, memory),                     \
                                              FAKE_ALLOC,                                         \
                                              fake_free,                                          \
                                              FAKE_COPY,                                          \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              FAKE_ADDRESS,                                       \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL,                                               \
                                              NULL};                                              \
  static chipdock_status CHIPDOCK_CALL fake_get_table(chipdock_plugin* plugin, const char* table, \
                                                      uint32_t version, const void** out_table,   \
                                                      chipdock_error* error) {                    \
    (void)plugin, (void)version;                                                                  \
    FAKE_TABLE("device", &kDevice)                                                                \
    FAKE_TABLE("memory", &kMemory)                                                                \
    more return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such table");         \
  }                                                                                               \
  chipdock_status CHIPDOCK_CALL chipdock_plugin_query(                                            \
      const chipdock_host* host, const chipdock_query_desc* desc, chipdock_plugin** out_plugin,   \
      chipdock_error* error) {                                                                    \
    static chipdock_plugin plugin = {                                                             \
        sizeof(chipdock_plugin),                                                                  \
        FAKE_ABI,                                                                                 \
        FAKE_ID,                                                                                  \
        FAKE_NAME,                                                                                \
        "1.0",                                                                                    \
        {0x66, 0x61, 0x6b, 0x65, 1, 2, 0x40, 3, 0x80, 4, 5, 6, 7, 8, 9, 10},                      \
        fake_get_table,                                                                           \
        NULL,                                                                                     \
        NULL};                                                                                    \
    chipdock_status status = FAKE_CHECK(FAKE_ABI);                                                \
    if (status != CHIPDOCK_OK) return status;                                                     \
    (void)host, (void)desc, (void)error;                                                          \
    FAKE_QUERY_HOOK                                                                               \
    *out_plugin = &plugin;                                                                        \
    return CHIPDOCK_OK;                                                                           \
  }

#endif /* CHIPDOCK_TESTS_FAKES_FAKE_H_ */
