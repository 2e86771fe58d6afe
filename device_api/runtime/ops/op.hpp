// SPDX-License-Identifier: Apache-2.0
// What the host itself knows of an operator: concrete shapes, which inputs steer shapes and so live
// on the host, and whether it is a view. One file ops/<family>.cpp per operator family, found by
// the build through its name; it ends with `std::vector<Op> <family>_ops();`. Kernels live in
// plugins.
#ifndef CHIPDOCK_RUNTIME_OPS_OP_HPP_
#define CHIPDOCK_RUNTIME_OPS_OP_HPP_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chipdock/plugin_kit.hpp"

namespace chipdock::runtime {

using Dims = std::vector<int64_t>;

/// One input as a shape function sees it. All dims are known.
struct ShapeInput {
  bool given = false;
  chipdock_dtype dtype{};
  Dims dims;
  /// Elements in host memory if known at this point, else NULL. Always set for inputs in
  /// host_inputs.
  const void* data = nullptr;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
};

/// One output that a shape function describes.
struct ShapeOutput {
  chipdock_dtype dtype{};  ///< Preset from the model; the function may set it.
  Dims dims;               ///< The upper bound if the operator is data-dependent.
  bool described = false;  ///< The function said what it is: the operator has such an output.
};

/// The question put to a shape function: node and inputs in, outputs out.
class ShapeContext {
 public:
  ShapeContext(const chipdock_node& node, const std::vector<ShapeInput>& inputs,
               std::vector<ShapeOutput>& outputs)
      : node_(node), inputs_(inputs), outputs_(outputs) {}

  const kit::NodeView& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i].given; }
  /// Throws INVALID_ARGUMENT if the input is not given.
  const ShapeInput& input(size_t i) const {
    kit::require(has_input(i), node_.op(), " needs input ", i);
    return inputs_[i];
  }
  /// Elements of an int64 or int32 host input, widened.
  std::vector<int64_t> integers(size_t i) const;
  /// Elements of a float32, float64, float16 or bfloat16 host input, widened.
  std::vector<double> numbers(size_t i) const;
  /// Describes output i; does nothing if the model does not ask for that output.
  void set(size_t i, Dims dims) {
    if (i >= outputs_.size()) return;
    outputs_[i].dims = std::move(dims);
    outputs_[i].described = true;
  }
  void set(size_t i, Dims dims, chipdock_dtype dtype) {
    set(i, std::move(dims));
    if (i < outputs_.size()) outputs_[i].dtype = dtype;
  }

 private:
  kit::NodeView node_;
  const std::vector<ShapeInput>& inputs_;
  std::vector<ShapeOutput>& outputs_;
};

/// `Op.flags`.
enum OpFlags : uint32_t {
  kOpView = 1 << 0,  ///< Output 0 is input 0 with another shape: costs nothing on any device.
  kOpShapeOnly = 1
      << 1,  ///< Output follows from input shapes alone (Shape, Size): run by the host.
  kOpDataDependent = 1 << 2,  ///< Shape function gives an upper bound; the kernel writes extents.
  kOpRandom = 1 << 3,         ///< Never folded; draws numbers from the run's seed.
  kOpHostOnly = 1 << 4        ///< Control flow, sequences, optionals, strings: never on a device.
};

/// One operator over a range of since versions.
struct Op {
  const char* name;
  int32_t since;      ///< Oldest since version this entry serves.
  int32_t until = 0;  ///< Newest; 0 = all later ones.
  /// Fills the outputs or throws kit::Failure INVALID_ARGUMENT naming what does not fit.
  void (*shape)(ShapeContext& context) = nullptr;
  uint64_t host_inputs = 0;  ///< Bit k: input k steers shapes and is read by the host.
  uint32_t flags = 0;
  const char* domain = "";
};

/// Finds the entry for a node, or NULL. `since_version` is that of the schema in force.
const Op* find_op(std::string_view domain, std::string_view name, int32_t since_version);

/// Every (domain, name, since, until), for `chipdock info --ops` and tests.
const std::vector<Op>& all_ops();

/// Numpy broadcasting of two or more shapes; throws INVALID_ARGUMENT naming both.
Dims broadcast(const Dims& a, const Dims& b, std::string_view op);

/// Product with overflow check: INVALID_ARGUMENT if it passes 2^62 elements or a dim is negative.
int64_t checked_size(const Dims& dims, std::string_view op);

std::string to_string(const Dims& dims);

/// Product of the extents, without a check.
inline int64_t element_count(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

/// Bit `index` of a mask of inputs or outputs, such as Op.host_inputs; arguments from 64 on have
/// none.
inline bool has_bit(uint64_t mask, size_t index) {
  return index < 64 && ((mask >> index) & 1) != 0;
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_OPS_OP_HPP_
