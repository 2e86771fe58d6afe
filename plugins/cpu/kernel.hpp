// SPDX-License-Identifier: Apache-2.0
// What the author of a CPU operator sees: tensors as plain pointers, one virtual run(), one line to
// register. kernel.cpp turns it into the ABI's kernel table; a file in ops/ never touches the ABI.
//
// A file ops/<family>.cpp holds the kernels of one operator family and ends with
//   KernelSpan <family>_kernels();
// The build finds it by its name: adding an operator touches that one file.
#ifndef CHIPDOCK_PLUGIN_CPU_KERNEL_HPP_
#define CHIPDOCK_PLUGIN_CPU_KERNEL_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "chipdock/plugin_kit.hpp"
#include "thread_pool.hpp"

namespace chipdock::plugin::cpu {

/// A tensor in host memory, dense and row-major unless the kernel offers another layout. `data` may
/// be NULL if it has no elements.
struct Tensor {
  chipdock_dtype dtype{};
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  void* data = nullptr;
  uint32_t layout = 0;  ///< See blocked.hpp.

  int64_t dim(int64_t axis) const { return shape[axis]; }
  int64_t size() const {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  /// Product of shape[begin, end).
  int64_t size(int64_t begin, int64_t end) const {
    int64_t n = 1;
    for (int64_t i = begin; i < end; ++i) n *= shape[i];
    return n;
  }
  uint64_t bytes() const;  ///< In its layout.
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  template <class T>
  T* mut() const {
    return static_cast<T*>(data);
  }
};

/// One launch. Pointers are valid until run() returns.
class Context {
 public:
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  const Tensor* const* inputs = nullptr;   ///< NULL entry: optional input not given.
  const Tensor* const* outputs = nullptr;  ///< NULL entry: output not wanted.
  void* const* packed = nullptr;      ///< NULL, or a packed form per input (NULL if not packed).
  int64_t* const* extents = nullptr;  ///< NULL, or where to write true extents per output. [KRN-13]
  void* workspace = nullptr;          ///< 64-byte aligned, as many bytes as workspace() asked for.
  ThreadPool* pool = nullptr;
  int max_threads = 0;
  uint64_t seed = 0;
  uint64_t seed_offset = 0;
  bool deterministic = false;

  bool has_input(uint32_t i) const { return i < input_count && inputs[i] != nullptr; }
  bool has_output(uint32_t i) const { return i < output_count && outputs[i] != nullptr; }
  const Tensor& input(uint32_t i) const {
    kit::require(has_input(i), "input ", i, " is missing");
    return *inputs[i];
  }
  const Tensor& output(uint32_t i) const {
    kit::require(has_output(i), "output ", i, " is missing");
    return *outputs[i];
  }
  const void* packed_input(uint32_t i) const { return packed != nullptr ? packed[i] : nullptr; }
  /// Runs body(begin, end) over slices of at least `grain` items; see ThreadPool.
  void parallel_for(int64_t count, int64_t grain, RangeFunction body) const {
    pool->parallel_for(count, grain, max_threads, body);
  }
};

/// One operator with its attributes. Immutable after construction; run() is called from many
/// threads.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Computes all wanted outputs. Throws kit::Failure on shapes the operator forbids.
  virtual void run(const Context& context) const = 0;
  /// Scratch bytes of a launch with these shapes (data pointers are NULL).
  virtual uint64_t workspace(const Context&) const { return 0; }
  /// Asks for a packed form of constant `input`: set size, layout (name), keep_source.
  virtual void prepack_info(uint32_t /*input*/, const chipdock_value& /*value*/,
                            chipdock_prepack_info& /*info*/) const {}
  /// Writes the packed form that prepack_info asked for.
  virtual void prepack(uint32_t /*input*/, const Tensor& /*source*/, void* /*target*/) const {}
};

/// dtypes that one argument may have; see chipdock_dtype_rule.
struct DtypeRule {
  int32_t argument;  ///< Input k as k, output k as -1-k; the last of a side serves what follows.
  std::vector<chipdock_dtype> dtypes;
};

/// Layouts beside 0 that one argument may have; see chipdock_layout_rule.
struct LayoutRule {
  int32_t argument;  ///< As in DtypeRule.
  std::vector<uint32_t> layouts;
};

/// Registration of one kernel.
struct KernelDef {
  const char* op;
  int32_t since;      ///< Oldest since version of the operator that it computes.
  int32_t until = 0;  ///< Newest; 0 = all later ones.
  std::unique_ptr<Kernel> (*create)(const kit::NodeView& node) = nullptr;
  std::vector<DtypeRule> dtypes = {};
  const char* domain = "";
  const char* name = nullptr;                                ///< NULL: the operator's name.
  int32_t (*supports)(const kit::NodeView& node) = nullptr;  ///< NULL: YES.
  double (*score)(const kit::NodeView& node) = nullptr;      ///< NULL: 0.
  uint64_t host_inputs = 0;                                  ///< Beyond the operator's own.
  std::vector<std::pair<uint32_t, uint32_t>> aliases = {};   ///< (input, output) in place.
  std::vector<LayoutRule> layouts = {};                      ///< None: layout 0 alone.
  uint32_t flags = CHIPDOCK_KERNEL_CAPTURABLE | CHIPDOCK_KERNEL_DETERMINISTIC;
};

/// The kernels of one family. Made once per device, so that nothing is static with a destructor.
using KernelSpan = std::vector<KernelDef>;

/// `create` for a kernel class that is constructed from the node.
template <class K>
std::unique_ptr<Kernel> make(const kit::NodeView& node) {
  return std::make_unique<K>(node);
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_KERNEL_HPP_
