/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks BASE-8: open returns OK and writes nothing, and so does alloc. */
#define FAKE_ID "chipdock.null_with_ok"
#include "fake.h"

/* Options let a test come past open, to alloc. */
static chipdock_status CHIPDOCK_CALL null_open(chipdock_plugin* plugin,
                                               const chipdock_device_open_desc* desc,
                                               chipdock_device** out_device,
                                               chipdock_error* error) {
  if (desc->option_count != 0) return fake_open(plugin, desc, out_device, error);
  return CHIPDOCK_OK;
}

static chipdock_status CHIPDOCK_CALL null_alloc(chipdock_device* device,
                                                const chipdock_alloc_desc* desc,
                                                chipdock_memory** out_memory,
                                                chipdock_error* error) {
  (void)device, (void)desc, (void)out_memory, (void)error;
  return CHIPDOCK_OK;
}

#undef FAKE_OPEN
#define FAKE_OPEN null_open
#undef FAKE_ALLOC
#define FAKE_ALLOC null_alloc

FAKE_PLUGIN()
