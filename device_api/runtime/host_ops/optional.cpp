// SPDX-License-Identifier: Apache-2.0
// Optionals: what holds something is that something.
#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

bool holds(HostCall& call) { return call.has_input(0) && !is_kind(call.input(0), HostKind::kNone); }

void make(HostCall& call) { call.set(0, holds(call) ? call.own(call.input(0)) : make_none()); }

void has_element(HostCall& call) {
  const uint8_t answer = holds(call) ? 1 : 0;
  call.set(0, call.tensor(kit::kBool, {}, &answer));
}

void get_element(HostCall& call) {
  kit::require(holds(call), "the optional is empty; ask OptionalHasElement first");
  call.set(0, call.own(call.input(0)));
}

void identity(HostCall& call) { call.set(0, call.own(call.input(0))); }

}  // namespace

std::vector<HostOp> optional_host_ops() {
  return {{"Optional", 15, 0, make},
          {"OptionalHasElement", 15, 0, has_element},
          {"OptionalGetElement", 15, 0, get_element},
          {"Identity", 1, 0, identity}};
}

}  // namespace chipdock::runtime
