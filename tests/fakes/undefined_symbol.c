/* SPDX-License-Identifier: Apache-2.0 */
/* Cannot be loaded: it wants a symbol that no library has, as one built for other drivers. */
#define FAKE_ID "chipdock.undefined_symbol"
#include "fake.h"

int acme_driver_v7(void);

static chipdock_status CHIPDOCK_CALL driver_count(chipdock_plugin* plugin, int32_t* out_count,
                                                  chipdock_error* error) {
  (void)plugin, (void)error;
  *out_count = acme_driver_v7();
  return CHIPDOCK_OK;
}

#undef FAKE_COUNT
#define FAKE_COUNT driver_count

FAKE_PLUGIN()
