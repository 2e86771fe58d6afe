/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Everything of the C ABI in one include. Tables device, memory, stream, event and kernel are 1.0;
 * graph, compile, ccl and profiler are 0.x and seen only where CHIPDOCK_UNSTABLE is defined before
 * this line.
 */
#ifndef CHIPDOCK_CHIPDOCK_H_
#define CHIPDOCK_CHIPDOCK_H_

#include "chipdock/base.h"
#include "chipdock/ccl.h"
#include "chipdock/compile.h"
#include "chipdock/device.h"
#include "chipdock/event.h"
#include "chipdock/graph.h"
#include "chipdock/kernel.h"
#include "chipdock/memory.h"
#include "chipdock/plugin.h"
#include "chipdock/profiler.h"
#include "chipdock/stream.h"

#endif /* CHIPDOCK_CHIPDOCK_H_ */
