// SPDX-License-Identifier: Apache-2.0
// The registrations of ops/*.cpp as the ABI's descriptors, built once for an instance at first use.
#ifndef CHIPDOCK_PLUGIN_CPU_KERNEL_LIST_HPP_
#define CHIPDOCK_PLUGIN_CPU_KERNEL_LIST_HPP_

#include <deque>
#include <mutex>
#include <vector>

#include "chipdock/kernel.h"
#include "kernel.hpp"

namespace chipdock::plugin::cpu {

class KernelList {
 public:
  /// The descriptors; `state` of each is its KernelDef.
  const std::vector<const chipdock_kernel*>& get();

 private:
  void build();
  void add(const KernelDef& def);

  std::once_flag once_;
  std::deque<KernelSpan> families_;
  // Deques: what a descriptor points at must not move while more is added.
  std::deque<chipdock_kernel> kernels_;
  std::deque<chipdock_dtype_rule> dtype_rules_;
  std::deque<std::vector<const chipdock_dtype_rule*>> dtype_rule_lists_;
  std::deque<chipdock_layout_rule> layout_rules_;
  std::deque<std::vector<const chipdock_layout_rule*>> layout_rule_lists_;
  std::deque<chipdock_alias> aliases_;
  std::deque<std::vector<const chipdock_alias*>> alias_lists_;
  std::vector<const chipdock_kernel*> pointers_;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_KERNEL_LIST_HPP_
