// SPDX-License-Identifier: Apache-2.0
// Ownership of attributes: deques keep the addresses that the ABI structs point to.
#include "exec/graph_ir.hpp"

#include <cstring>

#include "chipdock/plugin_kit.hpp"

namespace chipdock::runtime {

chipdock_attribute& Attributes::add(const std::string& name, int32_t kind) {
  held_->strings.push_back(name);
  chipdock_attribute& attribute = held_->attributes.emplace_back();
  attribute.struct_size = sizeof(chipdock_attribute);
  attribute.kind = kind;
  attribute.name = held_->strings.back().c_str();
  held_->pointers.push_back(&attribute);
  return attribute;
}

void Attributes::add_integer(const std::string& name, int64_t value) {
  add(name, CHIPDOCK_ATTRIBUTE_INT).integer = value;
}

void Attributes::add_number(const std::string& name, double value) {
  add(name, CHIPDOCK_ATTRIBUTE_FLOAT).number = value;
}

void Attributes::add_text(const std::string& name, const std::string& value) {
  chipdock_attribute& attribute = add(name, CHIPDOCK_ATTRIBUTE_STRING);
  held_->strings.push_back(value);
  attribute.text = held_->strings.back().c_str();
  attribute.count = value.size();
}

void Attributes::add_integers(const std::string& name, std::vector<int64_t> values) {
  chipdock_attribute& attribute = add(name, CHIPDOCK_ATTRIBUTE_INTS);
  held_->integers.push_back(std::move(values));
  attribute.integers = held_->integers.back().data();
  attribute.count = held_->integers.back().size();
}

void Attributes::add_numbers(const std::string& name, std::vector<double> values) {
  chipdock_attribute& attribute = add(name, CHIPDOCK_ATTRIBUTE_FLOATS);
  held_->numbers.push_back(std::move(values));
  attribute.numbers = held_->numbers.back().data();
  attribute.count = held_->numbers.back().size();
}

void Attributes::add_texts(const std::string& name, const std::vector<std::string>& values) {
  chipdock_attribute& attribute = add(name, CHIPDOCK_ATTRIBUTE_STRINGS);
  std::vector<const char*>& list = held_->texts.emplace_back();
  for (const std::string& value : values) {
    held_->strings.push_back(value);
    list.push_back(held_->strings.back().c_str());
  }
  attribute.texts = list.data();
  attribute.count = list.size();
}

void Attributes::add_tensor(const std::string& name, chipdock_dtype dtype, Dims dims,
                            const void* data, uint64_t bytes) {
  chipdock_attribute& attribute = add(name, CHIPDOCK_ATTRIBUTE_TENSOR);
  TensorValue& value = held_->tensors.emplace_back();
  value.dims = std::move(dims);
  value.bytes = std::make_unique<char[]>(bytes + 1);
  if (bytes > 0) std::memcpy(value.bytes.get(), data, bytes);
  value.tensor.struct_size = sizeof(chipdock_tensor);
  value.tensor.dtype = dtype;
  value.tensor.rank = static_cast<int32_t>(value.dims.size());
  value.tensor.shape = value.dims.data();
  value.tensor.host = value.bytes.get();
  attribute.tensor = &value.tensor;
}

void IrGraph::stand_for(size_t first) {
  kit::require(first < nodes.size(), "stand_for(", first, ") of a graph of ", nodes.size(),
               " nodes");
  const auto begin = nodes.begin() + static_cast<ptrdiff_t>(first);
  const std::shared_ptr<IrNode> last = nodes.back();
  last->stands_for.assign(begin, nodes.end() - 1);
  nodes.erase(begin, nodes.end() - 1);
}

}  // namespace chipdock::runtime
