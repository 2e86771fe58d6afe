/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that never comes back from open. No CPU time is used; the process can still exit. */
#define FAKE_ID "chipdock.hangs_open"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "fake.h"

static chipdock_status CHIPDOCK_CALL hanging_open(chipdock_plugin* plugin,
                                                  const chipdock_device_open_desc* desc,
                                                  chipdock_device** out_device,
                                                  chipdock_error* error) {
  (void)plugin, (void)desc, (void)out_device, (void)error;
  while (pause() != 0) {
  }
  return CHIPDOCK_OK;
}

#undef FAKE_OPEN
#define FAKE_OPEN hanging_open

FAKE_PLUGIN()
