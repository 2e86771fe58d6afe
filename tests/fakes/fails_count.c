/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose driver is there but broken: count is UNAVAILABLE with the reason. */
#define FAKE_ID "chipdock.fails_count"
#include "fake.h"

static chipdock_status CHIPDOCK_CALL failing_count(chipdock_plugin* plugin, int32_t* out_count,
                                                   chipdock_error* error) {
  (void)plugin, (void)out_count;
  chipdock_fail(error, CHIPDOCK_UNAVAILABLE,
                "UNAVAILABLE: the driver answered -19, its version is older than 5.2");
  if (error != NULL) error->vendor_code = -19;
  return CHIPDOCK_UNAVAILABLE;
}

#undef FAKE_COUNT
#define FAKE_COUNT failing_count

FAKE_PLUGIN()
