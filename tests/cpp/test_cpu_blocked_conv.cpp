// SPDX-License-Identifier: Apache-2.0
// Convolution in the blocked layout against the kernels of layout 0, at every ISA level, on one
// thread and on two.
#include <limits>

#include "cpu_blocked_support.hpp"

namespace chipdock::plugin::cpu {
KernelSpan conv_kernels();
KernelSpan conv_blocked_kernels();
}  // namespace chipdock::plugin::cpu

namespace {

using namespace chipdock::cpu_test;

struct Case {
  Shape x, w;
  Shape strides = {1, 1}, pads = {0, 0, 0, 0}, dilations = {1, 1};
  int64_t group = 1;
  const char* activation = "";
  double alpha = 0, beta = 0;
  bool bias = true;
  bool residual = false;
};

Shape output_of(const Case& c) {
  Shape y = {c.x[0], c.w[0]};
  const size_t axes = c.x.size() - 2;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t span = (c.w[i + 2] - 1) * c.dilations[i] + 1;
    y.push_back((c.x[i + 2] + c.pads[i] + c.pads[axes + i] - span) / c.strides[i] + 1);
  }
  return y;
}

/// The node, all plain or with blocked data; `first`: X stays plain.
Node node_of(const Case& c, const Floats& x, uint32_t layout, bool first) {
  const Shape y = output_of(c);
  std::vector<Argument> inputs;
  inputs.push_back({c.x, x, first ? 0 : layout});
  inputs.push_back({c.w, numbers(count_of(c.w), 2), 0, true});
  inputs.push_back(c.bias ? Argument{{c.w[0]}, numbers(c.w[0], 3), 0, true} : Argument{});
  inputs.push_back(c.residual ? Argument{y, numbers(count_of(y), 4), layout} : Argument{});
  return Node("FusedConv", std::move(inputs), y, layout);
}
void set_attributes(Node& node, const Case& c) {
  node.ints("strides", c.strides).ints("pads", c.pads).ints("dilations", c.dilations);
  node.integer("group", c.group).text("activation", c.activation);
  node.number("alpha", c.alpha).number("beta", c.beta);
}

void check_same(const Case& c, const Floats& x, bool first = false) {
  at_every_blocked_level([&](ThreadPool& pool) {
    Node reference = node_of(c, x, 0, false);
    set_attributes(reference, c);
    Node node = node_of(c, x, kBlocked, first);
    set_attributes(node, c);
    const KernelSpan plain_kernels = conv_kernels();
    const KernelSpan kernels = conv_blocked_kernels();
    const Floats expected = run(named(plain_kernels, "fused_conv_f32"), reference, pool);
    const KernelDef& def = named(kernels, "fused_conv_blocked_f32");
    const Floats got = run(def, node, pool);
    CHECK(close(got, expected, 2e-6f * static_cast<float>(count_of(c.w) / c.w[0] + 10)));
    CHECK(equal(got, run(def, node, pool, true)));
  });
}
void check_same(const Case& c, bool first = false) {
  check_same(c, numbers(count_of(c.x), 1), first);
}

TEST(pointwise_convolutions_agree_for_channels_of_any_number) {
  check_same({{1, 5, 5, 7}, {17, 5, 1, 1}});
  check_same({{3, 24, 9, 11}, {40, 24, 1, 1}});
  check_same({{2, 40, 7, 7}, {24, 40, 1, 1}});
  check_same({{1, 300, 1, 1}, {33, 300, 1, 1}});
  check_same({{1, 16, 31, 33}, {96, 16, 1, 1}});
  check_same({{1, 64, 14, 14}, {128, 64, 1, 1}, {2, 2}});
}

TEST(windows_agree_with_borders_strides_and_dilations) {
  check_same({{1, 17, 13, 9}, {24, 17, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check_same({{3, 40, 12, 15}, {32, 40, 3, 3}, {2, 2}, {0, 0, 1, 1}});
  check_same({{1, 32, 16, 17}, {48, 32, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}});
  check_same({{1, 16, 20, 21}, {20, 16, 5, 3}, {3, 2}, {2, 0, 1, 1}, {1, 3}});
  check_same({{2, 20, 10, 11}, {16, 20, 3, 3}});
  check_same({{1, 16, 3, 2}, {16, 16, 3, 3}, {1, 1}, {3, 3, 3, 3}});
  check_same({{1, 16, 9, 8}, {16, 16, 1, 1}, {3, 3}, {1, 1, 0, 2}});
  check_same({{1, 24, 40, 1}, {32, 24, 5, 1}, {1, 1}, {2, 0, 2, 0}});
  check_same({{1, 24, 1, 200}, {32, 24, 1, 9}, {1, 3}, {0, 4, 0, 4}});
  check_same({{1, 24, 6, 120}, {32, 24, 6, 3}, {1, 1}, {0, 1, 0, 1}});
}

TEST(signals_of_one_axis_agree) {
  check_same({{2, 24, 301}, {40, 24, 7}, {2}, {3, 3}, {1}});
  check_same({{1, 32, 50}, {16, 32, 3}, {1}, {4, 4}, {4}});
}

TEST(depthwise_convolutions_agree) {
  check_same({{1, 40, 14, 14}, {40, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 40});
  check_same({{3, 17, 15, 13}, {17, 1, 5, 5}, {2, 2}, {1, 1, 2, 2}, {1, 1}, 17});
  check_same({{1, 24, 7, 7}, {24, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 24});
  check_same({{1, 16, 130, 61}, {16, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 16});
  check_same({{1, 33, 9, 9}, {33, 1, 3, 3}, {1, 1}, {0, 0, 0, 0}, {2, 2}, 33});
}

TEST(groups_of_whole_blocks_agree) {
  check_same({{2, 64, 9, 8}, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2});
  check_same({{1, 32, 6, 6}, {96, 16, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
}

TEST(first_layers_read_plain_images) {
  check_same({{2, 3, 33, 31}, {24, 3, 3, 3}, {2, 2}, {0, 0, 1, 1}}, true);
  check_same({{1, 3, 40, 41}, {64, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}}, true);
  check_same({{1, 1, 17, 19}, {17, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}}, true);
  check_same({{1, 4, 8, 9}, {16, 4, 1, 1}}, true);
  check_same({{1, 2, 20, 25}, {16, 2, 4, 4}, {4, 4}}, true);
}

TEST(residuals_and_activations_agree) {
  for (const char* activation : {"Relu", "HardSwish", "Sigmoid", "Swish", "HardSigmoid", "Gelu"}) {
    Case c = {{2, 24, 9, 10}, {40, 24, 3, 3}, {1, 1}, {1, 1, 1, 1}};
    c.activation = activation;
    c.alpha = 0.25, c.beta = 0.5;
    c.residual = true;
    check_same(c);
    c.bias = false;
    check_same(c);
    Case depthwise = {{2, 24, 9, 10}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24};
    depthwise.activation = activation;
    depthwise.alpha = 0.25, depthwise.beta = 0.5;
    depthwise.residual = true;
    check_same(depthwise);
  }
}

TEST(bounds_above_zero_leave_lanes_without_a_channel_zero) {
  Case c = {{1, 20, 5, 6}, {20, 20, 1, 1}};
  c.activation = "Clip";
  c.alpha = 1, c.beta = 6;
  check_same(c);
  c.w = {20, 1, 3, 3};
  c.group = 20;
  check_same(c);
}

TEST(what_is_not_finite_stays_in_its_channel_and_window) {
  const Case c = {{1, 17, 9, 9}, {18, 17, 3, 3}, {1, 1}, {1, 1, 1, 1}};
  Floats x = numbers(count_of(c.x), 1);
  x.back() = std::numeric_limits<float>::quiet_NaN();
  x[x.size() - 81] = std::numeric_limits<float>::infinity();
  check_same(c, x);
  const Case depthwise = {{1, 17, 9, 9}, {17, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 17};
  check_same(depthwise, x);
}

TEST(a_residual_may_be_the_memory_of_the_output) {
  CHECK(named(chipdock::plugin::cpu::conv_blocked_kernels(), "fused_conv_blocked_f32").aliases ==
        (std::vector<std::pair<uint32_t, uint32_t>>{{3, 0}}));
}

TEST(other_convolutions_are_declined) {
  const KernelSpan kernels = conv_blocked_kernels();
  const auto answer = [&](const Case& c, bool constant, uint32_t layout) {
    std::vector<Argument> inputs;
    inputs.push_back({c.x, {}, layout});
    inputs.push_back({c.w, numbers(count_of(c.w), 2), 0, constant});
    Node node("Conv", std::move(inputs), output_of(c), layout);
    set_attributes(node, c);
    return named(kernels, "conv_blocked_f32").supports(node.view());
  };
  const Case plain = {{1, 16, 4, 4}, {16, 16, 1, 1}};
  const Case thin_groups = {{1, 16, 4, 4}, {16, 4, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 4};
  at_every_blocked_level([&](ThreadPool&) {
    CHECK_EQ(answer(plain, true, kBlocked), CHIPDOCK_SUPPORTS_YES);
    CHECK_EQ(answer(plain, true, 0), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer(plain, false, kBlocked), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer(thin_groups, true, kBlocked), CHIPDOCK_SUPPORTS_NO);
  });
  const IsaHold hold(Isa::kBaseline);
  CHECK_EQ(answer(plain, true, kBlocked), CHIPDOCK_SUPPORTS_NO);
}

}  // namespace
