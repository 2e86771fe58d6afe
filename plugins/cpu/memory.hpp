// SPDX-License-Identifier: Apache-2.0
// What memory.cpp, transfer.cpp and sharing.cpp, the three parts of the memory table, share.
#ifndef CHIPDOCK_PLUGIN_CPU_MEMORY_HPP_
#define CHIPDOCK_PLUGIN_CPU_MEMORY_HPP_

#include "device.hpp"

namespace chipdock::plugin::cpu {

chipdock_alloc_desc read_alloc_desc(const chipdock_alloc_desc* given);
chipdock_memory* allocate(chipdock_device& device, const chipdock_alloc_desc& desc);
uint64_t whole_pages(uint64_t size);
/// Maps memory.fd for kernels, and in strict mode a second time without access rights.
void map_memory(chipdock_memory& memory, uint64_t size, bool strict);
/// Hands free pages of the C library back to the system.
void release_free_pages();

// transfer.cpp
chipdock_status copy(chipdock_device* device, const chipdock_copy_desc* desc,
                     chipdock_error* error);
chipdock_status copy_2d(chipdock_device* device, const chipdock_copy_2d_desc* desc,
                        chipdock_error* error);
chipdock_status fill(chipdock_device* device, const chipdock_fill_desc* desc,
                     chipdock_error* error);
chipdock_status alloc_async(chipdock_device* device, const chipdock_alloc_desc* desc,
                            chipdock_memory** out_memory, chipdock_error* error);
chipdock_status free_async(chipdock_device* device, chipdock_memory* memory,
                           chipdock_stream* stream, chipdock_error* error);

// sharing.cpp
chipdock_status export_memory(chipdock_device* device, chipdock_memory* memory,
                              chipdock_external* out_external, chipdock_error* error);
chipdock_status import_memory(chipdock_device* device, const chipdock_external* external,
                              chipdock_memory** out_memory, chipdock_error* error);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_MEMORY_HPP_
