/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest plugin: one pretended device over malloc, the seven required functions, no more.
 * The host does the rest: streams, events, fills, caching, and operators on the CPU plugin. No heap
 * flag says that the host may look into this memory, so every byte goes through copy.
 */
#define CHIPDOCK_PLUGIN_BUILD
#include <stdlib.h>
#include <string.h>

#include "chipdock/chipdock.h"

/* Handles are ours to define; the host passes them back and never looks inside. */
struct chipdock_device {
  int open;
};
struct chipdock_memory {
  uint64_t size;
  unsigned char bytes[]; /* No address leaves this file, so alignment is nobody's concern. */
};

static chipdock_status invalid(chipdock_error* error, const char* text) {
  return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, text);
}

static chipdock_status CHIPDOCK_CALL device_count(chipdock_plugin* plugin, int32_t* out_count,
                                                  chipdock_error* error) {
  if (plugin == NULL || out_count == NULL) return invalid(error, "INVALID_ARGUMENT: count: NULL");
  *out_count = 1;
  return CHIPDOCK_OK;
}

static const chipdock_heap kHeap = {sizeof(chipdock_heap), 0, (uint64_t)1 << 34, 64, 0, 0, "RAM"};
static const chipdock_heap* const kHeaps[] = {&kHeap};

static chipdock_status CHIPDOCK_CALL device_info(chipdock_plugin* plugin, int32_t index,
                                                 chipdock_device_info* out_info,
                                                 chipdock_error* error) {
  chipdock_device_info info = {0};
  if (plugin == NULL || index != 0 || out_info == NULL || out_info->struct_size < sizeof(uint32_t))
    return invalid(error, "INVALID_ARGUMENT: info wants index 0");
  info.struct_size = out_info->struct_size; /* The host may be older or newer than us. [BASE-5] */
  info.product = "Nano";
  info.architecture = info.driver = info.pci_address = "";
  info.numa_node = -1;
  info.heap_count = 1;
  info.heaps = kHeaps;
  memcpy(info.uuid, "chipdock-nano-00", sizeof(info.uuid));
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL device_open(chipdock_plugin* plugin,
                                                 const chipdock_device_open_desc* desc,
                                                 chipdock_device** out_device,
                                                 chipdock_error* error) {
  chipdock_status status = chipdock_check_struct(desc, 32, sizeof(*desc)); /* 32: size in 1.0 */
  if (status != CHIPDOCK_OK) return chipdock_fail(error, status, "open got a desc of a wrong size");
  if (plugin == NULL || out_device == NULL || desc->index != 0 || desc->option_count != 0)
    return invalid(error, "INVALID_ARGUMENT: open wants index 0");
  chipdock_device* device = calloc(1, sizeof(*device));
  if (device == NULL) return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: open");
  *out_device = device; /* Outputs are written on success only. [BASE-8] */
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL device_close(chipdock_device* device, chipdock_error* error) {
  (void)error;
  free(device);
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL memory_alloc(chipdock_device* device,
                                                  const chipdock_alloc_desc* desc,
                                                  chipdock_memory** out_memory,
                                                  chipdock_error* error) {
  chipdock_status status = chipdock_check_struct(desc, 48, sizeof(*desc));
  if (status != CHIPDOCK_OK)
    return chipdock_fail(error, status, "alloc got a desc of a wrong size");
  if (device == NULL || out_memory == NULL || desc->heap != 0 || desc->size == 0)
    return invalid(error, "INVALID_ARGUMENT: alloc wants heap 0, size > 0");
  chipdock_memory* memory =
      desc->size > kHeap.bytes ? NULL : malloc(sizeof(*memory) + (size_t)desc->size);
  if (memory == NULL) return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: alloc");
  memory->size = desc->size;
  *out_memory = memory;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL memory_free(chipdock_device* device, chipdock_memory* memory,
                                                 chipdock_error* error) {
  if (device == NULL || memory == NULL) return invalid(error, "INVALID_ARGUMENT: free got NULL");
  free(memory);
  return CHIPDOCK_OK;
}

/* An address for the bytes of a place, or NULL if it breaks MEM-3. */
static unsigned char* resolve(const chipdock_place* place, uint64_t size) {
  static unsigned char nothing[1]; /* Size 0 needs no place, but a given one is checked. [MEM-7] */
  if (place == NULL || (place->memory != NULL && place->host != NULL)) return NULL;
  if (place->memory == NULL) return place->host != NULL || size != 0 ? place->host : nothing;
  if (place->offset > place->memory->size || size > place->memory->size - place->offset)
    return NULL;
  return place->memory->bytes + place->offset;
}

static chipdock_status CHIPDOCK_CALL memory_copy(chipdock_device* device,
                                                 const chipdock_copy_desc* desc,
                                                 chipdock_error* error) {
  chipdock_status status = chipdock_check_struct(desc, 48, sizeof(*desc));
  if (status != CHIPDOCK_OK) return chipdock_fail(error, status, "copy got a desc of a wrong size");
  unsigned char* source = resolve(desc->source, desc->size);
  unsigned char* target = resolve(desc->target, desc->size);
  if (device == NULL || source == NULL || target == NULL)
    return invalid(error, "INVALID_ARGUMENT: copy got a bad place [MEM-3]");
  memcpy(target, source, (size_t)desc->size);
  return CHIPDOCK_OK;
}

/* Slots that are not named are NULL: the host does without them. */
static const chipdock_device_api kDevice = {CHIPDOCK_TABLE(DEVICE, device), .count = device_count,
                                            .info = device_info, .open = device_open,
                                            .close = device_close};
static const chipdock_memory_api kMemory = {CHIPDOCK_TABLE(MEMORY, memory), .alloc = memory_alloc,
                                            .free = memory_free, .copy = memory_copy};

static chipdock_status CHIPDOCK_CALL get_table(chipdock_plugin* plugin, const char* table,
                                               uint32_t version, const void** out_table,
                                               chipdock_error* error) {
  (void)plugin, (void)version;
  if (strcmp(table, "chipdock.device") == 0) return *out_table = &kDevice, CHIPDOCK_OK;
  if (strcmp(table, "chipdock.memory") == 0) return *out_table = &kMemory, CHIPDOCK_OK;
  return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such table");
}

chipdock_status CHIPDOCK_CALL chipdock_plugin_query(const chipdock_host* host,
                                                    const chipdock_query_desc* desc,
                                                    chipdock_plugin** out_plugin,
                                                    chipdock_error* error) {
  static chipdock_plugin plugin = {.struct_size = sizeof(chipdock_plugin),
                                   .abi_version = CHIPDOCK_ABI_VERSION,
                                   .id = "chipdock.nano",
                                   .name = "nano",
                                   .version = "1.0",
                                   .uuid = "nano-cMh\x89pdock01",
                                   .get_table = get_table};
  CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error);
  *out_plugin = &plugin;
  return CHIPDOCK_OK;
}
