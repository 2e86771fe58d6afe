/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks BASE-1: its device table claims to be 4 GiB long. The host must not read on. */
#define FAKE_ID "chipdock.lies_size"
#define FAKE_DEVICE_HEADER {0xfffffff8u, 1, 0}
#include "fake.h"

FAKE_PLUGIN()
