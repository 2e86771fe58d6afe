// SPDX-License-Identifier: Apache-2.0
// Turns registrations into descriptors. families.inc is made by the build from the names in ops/.
#include "kernel_list.hpp"

namespace chipdock::plugin::cpu {

#define FAMILY(stem) KernelSpan stem##_kernels();
#include "families.inc"
#undef FAMILY

const std::vector<const chipdock_kernel*>& KernelList::get() {
  std::call_once(once_, [this] { build(); });
  return pointers_;
}

void KernelList::build() {
#define FAMILY(stem) families_.push_back(stem##_kernels());
#include "families.inc"
#undef FAMILY
  for (const KernelSpan& family : families_) {
    for (const KernelDef& def : family) add(def);
  }
  for (const chipdock_kernel& kernel : kernels_) pointers_.push_back(&kernel);
}

void KernelList::add(const KernelDef& def) {
  auto& rules = dtype_rule_lists_.emplace_back();
  for (const DtypeRule& rule : def.dtypes) {
    chipdock_dtype_rule& made = dtype_rules_.emplace_back();
    made.struct_size = sizeof(made);
    made.argument = rule.argument;
    made.count = static_cast<uint32_t>(rule.dtypes.size());
    made.dtypes = rule.dtypes.data();
    rules.push_back(&made);
  }
  auto& layouts = layout_rule_lists_.emplace_back();
  for (const LayoutRule& rule : def.layouts) {
    chipdock_layout_rule& made = layout_rules_.emplace_back();
    made.struct_size = sizeof(made);
    made.argument = rule.argument;
    made.count = static_cast<uint32_t>(rule.layouts.size());
    made.layouts = rule.layouts.data();
    layouts.push_back(&made);
  }
  auto& aliases = alias_lists_.emplace_back();
  for (const auto& [input, output] : def.aliases) {
    chipdock_alias& made = aliases_.emplace_back();
    made.struct_size = sizeof(made);
    made.input = input;
    made.output = output;
    aliases.push_back(&made);
  }
  chipdock_kernel& kernel = kernels_.emplace_back();
  kernel.struct_size = sizeof(kernel);
  kernel.flags = def.flags;
  kernel.name = def.name != nullptr ? def.name : def.op;
  kernel.domain = def.domain;
  kernel.op = def.op;
  kernel.since_version = def.since;
  kernel.until_version = def.until;
  kernel.dtype_rule_count = static_cast<uint32_t>(rules.size());
  kernel.host_inputs = def.host_inputs;
  kernel.layout_rule_count = static_cast<uint32_t>(layouts.size());
  kernel.alias_count = static_cast<uint32_t>(aliases.size());
  kernel.dtype_rules = rules.empty() ? nullptr : rules.data();
  kernel.layout_rules = layouts.empty() ? nullptr : layouts.data();
  kernel.aliases = aliases.empty() ? nullptr : aliases.data();
  kernel.state = &def;
}

}  // namespace chipdock::plugin::cpu
