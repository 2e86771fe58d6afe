// SPDX-License-Identifier: Apache-2.0
// The residual of FusedConv and FusedMatMul may be the output's own memory: each way to compute
// them gives the same bits as with the residual apart, at every ISA level and on two threads.
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "chipdock/plugin_kit.hpp"
#include "isa.hpp"
#include "kernel.hpp"
#include "onednn.hpp"

namespace chipdock::plugin::cpu {
KernelSpan conv_kernels();
KernelSpan conv_onednn_kernels();
KernelSpan matmul_kernels();
}  // namespace chipdock::plugin::cpu

namespace {

using namespace chipdock::plugin::cpu;
namespace kit = chipdock::kit;
using Shape = std::vector<int64_t>;

/// Numbers in [-1, 1) that look random; a second call with the same seed gives the same.
std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
  }
  return out;
}

/// A node with attributes, all float.
class Node {
 public:
  Node(const char* op, std::vector<std::pair<const char*, Shape>> lists, int64_t group)
      : lists_(std::move(lists)) {
    for (const auto& [name, values] : lists_) {
      chipdock_attribute& made = add(name, CHIPDOCK_ATTRIBUTE_INTS);
      made.integers = values.data();
      made.count = values.size();
    }
    if (group > 1) add("group", CHIPDOCK_ATTRIBUTE_INT).integer = group;
    chipdock_attribute& activation = add("activation", CHIPDOCK_ATTRIBUTE_STRING);
    activation.text = "HardSwish";
    activation.count = 9;
    for (const chipdock_attribute& a : attributes_) pointers_.push_back(&a);
    node_.struct_size = sizeof(node_);
    node_.domain = "ai.chipdock";
    node_.op = op;
    node_.since_version = 1;
    node_.attribute_count = static_cast<uint32_t>(pointers_.size());
    node_.attributes = pointers_.data();
  }
  kit::NodeView view() const { return kit::NodeView(node_); }

 private:
  chipdock_attribute& add(const char* name, int32_t kind) {
    attributes_.reserve(8);
    chipdock_attribute& made = attributes_.emplace_back();
    made.struct_size = sizeof(made);
    made.name = name;
    made.kind = kind;
    return made;
  }
  std::vector<std::pair<const char*, Shape>> lists_;
  std::vector<chipdock_attribute> attributes_;
  std::vector<const chipdock_attribute*> pointers_;
  chipdock_node node_{};
};

/// What the kernel makes of fixed numbers; `in_place`: Z is Y.
std::vector<float> result(const KernelDef& def, const Node& node, const std::vector<Shape>& shapes,
                          bool in_place, ThreadPool& pool) {
  const auto kernel = def.create(node.view());
  std::vector<std::vector<float>> values;
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back({kit::kFloat32, static_cast<int32_t>(shape.size()), shape.data(), nullptr});
    values.push_back(numbers(tensors.back().size(), static_cast<uint32_t>(values.size()) + 1));
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
  std::vector<float> apart(in_place ? 0 : values[3].size(), 7.0f);
  std::vector<float>& y = in_place ? values[3] : apart;
  Tensor output = tensors[3];
  output.data = y.data();
  const Tensor* const inputs[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
  const Tensor* const outputs[] = {&output};
  Context context;
  context.input_count = 4;
  context.output_count = 1;
  context.inputs = inputs;
  context.outputs = outputs;
  context.pool = &pool;
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> workspace(kernel->workspace(context) / sizeof(Line) + 1);
  context.workspace = workspace.data();
  kernel->run(context);
  return y;
}

void check_in_place(const KernelDef& def, const Node& node, const std::vector<Shape>& shapes) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    const auto apart = result(def, node, shapes, false, pool);
    CHECK(apart == result(def, node, shapes, true, pool));
    bool used = false;
    for (const float value : apart) used = used || value != 0.0f;
    CHECK(used);
  }
}

const KernelDef& named(const KernelSpan& span, const std::string& name) {
  for (const KernelDef& def : span) {
    if (def.name == name) return def;
  }
  kit::fail(CHIPDOCK_INTERNAL, name);
}

template <class Body>
void at_every_level(const Body& body) {
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > detected_isa()) continue;  // Not compiled in, or not for this machine.
    const IsaHold hold(isa);
    body();
  }
}

TEST(conv_by_patches_takes_its_residual_from_its_output) {
  at_every_level([] {
    const KernelSpan span = conv_kernels();
    const KernelDef& def = named(span, "fused_conv_f32");
    const Node window("FusedConv", {{"pads", {1, 1, 1, 1}}}, 1);
    check_in_place(def, window, {{2, 5, 13, 40}, {37, 5, 3, 3}, {37}, {2, 37, 13, 40}});
    const Node plain("FusedConv", {}, 2);  // A sum longer than one slice.
    check_in_place(def, plain, {{1, 2200, 3, 5}, {34, 1100, 1, 1}, {34}, {1, 34, 3, 5}});
  });
}

TEST(conv_by_planes_takes_its_residual_from_its_output) {
  at_every_level([] {
    const KernelSpan span = conv_kernels();
    const KernelDef& def = named(span, "fused_conv_f32");
    const Node node("FusedConv", {{"pads", {1, 1, 1, 1}}}, 3);
    check_in_place(def, node, {{2, 3, 701, 30}, {3, 1, 3, 3}, {3}, {2, 3, 701, 30}});
    check_in_place(def, node, {{1, 3, 11, 7}, {6, 1, 3, 3}, {6}, {1, 6, 11, 7}});
  });
}

TEST(conv_by_onednn_takes_its_residual_from_its_output) {
  if (!onednn::available()) return;  // Not built in, or held to another level.
  const KernelSpan span = conv_onednn_kernels();
  const KernelDef& def = named(span, "fused_conv_onednn_f32");
  const Node node("FusedConv", {{"pads", {1, 1, 1, 1}}}, 1);
  check_in_place(def, node, {{2, 3, 20, 23}, {16, 3, 3, 3}, {16}, {2, 16, 20, 23}});
}

TEST(matmul_takes_its_residual_from_its_output) {
  at_every_level([] {
    const KernelSpan span = matmul_kernels();
    const KernelDef& def = named(span, "fused_matmul_f32");
    const Node node("FusedMatMul", {}, 1);
    check_in_place(def, node, {{2, 31, 1100}, {1100, 33}, {33}, {2, 31, 33}});
    check_in_place(def, node, {{3, 1, 17, 8}, {2, 8, 70}, {70}, {3, 2, 17, 70}});
  });
}

}  // namespace
