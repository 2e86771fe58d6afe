/* SPDX-License-Identifier: Apache-2.0 */
/* A device that only one process at a time may hold open, by a lock on the file FAKE_LOCK. Whoever is
 * refused leaves a file FAKE_LOCK.refused. */
#define _DEFAULT_SOURCE
#define FAKE_ID "chipdock.exclusive"
#define FAKE_NAME "exclusive"
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "fake.h"

static chipdock_status CHIPDOCK_CALL exclusive_open(chipdock_plugin* plugin,
                                                    const chipdock_device_open_desc* desc,
                                                    chipdock_device** out_device,
                                                    chipdock_error* error) {
  char refused[1024];
  static int lock = -1; /* The process keeps it until it ends, as a driver's context would be. */
  if (lock < 0) lock = open(getenv("FAKE_LOCK"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    snprintf(refused, sizeof(refused), "%s.refused", getenv("FAKE_LOCK"));
    close(open(refused, O_CREAT | O_WRONLY, 0600));
    return chipdock_fail(error, CHIPDOCK_BUSY, "BUSY: another process has the device");
  }
  return fake_open(plugin, desc, out_device, error);
}

#undef FAKE_OPEN
#define FAKE_OPEN exclusive_open

FAKE_PLUGIN()
