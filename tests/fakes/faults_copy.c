/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose copies of 4099 bytes read from address 0, and whose copies of 4111 hang. */
#define _POSIX_C_SOURCE 200809L
#define FAKE_ID "chipdock.faults"
#define FAKE_NAME "faults"
#include <unistd.h>

#include "fake.h"

static chipdock_status CHIPDOCK_CALL faulting_copy(chipdock_device* device,
                                                   const chipdock_copy_desc* desc,
                                                   chipdock_error* error) {
  const volatile char* const nowhere = NULL;
  if (desc->size == 4099 && *nowhere == 0) return CHIPDOCK_INTERNAL;
  while (desc->size == 4111) pause();
  return fake_copy(device, desc, error);
}

#undef FAKE_COPY
#define FAKE_COPY faulting_copy

FAKE_PLUGIN()
