/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is listed and cannot be opened, as one that another process holds. */
#define FAKE_ID "chipdock.fails_open"
#include "fake.h"

static chipdock_status CHIPDOCK_CALL failing_open(chipdock_plugin* plugin,
                                                  const chipdock_device_open_desc* desc,
                                                  chipdock_device** out_device,
                                                  chipdock_error* error) {
  (void)plugin, (void)desc, (void)out_device;
  return chipdock_fail(error, CHIPDOCK_BUSY, "BUSY: the device is in exclusive mode and in use");
}

#undef FAKE_OPEN
#define FAKE_OPEN failing_open

FAKE_PLUGIN()
