/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks BASE-1: its device table claims to end after two slots, before open and close. */
#define FAKE_ID "chipdock.lies_short"
#define FAKE_DEVICE_HEADER {(uint32_t)(sizeof(chipdock_table_header) + 2 * sizeof(void*)), 1, 0}
#include "fake.h"

FAKE_PLUGIN()
