/* SPDX-License-Identifier: Apache-2.0 */
/* Built with headers of a later major version. */
#define FAKE_ID "chipdock.too_new"
#define FAKE_ABI CHIPDOCK_VERSION(2, 3)
#include "fake.h"

FAKE_PLUGIN()
