// SPDX-License-Identifier: Apache-2.0
// Facts about the machine, read from procfs, sysfs and cgroupfs. Whatever cannot be read is 0 or
// "".
#ifndef CHIPDOCK_PLUGIN_CPU_TOPOLOGY_HPP_
#define CHIPDOCK_PLUGIN_CPU_TOPOLOGY_HPP_

#include <array>
#include <cstdint>
#include <string>

namespace chipdock::plugin::cpu {

struct Machine {
  std::string product;             ///< "AMD EPYC 9654 96-Core Processor"
  std::string architecture;        ///< "x86_64", "aarch64"
  std::string kernel;              ///< "Linux 6.18.44"
  uint64_t memory_bytes = 0;       ///< Installed, or the cgroup's limit if that is less.
  uint64_t l2_bytes = 0;           ///< Of one core.
  uint32_t cores = 0;              ///< Physical cores that this process may use.
  int32_t numa_node = -1;          ///< -1 if the machine has several.
  std::array<uint8_t, 16> uuid{};  ///< Of the machine; the same in every process.
};

/// Reads everything once.
Machine read_machine();

/// Memory that could be taken without swapping, from /proc/meminfo and the cgroup; 0 if unknown.
uint64_t available_memory();

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_TOPOLOGY_HPP_
