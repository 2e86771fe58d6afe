// SPDX-License-Identifier: Apache-2.0
// The blocked layout and the kernels that follow it from one convolution to the next, against the
// kernels of layout 0, at every ISA level, on one thread and on two.
#include <algorithm>
#include <limits>

#include "cpu_blocked_support.hpp"

namespace chipdock::plugin::cpu {
KernelSpan batch_norm_kernels();
KernelSpan binary_blocked_kernels();
KernelSpan binary_kernels();
KernelSpan clip_kernels();
KernelSpan concat_blocked_kernels();
KernelSpan concat_kernels();
KernelSpan pad_blocked_kernels();
KernelSpan pool_blocked_kernels();
KernelSpan pool_kernels();
KernelSpan pow_kernels();
KernelSpan reorder_kernels();
KernelSpan resize_blocked_kernels();
KernelSpan resize_kernels();
KernelSpan unary_kernels();
KernelSpan variadic_kernels();
}  // namespace chipdock::plugin::cpu

namespace {

using namespace chipdock::cpu_test;
namespace kit = chipdock::kit;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Random numbers that end in what is not finite, so that it lies beside lanes without a channel.
Floats wild(const Shape& shape, uint32_t seed) {
  Floats values = numbers(count_of(shape), seed);
  const size_t size = values.size();
  if (size > 3) values[size - 1] = kNan, values[size - 2] = kInf, values[size - 3] = -kInf;
  return values;
}

/// Why a size is refused.
std::string size_failure(uint32_t layout, chipdock_dtype dtype, int32_t rank, const int64_t* dims) {
  try {
    layout_bytes(layout, dtype, rank, dims);
  } catch (const kit::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(sizes_count_whole_blocks_and_name_what_does_not_fit) {
  const int64_t dims[] = {2, 17, 3, 5};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa > detected_isa()) continue;
    const IsaHold hold(isa);
    const uint64_t channels = isa == Isa::kAvx2 ? 24 : 32;
    CHECK_EQ(layout_bytes(kBlocked, kit::kFloat32, 4, dims), 2 * channels * 15 * 4);
    CHECK_EQ(layout_bytes(0, kit::kFloat32, 4, dims), uint64_t{2 * 17 * 15 * 4});
    CHECK(size_failure(kBlocked, kit::kFloat64, 4, dims).find("float32") != std::string::npos);
    CHECK(size_failure(kBlocked, kit::kFloat32, 2, dims).find("rank 3") != std::string::npos);
    CHECK(size_failure(2, kit::kFloat32, 4, dims).find("layout 2") != std::string::npos);
    const int64_t unknown[] = {2, 17, -1, 5};
    CHECK(size_failure(kBlocked, kit::kFloat32, 4, unknown).find("dim 2") != std::string::npos);
  }
  const IsaHold hold(Isa::kBaseline);
  CHECK(size_failure(kBlocked, kit::kFloat32, 4, dims).find("layout 1") != std::string::npos);
}

TEST(reorder_goes_to_blocks_and_back) {
  const KernelSpan kernels = chipdock::plugin::cpu::reorder_kernels();
  const KernelDef& def = named(kernels, "reorder_f32");
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const Shape& shape :
         {Shape{1, 3, 5, 7}, Shape{3, 17, 1, 1}, Shape{2, 40, 13, 9}, Shape{1, 16, 70, 90},
          Shape{2, 24, 301}, Shape{1, 1, 2, 2}, Shape{1, 20, 2, 3, 4}}) {
      const Floats x = wild(shape, 1);
      CHECK(equal(run(def, Node("Reorder", {{shape, x}}, shape, kBlocked), pool), x));
      CHECK(equal(run(def, Node("Reorder", {{shape, x, kBlocked}}, shape, 0), pool), x));
    }
    const Node same("Reorder", {{{1, 3, 5, 7}, {}}}, {1, 3, 5, 7}, 0);
    CHECK_EQ(def.supports(same.view()), CHIPDOCK_SUPPORTS_NO);
  });
}

TEST(functions_of_one_tensor_agree) {
  const KernelSpan kernels = chipdock::plugin::cpu::unary_kernels();
  const Shape shape = {2, 19, 5, 7};
  const Floats x = wild(shape, 1);
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const char* op : {"Relu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "LeakyRelu",
                           "Elu", "Gelu", "Exp", "Cos", "Abs", "Softplus", "Reciprocal"}) {
      const KernelDef& def = named(kernels, op);
      const Floats expected = run(def, Node(op, {{shape, x}}, shape, 0), pool);
      CHECK(equal(run(def, Node(op, {{shape, x, kBlocked}}, shape, kBlocked), pool), expected));
    }
  });
}

TEST(clip_agrees_with_bounds_on_either_side_of_zero) {
  const KernelSpan kernels = chipdock::plugin::cpu::clip_kernels();
  const KernelDef& def = named(kernels, "Clip");
  const Shape shape = {1, 20, 5, 7};
  const Floats x = wild(shape, 1);
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const auto& [low, high] : {std::pair{0.0f, 6.0f}, {0.25f, 0.5f}, {-0.5f, -0.25f}}) {
      const Argument from = {{1}, {low}, 0, true}, to = {{1}, {high}, 0, true};
      const Floats expected = run(def, Node("Clip", {{shape, x}, from, to}, shape, 0), pool);
      const Node node("Clip", {{shape, x, kBlocked}, from, to}, shape, kBlocked);
      CHECK(equal(run(def, node, pool), expected));
    }
  });
}

TEST(functions_of_two_tensors_agree_however_they_are_broadcast) {
  using namespace chipdock::plugin::cpu;
  const KernelSpan kernels = binary_blocked_kernels();
  const Shape shape = {2, 19, 5, 70};
  struct Other {
    Shape shape;
    uint32_t layout;
  };
  const std::vector<Other> others = {{shape, kBlocked},
                                     {{2, 19, 1, 1}, kBlocked},
                                     {{1, 19, 1, 1}, kBlocked},
                                     {{1, 19, 5, 70}, kBlocked},
                                     {{2, 19, 1, 70}, kBlocked},
                                     {{2, 19, 5, 1}, kBlocked},
                                     {{1, 19, 1, 1}, 0},
                                     {{19, 1, 1}, 0},
                                     {{1}, 0},
                                     {{1, 1, 1, 1}, 0}};
  KernelSpan plain_kernels = binary_kernels();
  for (const KernelSpan& more : {variadic_kernels(), pow_kernels()}) {
    plain_kernels.insert(plain_kernels.end(), more.begin(), more.end());
  }
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Sum", "Pow"}) {
      const KernelDef& def = named(kernels, "binary_blocked_f32", op);
      const auto plain_def =
          std::find_if(plain_kernels.begin(), plain_kernels.end(),
                       [&](const KernelDef& d) { return d.op == std::string(op); });
      for (const Other& other : others) {
        for (const bool swapped : {false, true}) {
          if (swapped && op == std::string("PRelu")) continue;
          Argument a = {shape, wild(shape, 1), 0};
          Argument b = {other.shape, wild(other.shape, 2), 0, other.layout == 0};
          const auto node = [&] {
            return swapped ? Node(op, {b, a}, shape, a.layout) : Node(op, {a, b}, shape, a.layout);
          };
          const Floats expected = run(*plain_def, node(), pool);
          a.layout = kBlocked;
          b.layout = other.layout;
          CHECK(equal(run(def, node(), pool), expected));
        }
      }
    }
  });
}

TEST(functions_of_two_tensors_decline_what_they_cannot_broadcast) {
  const KernelSpan kernels = chipdock::plugin::cpu::binary_blocked_kernels();
  const KernelDef& def = named(kernels, "binary_blocked_f32", "Add");
  const Shape shape = {2, 19, 5, 7};
  const auto answer = [&](const Argument& b) {
    return def.supports(Node("Add", {{shape, {}, kBlocked}, b}, shape, kBlocked).view());
  };
  at_every_blocked_level([&](ThreadPool&) {
    CHECK_EQ(answer({shape, {}, kBlocked}), CHIPDOCK_SUPPORTS_YES);
    CHECK_EQ(answer({{2, 1, 5, 7}, {}, kBlocked}), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer({{19, 5, 7}, {}, kBlocked}), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer({{7}, numbers(7, 1), 0, true}), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer({{1, 19, 1, 1}, {}, 0}), CHIPDOCK_SUPPORTS_NO);
  });
}

struct Window {
  const char* op;
  Shape x, kernel, strides, pads, dilations;
  int64_t counts_pads = 0;
};

TEST(pools_agree) {
  using namespace chipdock::plugin::cpu;
  const KernelSpan kernels = pool_blocked_kernels();
  const KernelSpan plain_kernels = pool_kernels();
  const std::vector<Window> windows = {
      {"MaxPool", {2, 19, 11, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {"MaxPool", {1, 16, 12, 10}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
      {"MaxPool", {1, 33, 9, 9}, {3, 2}, {1, 3}, {2, 0, 1, 1}, {2, 1}},
      {"MaxPool", {2, 20, 30}, {5}, {3}, {2, 2}, {1}},
      {"AveragePool", {2, 19, 11, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {"AveragePool", {1, 16, 12, 10}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
      {"AveragePool", {1, 20, 7, 7}, {7, 7}, {1, 1}, {0, 0, 0, 0}, {1, 1}}};
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const Window& w : windows) {
      Shape y = {w.x[0], w.x[1]};
      const size_t axes = w.kernel.size();
      for (size_t i = 0; i < axes; ++i) {
        const int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
        y.push_back((w.x[i + 2] + w.pads[i] + w.pads[axes + i] - span) / w.strides[i] + 1);
      }
      const auto result = [&](const KernelDef& def, uint32_t layout) {
        Node node(w.op, {{w.x, wild(w.x, 1), layout}}, y, layout);
        node.ints("kernel_shape", w.kernel).ints("strides", w.strides).ints("pads", w.pads);
        node.ints("dilations", w.dilations).integer("count_include_pad", w.counts_pads);
        return run(def, node, pool);
      };
      const bool largest = w.op == std::string("MaxPool");
      const char* name = largest ? "max_pool_blocked_f32" : "average_pool_blocked_f32";
      const Floats got = result(named(kernels, name), kBlocked);
      const Floats expected = result(named(plain_kernels, w.op), 0);
      CHECK(largest ? equal(got, expected) : close(got, expected, 1e-6f));
    }
  });
}

TEST(reductions_over_all_pixels_agree_into_either_layout) {
  using namespace chipdock::plugin::cpu;
  const KernelSpan kernels = pool_blocked_kernels();
  const KernelSpan plain_kernels = pool_kernels();
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const Shape& shape : {Shape{2, 19, 7, 7}, Shape{1, 40, 33, 31}, Shape{3, 16, 1, 1}}) {
      const Shape y = {shape[0], shape[1], 1, 1};
      for (const auto& [op, name] : {std::pair{"GlobalAveragePool", "global_average_blocked_f32"},
                                     {"GlobalMaxPool", "global_max_blocked_f32"}}) {
        const Floats x = wild(shape, 1);
        const Floats expected = run(named(plain_kernels, op), Node(op, {{shape, x}}, y, 0), pool);
        for (const uint32_t layout : {0u, kBlocked}) {
          const Node node(op, {{shape, x, kBlocked}}, y, layout);
          CHECK(close(run(named(kernels, name), node, pool), expected, 1e-6f));
        }
      }
      const Floats x = numbers(count_of(shape), 1);
      const Floats expected = run(named(plain_kernels, "GlobalAveragePool"),
                                  Node("GlobalAveragePool", {{shape, x}}, y, 0), pool);
      Node mean("ReduceMean", {{shape, x, kBlocked}}, {shape[0], shape[1]}, 0);
      mean.ints("axes", {-1, 2}).integer("keepdims", 0);
      CHECK(close(run(named(kernels, "mean_blocked_f32"), mean, pool), expected, 1e-6f));
      Node one_axis("ReduceMean", {{shape, x, kBlocked}}, y, 0);
      one_axis.ints("axes", {2});
      CHECK_EQ(named(kernels, "mean_blocked_f32").supports(one_axis.view()), CHIPDOCK_SUPPORTS_NO);
    }
  });
}

TEST(the_nearest_pixel_is_the_same) {
  using namespace chipdock::plugin::cpu;
  const KernelSpan kernels = resize_blocked_kernels();
  const KernelSpan plain_kernels = resize_kernels();
  const Shape shape = {2, 19, 7, 5};
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const Shape& y : {Shape{2, 19, 14, 10}, Shape{2, 19, 3, 11}, Shape{2, 19, 7, 15}}) {
      const Floats scales = {1, 1, static_cast<float>(y[2]) / 7, static_cast<float>(y[3]) / 5};
      const auto node = [&](uint32_t layout) {
        return Node("Resize", {{shape, wild(shape, 1), layout}, {}, {{4}, scales, 0, true}}, y,
                    layout);
      };
      for (const char* mode : {"half_pixel", "asymmetric", "align_corners"}) {
        Node plain = node(0), blocks = node(kBlocked);
        for (Node* each : {&plain, &blocks}) {
          each->text("coordinate_transformation_mode", mode).text("nearest_mode", "floor");
        }
        const Floats expected = run(named(plain_kernels, "resize_nearest_f32"), plain, pool);
        CHECK(equal(run(kernels[0], blocks, pool), expected));
      }
      Node linear = node(kBlocked);
      linear.text("mode", "linear");
      CHECK_EQ(kernels[0].supports(linear.view()), CHIPDOCK_SUPPORTS_NO);
    }
  });
}

TEST(zeros_go_around_pixels_and_behind_channels) {
  const KernelSpan kernels = chipdock::plugin::cpu::pad_blocked_kernels();
  const Shape shape = {2, 19, 5, 7};
  const Floats x = wild(shape, 1);
  const auto node = [&](const Shape& pads, Shape y) {
    Node made("Pad", {{shape, x, kBlocked}}, std::move(y), kBlocked, 2);
    made.ints("pads", pads);
    return made;
  };
  at_every_blocked_level([&](ThreadPool& pool) {
    for (const Shape& pads : {Shape{0, 0, 1, 2, 0, 0, 3, 0}, Shape{0, 0, 0, 0, 0, 30, 0, 0},
                              Shape{0, 0, 0, 1, 0, 2, 1, 1}}) {
      Shape y = shape;
      for (size_t i = 0; i < 4; ++i) y[i] += pads[i] + pads[i + 4];
      Floats expected(static_cast<size_t>(count_of(y)), 0.0f);
      size_t at = 0;
      for (int64_t n = 0; n < shape[0]; ++n) {
        for (int64_t c = 0; c < shape[1]; ++c) {
          for (int64_t h = 0; h < shape[2]; ++h) {
            for (int64_t w = 0; w < shape[3]; ++w, ++at) {
              const int64_t to = ((n * y[1] + c) * y[2] + h + pads[2]) * y[3] + w + pads[3];
              expected[static_cast<size_t>(to)] = x[at];
            }
          }
        }
      }
      CHECK(equal(run(kernels[0], node(pads, y), pool), expected));
    }
    const auto answer = [&](const Shape& pads) {
      return kernels[0].supports(node(pads, shape).view());
    };
    CHECK_EQ(answer({0, 1, 0, 0, 0, 0, 0, 0}), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer({0, 0, -1, 0, 0, 0, 0, 0}), CHIPDOCK_SUPPORTS_NO);
    CHECK_EQ(answer({1, 0, 0, 0, 0, 0, 0, 0}), CHIPDOCK_SUPPORTS_NO);
  });
}

TEST(concat_joins_any_number_of_channels) {
  using namespace chipdock::plugin::cpu;
  const KernelSpan kernels = concat_blocked_kernels();
  const KernelSpan plain_kernels = concat_kernels();
  at_every_blocked_level([&](ThreadPool& pool) {
    const auto node = [&](const Shape& channels, uint32_t layout) {
      std::vector<Argument> inputs;
      Shape y = {2, 0, 5, 3};
      for (const int64_t c : channels) {
        const Shape shape = {2, c, 5, 3};
        inputs.push_back({shape, wild(shape, static_cast<uint32_t>(c)), layout});
        y[1] += c;
      }
      return Node("Concat", std::move(inputs), y, layout);
    };
    for (const Shape& channels :
         {Shape{16, 48}, Shape{32, 16, 19}, Shape{24, 24, 24, 24}, Shape{19, 16, 3}}) {
      const Floats expected = run(named(plain_kernels, "Concat"), node(channels, 0), pool);
      CHECK(equal(run(kernels[0], node(channels, kBlocked), pool), expected));
    }
    CHECK_EQ(kernels[0].supports(node({19, 16}, 0).view()), CHIPDOCK_SUPPORTS_NO);
  });
}

}  // namespace
