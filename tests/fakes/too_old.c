/* SPDX-License-Identifier: Apache-2.0 */
/* Built with headers from before 1.0, and does not check versions itself. */
#define FAKE_ID "chipdock.too_old"
#define FAKE_ABI CHIPDOCK_VERSION(0, 9)
#define FAKE_SKIPS_CHECK
#include "fake.h"

FAKE_PLUGIN()
