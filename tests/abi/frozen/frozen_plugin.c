/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A plugin of another time: the seven required slots over host memory, built once and kept as a
 * binary.
 *
 * It follows BASE-1 to BASE-5 with the sizes of frozen_abi.h. Which build is which: README.md.
 */
#include <stdlib.h>
#include <string.h>

#include "frozen_abi.h"

#ifndef FROZEN_TAIL
#define FROZEN_TAIL 0 /* What the fields of 1.7 hold in descriptors that the plugin lists. */
#endif
#define STRING_(x) #x
#define STRING(x) STRING_(x)

struct memory {
  uint64_t size;
  unsigned char* bytes;
};
struct device {
  int32_t live;
};

static int32_t fail(error* out, int32_t code, const char* text) {
  if (out != NULL && out->struct_size >= offsetof(error, text) + 2) {
    size_t room = out->struct_size - offsetof(error, text);
    size_t i = 0;
    if (room > sizeof(out->text)) room = sizeof(out->text);
    for (; i + 1 < room && text[i] != '\0'; ++i) out->text[i] = text[i];
    out->text[i] = '\0';
    out->code = code;
    out->text_size = (uint32_t)i;
  }
  return code;
}

/* Copies a struct that came in to this plugin's size; see BASE-2 to BASE-4. */
static int32_t read_in(void* own, size_t first, size_t known, const void* given, error* out) {
  const unsigned char* bytes = given;
  uint32_t size;
  size_t i;
  if (given == NULL) return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: a desc is NULL");
  memcpy(&size, given, sizeof(size));
  if (size < first)
    return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: struct_size is too small [BASE-4]");
  for (i = known; i < size; ++i) {
    if (bytes[i] != 0)
      return fail(out, UNSUPPORTED, "UNSUPPORTED: fields of a later version are set [BASE-3]");
  }
  memset(own, 0, known);
  memcpy(own, given, size < known ? size : known);
  return OK;
}

static int32_t count(plugin* self, int32_t* out_count, error* out) {
  (void)self;
  if (out_count == NULL) return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: out_count is NULL");
  *out_count = 1;
  return OK;
}

static const heap kHeap = {
    .struct_size = sizeof(heap),
    .flags = 0,
    .bytes = (uint64_t)1 << 28,
    .alignment = 64,
#ifndef FROZEN_OLD
    .name = "host",
#endif
#ifdef FROZEN_NEW
    .bandwidth = FROZEN_TAIL,
#endif
};
static const heap* const kHeaps[] = {&kHeap};

static int32_t info(plugin* self, int32_t index, device_info* out_info, error* out) {
  device_info made;
  uint32_t size;
  (void)self;
  if (index != 0)
    return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: index is not 0, the only one");
  if (out_info == NULL || out_info->struct_size < 2 * sizeof(uint32_t)) {
    return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: out_info is NULL or short [BASE-5]");
  }
  memset(&made, 0, sizeof(made));
  made.product = "Frozen " STRING(FROZEN_MAJOR) "." STRING(FROZEN_MINOR);
  made.architecture = "";
  made.driver = "";
  made.pci_address = "";
  made.uuid[0] = 0xf0;
  made.numa_node = -1;
  made.heap_count = 1;
  made.heaps = kHeaps;
#ifdef FROZEN_NEW
  made.serial = FROZEN_TAIL;
#endif
  size = out_info->struct_size;
  memcpy(out_info, &made, size < sizeof(made) ? size : sizeof(made));
  out_info->struct_size = size;
  return OK;
}

static int32_t open_device(plugin* self, const open_desc* desc, device** out_device, error* out) {
  open_desc own;
  int32_t status = read_in(&own, offsetof(open_desc, options), sizeof(own), desc, out);
  (void)self;
  if (status != OK) return status;
  if (out_device == NULL || own.index != 0 || own.option_count != 0) {
    return fail(out, INVALID_ARGUMENT,
                "INVALID_ARGUMENT: open takes index 0, no option, and an output");
  }
  *out_device = calloc(1, sizeof(device));
  return *out_device != NULL ? OK : fail(out, OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory");
}

static int32_t close_device(device* self, error* out) {
  (void)out;
  free(self);
  return OK;
}

static int32_t alloc(device* self, const alloc_desc* desc, memory** out_memory, error* out) {
  alloc_desc own;
  memory* made;
  int32_t status = read_in(&own, offsetof(alloc_desc, usage), sizeof(own), desc, out);
  (void)self;
  if (status != OK) return status;
  if (out_memory == NULL || own.heap != 0 || own.size == 0) {
    return fail(out, INVALID_ARGUMENT,
                "INVALID_ARGUMENT: alloc takes heap 0, a size, and an output");
  }
  if (own.size > kHeap.bytes)
    return fail(out, OUT_OF_MEMORY, "OUT_OF_MEMORY: more than the heap of 256 MiB");
  made = malloc(sizeof(*made));
  if (made == NULL) return fail(out, OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory");
  made->size = own.size;
  made->bytes = malloc(own.size);
  if (made->bytes == NULL) {
    free(made);
    return fail(out, OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory");
  }
#ifdef FROZEN_NEW
  memset(made->bytes, (int)own.fill, own.size);
#endif
  *out_memory = made;
  return OK;
}

static int32_t free_memory(device* self, memory* given, error* out) {
  (void)self;
  if (given == NULL) return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: memory is NULL");
  free(given->bytes);
  free(given);
  return OK;
}

static int32_t copy(device* self, const copy_desc* desc, error* out) {
  copy_desc own;
  place ends[2];
  unsigned char* at[2];
  int i;
  int32_t status = read_in(&own, offsetof(copy_desc, stream), sizeof(own), desc, out);
  (void)self;
  for (i = 0; status == OK && i < 2; ++i) {
    status = read_in(&ends[i], offsetof(place, host) + sizeof(void*), sizeof(place),
                     i == 0 ? own.source : own.target, out);
    if (status == OK && (ends[i].memory != NULL) == (ends[i].host != NULL) && own.size != 0) {
      status = fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: a place is one of memory and host");
    }
    if (status == OK)
      at[i] = ends[i].memory ? ends[i].memory->bytes + ends[i].offset : ends[i].host;
  }
  if (status == OK && own.size != 0) memcpy(at[1], at[0], own.size);
  return status;
}

#ifdef FROZEN_NEW
static int32_t later(device* self, error* out) {
  (void)self;
  return fail(out, UNSUPPORTED, "UNSUPPORTED: a slot of 1.7");
}
static int32_t migrate(device* self, memory* given, error* out) {
  (void)given;
  return later(self, out);
}
#define DEVICE_LATER , {0}, later
#define MEMORY_LATER , {0}, migrate
#else
#define DEVICE_LATER
#define MEMORY_LATER
#endif

static const device_api kDevice = {
    {sizeof(device_api), 1, FROZEN_MINOR}, count, info, open_device, close_device DEVICE_LATER};
static const memory_api kMemory = {
    {sizeof(memory_api), 1, FROZEN_MINOR}, alloc, free_memory, copy MEMORY_LATER};

static int32_t get_table(plugin* self, const char* name, uint32_t version, const void** out_table,
                         error* out) {
  (void)self;
  if (name == NULL || out_table == NULL) {
    return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: name or out_table is NULL");
  }
  if (strcmp(name, "chipdock.device") != 0 && strcmp(name, "chipdock.memory") != 0) {
    return fail(out, UNSUPPORTED, "UNSUPPORTED: no such table");
  }
  if (version >> 16 != 1) return fail(out, VERSION_MISMATCH, "VERSION_MISMATCH: the table is 1.x");
  *out_table = strcmp(name, "chipdock.device") == 0 ? (const void*)&kDevice : (const void*)&kMemory;
  return OK;
}

static int32_t shut_down(plugin* self, error* out) {
  (void)out;
  free(self);
  return OK;
}

__attribute__((visibility("default"))) int32_t chipdock_plugin_query(const host* given,
                                                                     const query_desc* desc,
                                                                     plugin** out_plugin,
                                                                     error* out) {
  static const char kDigits[] = "0123456789";
  query_desc own;
  plugin* made;
  int32_t status;
  if (given == NULL || out_plugin == NULL) {
    return fail(out, INVALID_ARGUMENT, "INVALID_ARGUMENT: host or out_plugin is NULL");
  }
  status = read_in(&own, offsetof(query_desc, option_count), sizeof(own), desc, out);
  if (status != OK) return status;
  if (own.abi_min >> 16 > FROZEN_MAJOR || own.abi_max >> 16 < FROZEN_MAJOR) {
    char text[] = "VERSION_MISMATCH: the plugin speaks ABI " STRING(FROZEN_MAJOR) "." STRING(
        FROZEN_MINOR) ", the host x.x to x.x";
    char* end = text + sizeof(text) - 1;
    end[-10] = kDigits[(own.abi_min >> 16) % 10];
    end[-8] = kDigits[(own.abi_min & 0xffff) % 10];
    end[-3] = kDigits[(own.abi_max >> 16) % 10];
    end[-1] = kDigits[(own.abi_max & 0xffff) % 10];
    return fail(out, VERSION_MISMATCH, text);
  }
  made = calloc(1, sizeof(*made));
  if (made == NULL) return fail(out, OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory");
  made->struct_size = sizeof(*made);
  made->abi_version = FROZEN_VERSION;
  made->id = "test.frozen";
  made->name = "frozen";
  made->version = STRING(FROZEN_MAJOR) "." STRING(FROZEN_MINOR);
  memcpy(made->uuid, "chipdock-frozen!", 16);
  made->get_table = get_table;
  made->shutdown = shut_down;
  *out_plugin = made;
  return OK;
}
