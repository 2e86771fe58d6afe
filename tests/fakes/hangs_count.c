/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that hangs as soon as it is asked what devices there are. */
#define FAKE_ID "chipdock.hangs_count"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "fake.h"

static chipdock_status CHIPDOCK_CALL hanging_count(chipdock_plugin* plugin, int32_t* out_count,
                                                   chipdock_error* error) {
  (void)plugin, (void)out_count, (void)error;
  while (pause() != 0) {
  }
  return CHIPDOCK_OK;
}

#undef FAKE_COUNT
#define FAKE_COUNT hanging_count

FAKE_PLUGIN()
