// SPDX-License-Identifier: Apache-2.0
// Compiled functions: what compile.cpp finds in a module and function.cpp launches.
#ifndef CHIPDOCK_PLUGIN_CPU_FUNCTION_HPP_
#define CHIPDOCK_PLUGIN_CPU_FUNCTION_HPP_

#include <cstdint>
#include <string>

#include "device.hpp"

namespace chipdock::plugin::cpu {

/// Second argument of every compiled function; the layout is part of the ABI that README.md
/// describes.
struct Block {
  uint64_t grid[3];
  uint64_t block[3];
  uint64_t index[3];
  void* local;
  uint64_t local_bytes;
};

using Entry = void (*)(void* const* arguments, const Block* block);

inline constexpr uint32_t kMaxBlock = 1u << 20;
inline constexpr uint64_t kMaxGrid = uint64_t{1} << 31;
inline constexpr uint64_t kMaxLocal = uint64_t{1} << 20;
inline constexpr uint32_t kMaxArguments = 256;

chipdock_status launch_function(chipdock_function* function,
                                const chipdock_function_launch_desc* given, chipdock_error* error);

}  // namespace chipdock::plugin::cpu

struct chipdock_function {
  chipdock_device& device;
  std::string name;
  chipdock::plugin::cpu::Entry entry;
};

#endif  // CHIPDOCK_PLUGIN_CPU_FUNCTION_HPP_
