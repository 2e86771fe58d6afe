/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks a heap rule: the heap claims to be host-visible, and there is no address slot. */
#define FAKE_ID "chipdock.bad_heap"
#define FAKE_HEAP_FLAGS (CHIPDOCK_HEAP_HOST_VISIBLE | CHIPDOCK_HEAP_COHERENT)
#include "fake.h"

FAKE_PLUGIN()
