/* SPDX-License-Identifier: Apache-2.0 */
/* A device that does not open as long as the file named by FAKE_ILL exists. */
#define _POSIX_C_SOURCE 200809L
#define FAKE_ID "chipdock.ill"
#define FAKE_NAME "ill"
#include <unistd.h>

#include "fake.h"

static chipdock_status CHIPDOCK_CALL ill_open(chipdock_plugin* plugin,
                                              const chipdock_device_open_desc* desc,
                                              chipdock_device** out_device, chipdock_error* error) {
  const char* file = getenv("FAKE_ILL");
  if (file != NULL && access(file, F_OK) == 0) {
    return chipdock_fail(error, CHIPDOCK_RESET_REQUIRED, "RESET_REQUIRED: the chip is ill");
  }
  return fake_open(plugin, desc, out_device, error);
}

#undef FAKE_OPEN
#define FAKE_OPEN ill_open

FAKE_PLUGIN()
