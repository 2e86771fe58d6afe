// SPDX-License-Identifier: Apache-2.0
// What a user can set: CHIPDOCK_CPU_* in the environment, options of query, options of open. The
// later one wins. README.md lists them.
#ifndef CHIPDOCK_PLUGIN_CPU_OPTIONS_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPTIONS_HPP_

#include <cstdint>

#include "chipdock/base.h"
#include "isa.hpp"

namespace chipdock::plugin::cpu {

struct Settings {
  int devices = 1;  ///< Virtual devices; query and environment only.
  int threads = 1;  ///< Threads of one launch, the caller counted.
  Isa isa = Isa::kBaseline;
  bool strict = false;        ///< Fixed at query: device info depends on it.
  uint64_t memory_limit = 0;  ///< Bytes one opened device may hold; 0 = the machine's memory.
};

/// Defaults of this machine, then the environment. Throws kit::Failure naming a bad variable.
Settings settings_from_environment(int default_threads);

/// Applies options of query (`opening` false) or open. Throws INVALID_ARGUMENT for an unknown key
/// or bad value, FAILED_PRECONDITION for an open that contradicts the strict mode of its instance.
void apply_options(const chipdock_option* const* options, uint32_t count, bool opening,
                   Settings& settings);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPTIONS_HPP_
