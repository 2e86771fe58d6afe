// SPDX-License-Identifier: Apache-2.0
// How the rules of a kernel descriptor are read, for the executor that asks kernels and the layer
// that checks launches.
#ifndef CHIPDOCK_RUNTIME_KERNEL_RULES_HPP_
#define CHIPDOCK_RUNTIME_KERNEL_RULES_HPP_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "chipdock/kernel.h"

namespace chipdock::runtime {

/// The rule for argument `index` of a side: its own, else the last one of that side (variadic
/// operators); NULL if there is none.
template <class Rule>
const Rule* find_rule(const Rule* const* rules, uint32_t count, bool input, size_t index) {
  const Rule* best = nullptr;
  int64_t best_index = -1;
  for (uint32_t r = 0; r < count; ++r) {
    const Rule* rule = rules[r];
    if ((rule->argument >= 0) != input) continue;
    const int64_t at = input ? rule->argument : -1 - int64_t{rule->argument};
    if (at <= static_cast<int64_t>(index) && at > best_index) {
      best = rule;
      best_index = at;
    }
  }
  return best;
}

/// Whether the kernel's rules let an argument be in `layout`, which is not 0. Arguments that the
/// kernel reads or writes on the host are never in one.
inline bool admits_layout(const chipdock_kernel& kernel, bool input, size_t index,
                          uint32_t layout) {
  const uint64_t on_host = input ? kernel.host_inputs : kernel.host_outputs;
  if (index < 64 && ((on_host >> index) & 1) != 0) return false;
  const chipdock_layout_rule* rule =
      find_rule(kernel.layout_rules, kernel.layout_rule_count, input, index);
  if (rule == nullptr) return false;
  const uint32_t* end = rule->layouts + rule->count;
  return std::find(rule->layouts, end, layout) != end;
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_KERNEL_RULES_HPP_
