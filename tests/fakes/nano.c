/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest plugin: one pretended device over malloc, the seven required functions. The host
 * does the rest: streams, fills, caching, operators. It may not look into this memory, so copy it.
 */
#define CHIPDOCK_PLUGIN_BUILD
#include <stdlib.h>
#include <string.h>

#include "chipdock/chipdock.h"

/* Handles are ours to define; the host passes them back and never looks inside. */
struct chipdock_memory {
  uint64_t size;
  unsigned char bytes[]; /* No address leaves this file, so alignment is nobody's concern. */
};

static chipdock_status invalid(chipdock_error* error, const char* text) {
  return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT, text);
}

#define SLOT static chipdock_status CHIPDOCK_CALL /* A function that the host calls. */

/* Turns away a desc of a wrong size [BASE-3], or with a bit that came after us. [BASE-10] */
#define CHECK(desc, first_size, unknown_bits)                                                 \
  do {                                                                                        \
    chipdock_status bad = chipdock_check_struct((desc), (first_size), sizeof(*(desc)));       \
    if (bad == CHIPDOCK_OK && (unknown_bits) != 0) bad = CHIPDOCK_UNSUPPORTED;                \
    if (bad != CHIPDOCK_OK) return chipdock_fail(error, bad, "nano cannot take this " #desc); \
  } while (0)

SLOT device_count(chipdock_plugin* plugin, int32_t* out_count, chipdock_error* error) {
  if (plugin == NULL || out_count == NULL) return invalid(error, "INVALID_ARGUMENT: count: NULL");
  *out_count = 1;
  return CHIPDOCK_OK;
}

static const chipdock_heap kHeap = {sizeof(chipdock_heap), 0, (uint64_t)1 << 34, 64, 0, 0, "RAM"};
static const chipdock_heap* const kHeaps[] = {&kHeap};

SLOT device_info(chipdock_plugin* plugin, int32_t index, chipdock_device_info* out_info,
                 chipdock_error* error) {
  if (plugin == NULL || index != 0 || out_info == NULL || out_info->struct_size < sizeof(uint32_t))
    return invalid(error, "INVALID_ARGUMENT: info wants index 0");
  /* Of the size that the host gave, which may be older or newer than us. [BASE-5] */
  chipdock_device_info info = {
      out_info->struct_size, .product = "Nano", .architecture = "",
      .driver = "",          .pci_address = "", .numa_node = -1,
      .heap_count = 1,       .heaps = kHeaps,   .uuid = "chipdock-nano-00"};
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return CHIPDOCK_OK;
}

SLOT device_open(chipdock_plugin* plugin, const chipdock_device_open_desc* desc,
                 chipdock_device** out_device, chipdock_error* error) {
  CHECK(desc, 32, desc->flags); /* 32: the size of the struct in 1.0 */
  if (plugin == NULL || out_device == NULL || desc->index != 0)
    return invalid(error, "INVALID_ARGUMENT: open wants index 0");
  if (desc->option_count != 0) {
    char text[96] = "INVALID_ARGUMENT: nano has no option ";
    const chipdock_option* first = desc->options != NULL ? desc->options[0] : NULL;
    chipdock_append(text, sizeof(text), strlen(text), first != NULL ? first->key : "NULL");
    return invalid(error, text);
  }
  chipdock_device* device = malloc(1);
  if (device == NULL) return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: open");
  *out_device = device; /* Outputs are written on success only. [BASE-8] */
  return CHIPDOCK_OK;
}

SLOT device_close(chipdock_device* device, chipdock_error* error) {
  if (device == NULL) return invalid(error, "INVALID_ARGUMENT: close got NULL");
  free(device);
  return CHIPDOCK_OK;
}

SLOT memory_alloc(chipdock_device* device, const chipdock_alloc_desc* desc,
                  chipdock_memory** out_memory, chipdock_error* error) {
  CHECK(desc, 48, desc->flags | desc->usage >> 4);
  if (device == NULL || out_memory == NULL || desc->heap != 0 || desc->size == 0 ||
      (desc->alignment & (desc->alignment - 1)) != 0)
    return invalid(error, "INVALID_ARGUMENT: alloc wants heap 0, size > 0, a power of two");
  chipdock_memory* memory =
      desc->size > kHeap.bytes ? NULL : malloc(sizeof(*memory) + (size_t)desc->size);
  if (memory == NULL)
    return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: nano has 16 GiB");
  memory->size = desc->size;
  *out_memory = memory;
  return CHIPDOCK_OK;
}

SLOT memory_free(chipdock_device* device, chipdock_memory* memory, chipdock_error* error) {
  if (device == NULL || memory == NULL) return invalid(error, "INVALID_ARGUMENT: free got NULL");
  free(memory);
  return CHIPDOCK_OK;
}

/* An address for the bytes of a place, or NULL if it breaks MEM-3. */
static unsigned char* resolve(const chipdock_place* place, uint64_t size) {
  static unsigned char nothing[1]; /* Size 0 needs no place, but a given one is checked. [MEM-7] */
  if (place->memory != NULL && place->host != NULL) return NULL;
  if (place->memory == NULL) return place->host != NULL || size != 0 ? place->host : nothing;
  if (size > place->memory->size || place->offset > place->memory->size - size) return NULL;
  return place->memory->bytes + place->offset;
}

SLOT memory_copy(chipdock_device* device, const chipdock_copy_desc* desc, chipdock_error* error) {
  CHECK(desc, 48, desc->flags);
  CHECK(desc->source, 40, desc->source->flags & ~(uint32_t)CHIPDOCK_PLACE_PINNED);
  CHECK(desc->target, 40, desc->target->flags & ~(uint32_t)CHIPDOCK_PLACE_PINNED);
  unsigned char* source = resolve(desc->source, desc->size);
  unsigned char* target = resolve(desc->target, desc->size);
  if (!device || !source || !target) return invalid(error, "INVALID_ARGUMENT: a place [MEM-3]");
  memcpy(target, source, (size_t)desc->size);
  return CHIPDOCK_OK;
}

/* Slots that are not named are NULL: the host does without them. */
static const chipdock_device_api kDevice = {CHIPDOCK_TABLE(DEVICE, device), .count = device_count,
                                            .info = device_info, .open = device_open,
                                            .close = device_close};
static const chipdock_memory_api kMemory = {CHIPDOCK_TABLE(MEMORY, memory), .alloc = memory_alloc,
                                            .free = memory_free, .copy = memory_copy};

SLOT get_table(chipdock_plugin* plugin, const char* table, uint32_t version, const void** out_table,
               chipdock_error* error) {
  if (!plugin || !table || !out_table) return invalid(error, "INVALID_ARGUMENT: table: NULL");
  const void* found = NULL;
  if (strcmp(table, "chipdock.device") == 0) found = &kDevice;
  if (strcmp(table, "chipdock.memory") == 0) found = &kMemory;
  if (!found) return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such table");
  if (CHIPDOCK_VERSION_MAJOR(version) != 1)
    return chipdock_fail(error, CHIPDOCK_VERSION_MISMATCH, "VERSION_MISMATCH: tables are 1.0");
  return *out_table = found, CHIPDOCK_OK;
}

chipdock_status CHIPDOCK_CALL chipdock_plugin_query(const chipdock_host* host,
                                                    const chipdock_query_desc* desc,
                                                    chipdock_plugin** out_plugin,
                                                    chipdock_error* error) {
  static chipdock_plugin plugin = {sizeof(chipdock_plugin), .abi_version = CHIPDOCK_ABI_VERSION,
                                   .id = "chipdock.nano",   .name = "nano",
                                   .version = "1.0",        .uuid = "nano-cMh\x89pdock01",
                                   .get_table = get_table};
  CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error);
  CHECK(desc, 12, 0);
  if (desc->option_count != 0) return invalid(error, "INVALID_ARGUMENT: nano has no options");
  *out_plugin = &plugin;
  return CHIPDOCK_OK;
}
