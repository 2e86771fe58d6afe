/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The embedding interface in one include: what a framework written in C or C++ links
 * (libchipdock.so) to run its graphs and operators on the devices of any plugin. Version 0.1.
 *
 * A program makes a host, opens a device, and either runs single operators or builds a graph,
 * compiles it to a plan for the device and runs that at any shapes. The library reads no ONNX
 * files: it takes graphs of ONNX operators through host_graph.h. An example stands in
 * docs/embedding.md.
 *
 *   host_base.h    host, plugins, the duties that hold for every function
 *   host_device.h  opening and describing devices
 *   host_tensor.h  tensors in device and host memory, copies
 *   host_stream.h  streams, events
 *   host_graph.h   building a graph
 *   host_plan.h    compiling it, running it, running one operator
 */
#ifndef CHIPDOCK_HOST_H_
#define CHIPDOCK_HOST_H_

#include "chipdock/host_base.h"
#include "chipdock/host_device.h"
#include "chipdock/host_graph.h"
#include "chipdock/host_plan.h"
#include "chipdock/host_stream.h"
#include "chipdock/host_tensor.h"

#endif /* CHIPDOCK_HOST_H_ */
