// SPDX-License-Identifier: Apache-2.0
// Private layouts in plans: where Reorders are put, and what keeps layouts out. Each graph's results
// are compared with those without layouts. Memory, shapes, bodies and threads: test_layout_runs.cpp.
#include "layouts_fixture.hpp"

using namespace chipdock::check;
namespace kit = chipdock::kit;

TEST(a_region_of_two_that_gain_takes_what_is_between_them) {
  check_net(chain({"Neg", "Relu", "Neg"}), "Reorder7 Neg7 Relu7 Neg7 Reorder7");
  check_net(chain({"Exp", "Neg", "Relu", "Neg", "Exp"}),
            "Exp Reorder7 Neg7 Relu7 Neg7 Reorder7 Exp");
}

TEST(one_that_gains_is_not_worth_two_reorders) {
  check_net(chain({"Neg"}), "Neg");
  check_net(chain({"Relu", "Neg", "Relu"}), "Relu Neg Relu");
  check_net(chain({"Neg", "Exp", "Neg"}), "Neg Exp Neg");
}

TEST(nodes_that_only_follow_make_no_region) { check_net(chain({"Relu", "Relu"}), "Relu Relu"); }

TEST(a_gain_is_worth_one_reorder) { check_net(chain({"Ceil"}), "Ceil7 Reorder7"); }

TEST(a_node_that_reads_a_layout_and_writes_none_ends_a_region) {
  check_net(chain({"Ceil", "Floor"}), "Ceil7 Floor7");
  check_net(chain({"Neg", "Neg", "Floor", "Exp"}), "Reorder7 Neg7 Neg7 Floor7 Exp");
}

TEST(readers_of_one_value_share_its_reorder) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"x"}).add("y", "Add", {"a", "b"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Add7 Reorder7");
}

TEST(a_reader_outside_gets_the_value_without_a_layout) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("c", "Exp", {"a"}).add("d", "Exp", {"a"});
  net.output("b").output("c").output("d");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Exp Exp Reorder7");
}

TEST(who_reads_dims_alone_needs_no_reorder) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("s", "Shape", {"a"}).add("y", "Floor", {"a"});
  net.output("s").output("y");
  check_net(net, "Reorder7 Neg7 Shape Floor7");
}

TEST(an_output_of_the_graph_may_be_read_inside_a_region) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).output("a").output("b").output("a");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Reorder7");
}

TEST(a_follower_that_costs_a_reorder_stays_out) {
  Net net({"x", "z"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("c", "Add", {"b", "z"});
  net.add("y", "Exp", {"c"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7 Add Exp");
}

TEST(an_argument_given_twice_is_one_value) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Add", {"a", "a"}).add("y", "Neg", {"b"}).output("y");
  check_net(net, "Reorder7 Neg7 Add7 Neg7 Reorder7");
}

TEST(nodes_that_nobody_reads_ask_for_nothing) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("dead", "Exp", {"a"}).add("y", "Neg", {"a"}).output("y");
  check_net(net, "Reorder7 Neg7 Neg7 Reorder7");
}

TEST(two_layouts_meet_without_one) {
  check_net(chain({"Neg", "Neg", "Sqrt", "Relu", "Sqrt"}),
            "Reorder7 Neg7 Neg7 Reorder7 Reorder9 Sqrt9 Relu9 Sqrt9 Reorder9");
}

TEST(a_node_of_the_host_reads_and_writes_no_layout) {
  check_net(chain({"Neg", "Neg", "Abs", "Neg", "Neg"}),
            "Reorder7 Neg7 Neg7 Reorder7 Abs Reorder7 Neg7 Neg7 Reorder7");
}

TEST(a_view_shows_memory_without_a_layout) {
  check_net(chain({"Neg", "Neg", "Flatten", "Neg", "Neg"}),
            "Reorder7 Neg7 Neg7 Reorder7 Flatten Reorder7 Neg7 Neg7 Reorder7");
}

TEST(what_follows_from_shapes_stays_out) {
  Net net({"x"});
  net.add("a", "Neg", {"x"}).add("b", "Neg", {"a"}).add("y", "Exp", {"b"}).output("y");
  net.add("s", "Shape", {"x"}).add("f", "Cast", {"s"}).add("n", "Neg", {"f"});
  net.add("z", "Neg", {"n"}).output("z");
  net.graph->values[static_cast<size_t>(net.value("s"))].dtype = kit::kInt64;
  net.graph->nodes[4]->attributes.add_integer("to", 1);
  const auto plan = compile(net, open_layouts());
  CHECK_EQ(shown(*plan), "Reorder7 Neg7 Neg7 Reorder7 Exp Shape Cast Neg Neg");
  CHECK(run(*plan, {2, 3})[1] == (std::vector<float>{2, 3}));
}

TEST(layouts_can_be_switched_off) {
  const auto device = open_layouts();
  CHECK_EQ(shown(*compile(chain({"Neg", "Neg"}), device, false)), "Neg Neg");
}

TEST(without_the_slot_for_sizes_there_are_no_layouts) {
  const auto device = Device::open(load_fake("layouts", "none", {{"lacks", "size"}}), 0, {});
  CHECK(device->tables().kernel.launch != nullptr);
  CHECK(device->tables().kernel.layout_size == nullptr);
  const auto plan = compile(chain({"Neg", "Neg"}), device);
  CHECK_EQ(shown(*plan), "Neg Neg");
  CHECK(run(*plan, {2, 2}) == run(*compile(chain({"Neg", "Neg"}), open_layouts()), {2, 2}));
}

TEST(a_region_whose_reorder_or_kernel_is_refused_stays_as_it_was) {
  const Net net = chain({"Neg", "Relu", "Neg"});
  check_net(net, "Neg Relu Neg", "reorder");
  check_net(net, "Neg Relu Neg", "reorder in create");
  check_net(net, "Neg Relu Neg", "neg in create");
  // The other region is not concerned.
  check_net(chain({"Neg", "Neg", "Sqrt", "Sqrt"}), "Neg Neg Reorder9 Sqrt9 Sqrt9 Reorder9",
            "neg in create");
}
