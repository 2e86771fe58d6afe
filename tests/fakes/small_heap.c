/* SPDX-License-Identifier: Apache-2.0 */
/* A device with 1 MiB of memory, to run out of it. Correct in all else. */
#define FAKE_ID "chipdock.small_heap"
#define FAKE_NAME "small"
#define FAKE_HEAP_BYTES ((uint64_t)1 << 20)
#include "fake.h"

FAKE_PLUGIN()
