/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks PLG-4: its id has capitals and no vendor. */
#define FAKE_ID "Acme"
#include "fake.h"

FAKE_PLUGIN()
