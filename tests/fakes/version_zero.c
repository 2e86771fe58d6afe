/* SPDX-License-Identifier: Apache-2.0 */
/* A table header left zero, as a plugin forgets that fills its table by hand. */
#define FAKE_ID "chipdock.version_zero"
#define FAKE_DEVICE_HEADER {0, 0, 0}
#include "fake.h"

FAKE_PLUGIN()
