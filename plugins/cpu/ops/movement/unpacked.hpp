// SPDX-License-Identifier: Apache-2.0
// Elements below a byte for kernels that move whole bytes: unpacked one to a byte before, packed
// again after.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_UNPACKED_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_UNPACKED_HPP_

#include <cstring>
#include <vector>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

inline bool is_packed(chipdock_dtype type) { return type.bits < 8; }

/// `supports` of Unpacked kernels.
inline int32_t moves_packed(const kit::NodeView& node) {
  return node.has_input(0) && is_packed(node.input(0)->dtype) ? CHIPDOCK_SUPPORTS_YES
                                                              : CHIPDOCK_SUPPORTS_NO;
}

/// K with every packed tensor of a launch as one of uint8.
template <class K>
class Unpacked final : public Kernel {
 public:
  explicit Unpacked(const kit::NodeView& node) : inner_(node) {}

  void run(const Context& context) const override {
    Side inputs(context.inputs, context.input_count),
        outputs(context.outputs, context.output_count);
    for (uint32_t i = 0; i < context.input_count; ++i) {
      if (inputs.bytes[i].empty()) continue;
      const Tensor& packed = context.input(i);
      for (size_t k = 0; k < static_cast<size_t>(packed.size()); ++k) {
        inputs.bytes[i][k] = kit::packed_element(packed.data, k, packed.dtype.bits);
      }
    }
    Context plain = context;
    plain.inputs = inputs.pointers.data();
    plain.outputs = outputs.pointers.data();
    inner_.run(plain);
    for (uint32_t i = 0; i < context.output_count; ++i) {
      if (outputs.bytes[i].empty()) continue;
      const Tensor& packed = context.output(i);
      std::memset(packed.data, 0, packed.bytes());
      for (size_t k = 0; k < static_cast<size_t>(packed.size()); ++k) {
        kit::pack_element(outputs.bytes[i][k], k, packed.dtype.bits, packed.data);
      }
    }
  }

 private:
  /// The tensors of one side; `bytes` holds those that are packed.
  struct Side {
    Side(const Tensor* const* given, uint32_t count)
        : tensors(count), pointers(count, nullptr), bytes(count) {
      for (uint32_t i = 0; i < count; ++i) {
        if (given[i] == nullptr) continue;
        tensors[i] = *given[i];
        pointers[i] = &tensors[i];
        if (!is_packed(tensors[i].dtype)) continue;
        bytes[i].resize(static_cast<size_t>(tensors[i].size()));
        tensors[i].dtype = kit::kUint8;
        tensors[i].data = bytes[i].data();
      }
    }
    std::vector<Tensor> tensors;
    std::vector<const Tensor*> pointers;
    std::vector<std::vector<uint8_t>> bytes;
  };

  K inner_;
};

/// The registration of K for packed elements, beside that for whole bytes.
template <class K>
KernelDef unpacked(const KernelDef& plain, const char* name) {
  KernelDef def = plain;
  def.create = make<Unpacked<K>>;
  def.supports = moves_packed;
  def.name = name;
  return def;
}

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_MOVEMENT_UNPACKED_HPP_
