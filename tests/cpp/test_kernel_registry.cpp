// SPDX-License-Identifier: Apache-2.0
// Which of a device's kernels is picked, over pretended kernels. With real ones: tests/python.
#include "check.hpp"
#include "device_fixture.hpp"
#include "exec/kernel_registry.hpp"
#include "fakes.hpp"

using namespace chipdock;
using namespace chipdock::runtime;

namespace {

KernelChoice choice_for(const KernelRegistry& registry, const char* op) {
  chipdock_node node{};
  node.struct_size = sizeof(node);
  node.domain = "";
  node.op = op;
  node.since_version = 1;
  return registry.choose(node);
}

}  // namespace

TEST(kernel_with_an_unknown_flag_is_left_out_and_the_next_one_serves) {
  const KernelRegistry registry(check::open_device("later"));
  CHECK_EQ(registry.size(), size_t{1});
  const KernelChoice choice = choice_for(registry, "Relu");
  CHECK(choice.instance != nullptr);
  CHECK_EQ(std::string(choice.instance->kernel().name), "plain");
  CHECK_HAS(choice.reason, "newer: left out, it has flags 0x100000 that this host does not know");
  CHECK_HAS(choice.reason, "[BASE-11]");
}

TEST(reason_is_kept_if_every_kernel_is_left_out) {
  const KernelRegistry registry(check::open_device("later"));
  const KernelChoice choice = choice_for(registry, "Abs");
  CHECK(choice.instance == nullptr);
  CHECK_HAS(choice.reason, "alone: left out, it has flags 0x80000000");
}

TEST(operator_without_a_kernel_says_so) {
  const KernelRegistry registry(check::open_device("later"));
  CHECK_HAS(choice_for(registry, "Sign").reason, "later:0 has no kernel for Sign");
}
