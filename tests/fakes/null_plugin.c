/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin that offers nothing: one device that can be counted, described, opened and closed, the
 * three required memory slots answering UNSUPPORTED, and every optional slot declared absent. A
 * conformance case that passes on it, and is not about those four calls, judges nothing.
 */
#define CHIPDOCK_PLUGIN_BUILD
#include <stdlib.h>
#include <string.h>

#include "chipdock/chipdock.h"

struct chipdock_device {
  int index;
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

static const chipdock_heap kHeap = {sizeof(chipdock_heap), 0, 1 << 20, 64, 0, 0, "none"};
static const chipdock_heap* const kHeaps[] = {&kHeap};

static chipdock_status CHIPDOCK_CALL device_info(chipdock_plugin* plugin, int32_t index,
                                                 chipdock_device_info* out_info,
                                                 chipdock_error* error) {
  chipdock_device_info info = {0};
  if (plugin == NULL || index != 0 || out_info == NULL ||
      out_info->struct_size < 2 * sizeof(uint32_t))
    return invalid(error, "INVALID_ARGUMENT: info wants index 0 and an output");
  info.struct_size = out_info->struct_size;
  info.product = "Null";
  info.architecture = info.driver = info.pci_address = "";
  info.numa_node = -1;
  info.heap_count = 1;
  info.heaps = kHeaps;
  memcpy(info.uuid, "chipdock-null-00", sizeof(info.uuid));
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL device_open(chipdock_plugin* plugin,
                                                 const chipdock_device_open_desc* desc,
                                                 chipdock_device** out_device,
                                                 chipdock_error* error) {
  chipdock_status status = chipdock_check_struct(desc, 32, sizeof(*desc));
  chipdock_device* device = NULL;
  if (status != CHIPDOCK_OK) return chipdock_fail(error, status, "open got a desc of a wrong size");
  if (plugin == NULL || out_device == NULL || desc->index != 0 || desc->option_count != 0)
    return invalid(error, "INVALID_ARGUMENT: open wants index 0 and no options");
  device = (chipdock_device*)calloc(1, sizeof(*device));
  if (device == NULL) return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: open");
  *out_device = device;
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL device_close(chipdock_device* device, chipdock_error* error) {
  if (device == NULL) return invalid(error, "INVALID_ARGUMENT: close: NULL");
  free(device);
  return CHIPDOCK_OK;
}

static chipdock_status unsupported(chipdock_error* error) {
  return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: the null plugin has no memory");
}

static chipdock_status CHIPDOCK_CALL memory_alloc(chipdock_device* device,
                                                  const chipdock_alloc_desc* desc,
                                                  chipdock_memory** out_memory,
                                                  chipdock_error* error) {
  (void)device, (void)desc, (void)out_memory;
  return unsupported(error);
}

static chipdock_status CHIPDOCK_CALL memory_free(chipdock_device* device, chipdock_memory* memory,
                                                 chipdock_error* error) {
  (void)device, (void)memory;
  return unsupported(error);
}

static chipdock_status CHIPDOCK_CALL memory_copy(chipdock_device* device,
                                                 const chipdock_copy_desc* desc,
                                                 chipdock_error* error) {
  (void)device, (void)desc;
  return unsupported(error);
}

static const chipdock_device_api kDevice = {CHIPDOCK_TABLE(DEVICE, device), .count = device_count,
                                            .info = device_info, .open = device_open,
                                            .close = device_close};
static const chipdock_memory_api kMemory = {CHIPDOCK_TABLE(MEMORY, memory), .alloc = memory_alloc,
                                            .free = memory_free, .copy = memory_copy};

static chipdock_status CHIPDOCK_CALL get_table(chipdock_plugin* plugin, const char* table,
                                               uint32_t version, const void** out_table,
                                               chipdock_error* error) {
  const void* found = NULL;
  if (plugin == NULL || table == NULL || out_table == NULL)
    return invalid(error, "INVALID_ARGUMENT: get_table: NULL");
  if (strcmp(table, "chipdock.device") == 0) found = &kDevice;
  if (strcmp(table, "chipdock.memory") == 0) found = &kMemory;
  if (found == NULL)
    return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: no such table");
  if (CHIPDOCK_VERSION_MAJOR(version) != CHIPDOCK_DEVICE_MAJOR)
    return chipdock_fail(error, CHIPDOCK_VERSION_MISMATCH,
                         "VERSION_MISMATCH: the null plugin has major 1 only");
  *out_table = found;
  return CHIPDOCK_OK;
}

chipdock_status CHIPDOCK_CALL chipdock_plugin_query(const chipdock_host* host,
                                                    const chipdock_query_desc* desc,
                                                    chipdock_plugin** out_plugin,
                                                    chipdock_error* error) {
  static chipdock_plugin plugin = {.struct_size = sizeof(chipdock_plugin),
                                   .abi_version = CHIPDOCK_ABI_VERSION,
                                   .id = "chipdock.null",
                                   .name = "null",
                                   .version = "1.0",
                                   .uuid = "null-cMh\x89pdock01",
                                   .get_table = get_table};
  CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error);
  *out_plugin = &plugin;
  return CHIPDOCK_OK;
}
