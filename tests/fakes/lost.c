/* SPDX-License-Identifier: Apache-2.0 */
/* A device lost in copy number FAKE_LOST_AFTER + 1 (environment, read at open; unset = 0). */
#define FAKE_ID "chipdock.lost"
#include "fake.h"

static chipdock_status CHIPDOCK_CALL counting_open(chipdock_plugin* plugin,
                                                   const chipdock_device_open_desc* desc,
                                                   chipdock_device** out_device,
                                                   chipdock_error* error) {
  const char* after = getenv("FAKE_LOST_AFTER");
  const chipdock_status status = fake_open(plugin, desc, out_device, error);
  if (status == CHIPDOCK_OK) (*out_device)->copies = after == NULL ? 0 : strtoull(after, NULL, 10);
  return status;
}

static chipdock_status CHIPDOCK_CALL losing_copy(chipdock_device* device,
                                                 const chipdock_copy_desc* desc,
                                                 chipdock_error* error) {
  if (__atomic_load_n(&device->copies, __ATOMIC_RELAXED) != 0) {
    __atomic_sub_fetch(&device->copies, 1, __ATOMIC_RELAXED);
    return fake_copy(device, desc, error);
  }
  chipdock_fail(error, CHIPDOCK_DEVICE_LOST, "DEVICE_LOST: the device fell off the bus");
  if (error != NULL) {
    error->scope = CHIPDOCK_SCOPE_DEVICE;
    error->correlation_id = desc->correlation_id;
  }
  return CHIPDOCK_DEVICE_LOST;
}

#undef FAKE_OPEN
#define FAKE_OPEN counting_open
#undef FAKE_COPY
#define FAKE_COPY losing_copy

FAKE_PLUGIN()
