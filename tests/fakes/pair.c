/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices that know nothing of each other. */
#define FAKE_ID "chipdock.pair"
#define FAKE_NAME "pair"
#define FAKE_DEVICES 2
#include "fake.h"

FAKE_PLUGIN()
