// SPDX-License-Identifier: Apache-2.0
// The model as the executor gets it: values by number, nodes in execution order, attributes as the
// ABI's tagged structs. Built by the Python layer (or any embedder); checked there for cycles and
// names.
#ifndef CHIPDOCK_RUNTIME_EXEC_GRAPH_IR_HPP_
#define CHIPDOCK_RUNTIME_EXEC_GRAPH_IR_HPP_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/host_object.hpp"
#include "ops/op.hpp"

namespace chipdock::runtime {

/// Attributes of one node, owned, in the form that crosses the ABI. Immutable once the node is
/// built: copies of a node share them.
class Attributes {
 public:
  void add_integer(const std::string& name, int64_t value);
  void add_number(const std::string& name, double value);
  void add_text(const std::string& name, const std::string& value);
  void add_integers(const std::string& name, std::vector<int64_t> values);
  void add_numbers(const std::string& name, std::vector<double> values);
  void add_texts(const std::string& name, const std::vector<std::string>& values);
  /// Copies `bytes` bytes of elements.
  void add_tensor(const std::string& name, chipdock_dtype dtype, Dims dims, const void* data,
                  uint64_t bytes);

  uint32_t count() const { return static_cast<uint32_t>(held_->pointers.size()); }
  const chipdock_attribute* const* data() const { return held_->pointers.data(); }

 private:
  chipdock_attribute& add(const std::string& name, int32_t kind);
  struct TensorValue {
    chipdock_tensor tensor{};
    Dims dims;
    std::unique_ptr<char[]> bytes;
  };
  struct Held {
    std::deque<chipdock_attribute> attributes;
    std::vector<const chipdock_attribute*> pointers;
    std::deque<std::string> strings;
    std::deque<std::vector<int64_t>> integers;
    std::deque<std::vector<double>> numbers;
    std::deque<std::vector<const char*>> texts;
    std::deque<TensorValue> tensors;
  };
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

struct IrValue {
  std::string name;
  chipdock_dtype dtype{};
  int32_t rank = -1;                 ///< -1 = unknown; advice for kernel choice only.
  Dims dims;                         ///< rank extents, -1 = unknown.
  std::vector<std::string> symbols;  ///< Of a model's input: names of its dims, "" = none.
  uint32_t layout = 0;               ///< As chipdock_tensor.layout; set by PlanCompiler alone.
};

/// A value that never changes. `data` stays valid as long as `keep` lives.
struct IrConstant {
  chipdock_dtype dtype{};
  Dims dims;
  std::shared_ptr<const HostObject> object;  ///< Of a tensor of strings; it has no `data`.
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> keep;
};

struct IrGraph;

/// A body of If, Loop or Scan, and which outer values it reads by name.
struct IrSubgraph {
  std::string attribute;
  std::shared_ptr<IrGraph> graph;
  std::vector<std::pair<int32_t, int32_t>> captures;  ///< (outer value, inner value)
};

struct IrNode {
  std::string name, domain, op;
  int32_t since_version = 1;
  Attributes attributes;
  std::vector<int32_t> inputs;   ///< Value numbers, -1 = not given.
  std::vector<int32_t> outputs;  ///< Value numbers, -1 = not wanted.
  std::vector<IrSubgraph> subgraphs;
  /// Nodes that compute the same, in execution order; taken if no kernel accepts this one.
  std::vector<std::shared_ptr<IrNode>> stands_for;
};

struct IrGraph {
  std::string name;
  std::vector<IrValue> values;
  std::vector<std::shared_ptr<IrNode>> nodes;  ///< In execution order.
  std::vector<int32_t> inputs,
      outputs;  ///< Captured values of a body are inputs behind the formal ones.
  std::map<int32_t, IrConstant> constants;

  /// Makes the last node stand for the nodes from `first` on that come before it.
  void stand_for(size_t first);
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_GRAPH_IR_HPP_
