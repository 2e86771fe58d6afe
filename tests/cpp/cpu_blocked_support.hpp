// SPDX-License-Identifier: Apache-2.0
// What the test_cpu_blocked*.cpp files share: nodes with layouts, kernels run by hand, and the
// blocked layout written out independently of the plugin's own reorder.
#ifndef CHIPDOCK_TESTS_CPP_CPU_BLOCKED_SUPPORT_HPP_
#define CHIPDOCK_TESTS_CPP_CPU_BLOCKED_SUPPORT_HPP_

#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "blocked.hpp"
#include "check.hpp"
#include "isa.hpp"
#include "kernel.hpp"

namespace chipdock::cpu_test {

using namespace chipdock::plugin::cpu;
using Shape = std::vector<int64_t>;
using Floats = std::vector<float>;

inline int64_t count_of(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

/// Numbers in [-1, 1) that look random; a second call with the same seed gives the same.
inline Floats numbers(int64_t count, uint32_t seed) {
  Floats out(static_cast<size_t>(count));
  for (float& value : out) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / 8388608.0f - 1.0f;
  }
  return out;
}

/// Where element (n, c, pixel) of a tensor lies in blocks.
inline size_t blocked_index(const Shape& shape, int64_t n, int64_t c, int64_t pixel) {
  const int64_t b = channel_block();
  const int64_t blocks = (shape[1] + b - 1) / b;
  const int64_t pixels = count_of(shape) / shape[0] / shape[1];
  return static_cast<size_t>(((n * blocks + c / b) * pixels + pixel) * b + c % b);
}

template <class Body>
void each_element(const Shape& shape, const Body& body) {
  const int64_t pixels = count_of(shape) / shape[0] / shape[1];
  size_t at = 0;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t p = 0; p < pixels; ++p) body(at++, blocked_index(shape, n, c, p));
    }
  }
}

inline Floats blocked(const Shape& shape, const Floats& plain) {
  const uint64_t bytes =
      layout_bytes(kBlocked, kit::kFloat32, static_cast<int32_t>(shape.size()), shape.data());
  Floats out(bytes / sizeof(float), 0.0f);
  each_element(shape, [&](size_t from, size_t to) { out[to] = plain[from]; });
  return out;
}
/// And back; lanes without a channel must be zero.
inline Floats plain(const Shape& shape, Floats from) {
  Floats out(static_cast<size_t>(count_of(shape)));
  each_element(shape, [&](size_t to, size_t at) {
    out[to] = from[at];
    from[at] = 0;
  });
  bool clean = true;
  for (const float value : from) clean = clean && value == 0;
  CHECK(clean);
  return out;
}

/// One argument of a node.
struct Argument {
  Shape shape;
  Floats data = {};  ///< Row-major, empty for an output or an argument that is not given.
  uint32_t layout = 0;
  bool constant = false;
};

/// A node of float tensors, with its attributes.
class Node {
 public:
  Node(const char* op, std::vector<Argument> inputs, Shape output, uint32_t output_layout,
       int32_t since = 20)
      : inputs_(std::move(inputs)), output_{std::move(output), {}, output_layout} {
    node_.struct_size = sizeof(node_);
    node_.domain = "";
    node_.op = op;
    node_.since_version = since;
    for (const Argument& a : inputs_) input_values_.push_back(a.shape.empty() ? nullptr : value(a));
    output_values_.push_back(value(output_));
    node_.input_count = static_cast<uint32_t>(input_values_.size());
    node_.output_count = 1;
    node_.inputs = input_values_.data();
    node_.outputs = output_values_.data();
  }
  Node& ints(const char* name, Shape values) {
    const Shape& kept = lists_.emplace_back(std::move(values));
    chipdock_attribute& made = add(name, CHIPDOCK_ATTRIBUTE_INTS);
    made.integers = kept.data();
    made.count = kept.size();
    return *this;
  }
  Node& integer(const char* name, int64_t number) {
    add(name, CHIPDOCK_ATTRIBUTE_INT).integer = number;
    return *this;
  }
  Node& number(const char* name, double number) {
    add(name, CHIPDOCK_ATTRIBUTE_FLOAT).number = number;
    return *this;
  }
  Node& text(const char* name, const char* text) {
    chipdock_attribute& made = add(name, CHIPDOCK_ATTRIBUTE_STRING);
    made.text = text;
    made.count = std::string(text).size();
    return *this;
  }
  kit::NodeView view() const { return kit::NodeView(node_); }
  const std::vector<Argument>& inputs() const { return inputs_; }
  const Argument& output() const { return output_; }

 private:
  const chipdock_value* value(const Argument& a) {
    chipdock_value& made = values_.emplace_back();
    made.struct_size = sizeof(made);
    made.dtype = kit::kFloat32;
    made.rank = static_cast<int32_t>(a.shape.size());
    made.dims = a.shape.data();
    made.layout = a.layout;
    if (a.constant) {
      made.constant = a.data.data();
      made.constant_size = a.data.size() * sizeof(float);
    }
    return &made;
  }
  chipdock_attribute& add(const char* name, int32_t kind) {
    chipdock_attribute& made = attributes_.emplace_back();
    made.struct_size = sizeof(made);
    made.name = name;
    made.kind = kind;
    pointers_.push_back(&made);
    node_.attribute_count = static_cast<uint32_t>(pointers_.size());
    node_.attributes = pointers_.data();
    return made;
  }

  const std::vector<Argument> inputs_;
  const Argument output_;
  std::deque<Shape> lists_;
  std::deque<chipdock_value> values_;
  std::deque<chipdock_attribute> attributes_;
  std::vector<const chipdock_attribute*> pointers_;
  std::vector<const chipdock_value*> input_values_, output_values_;
  chipdock_node node_{};
};

/// What the kernel makes of the node, row-major. `packs`: constants are packed first.
inline Floats run(const KernelDef& def, const Node& node, ThreadPool& pool, bool packs = false) {
  CHECK(def.supports == nullptr || def.supports(node.view()) == CHIPDOCK_SUPPORTS_YES);
  const auto kernel = def.create(node.view());
  struct alignas(64) Line {
    char bytes[64];
  };
  std::deque<Floats> stored;
  std::deque<Tensor> tensors;
  std::vector<const Tensor*> inputs;
  std::vector<std::vector<Line>> packed(node.inputs().size());
  std::vector<void*> addresses;
  for (const Argument& a : node.inputs()) {
    addresses.push_back(nullptr);
    inputs.push_back(nullptr);
    if (a.shape.empty()) continue;
    stored.push_back(a.layout == kBlocked ? blocked(a.shape, a.data) : a.data);
    tensors.push_back({kit::kFloat32, static_cast<int32_t>(a.shape.size()), a.shape.data(),
                       stored.back().data(), a.layout});
    inputs.back() = &tensors.back();
    chipdock_prepack_info info{};
    const auto index = static_cast<uint32_t>(inputs.size() - 1);
    if (a.constant && packs) kernel->prepack_info(index, *node.view().input(index), info);
    if (info.size == 0) continue;
    packed[index].resize(info.size / sizeof(Line) + 1);
    kernel->prepack(index, tensors.back(), packed[index].data());
    addresses.back() = packed[index].data();
  }
  const Shape& shape = node.output().shape;
  Tensor y = {kit::kFloat32, static_cast<int32_t>(shape.size()), shape.data(), nullptr,
              node.output().layout};
  Floats result(y.bytes() / sizeof(float), std::nanf(""));
  y.data = result.data();
  const Tensor* const outputs[] = {&y};
  Context context;
  context.input_count = static_cast<uint32_t>(inputs.size());
  context.output_count = 1;
  context.inputs = inputs.data();
  context.outputs = outputs;
  context.packed = packs ? addresses.data() : nullptr;
  context.pool = &pool;
  std::vector<Line> workspace(kernel->workspace(context) / sizeof(Line) + 1);
  context.workspace = workspace.data();
  kernel->run(context);
  return y.layout == kBlocked ? plain(shape, result) : result;
}

inline const KernelDef& named(const KernelSpan& span, const std::string& name,
                              const std::string& op = "") {
  for (const KernelDef& def : span) {
    if ((def.name != nullptr ? def.name : def.op) == name && (op.empty() || op == def.op)) {
      return def;
    }
  }
  kit::fail(CHIPDOCK_INTERNAL, name);
}

/// Equal bits, NaN with NaN.
inline bool equal(const Floats& a, const Floats& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
  }
  return same;
}
/// Equal to `bound`, NaN and infinities to their kind.
inline bool close(const Floats& a, const Floats& b, float bound) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i] == b[i] || std::fabs(a[i] - b[i]) <= bound ||
           (!std::isfinite(a[i]) && !std::isfinite(b[i]));
  }
  return same;
}

/// At each level that has blocks, on one thread and on two.
template <class Body>
void at_every_blocked_level(const Body& body) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (isa > detected_isa()) continue;  // Not compiled in, or not for this machine.
    const IsaHold hold(isa);
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      body(pool);
    }
  }
}

}  // namespace chipdock::cpu_test

#endif  // CHIPDOCK_TESTS_CPP_CPU_BLOCKED_SUPPORT_HPP_
