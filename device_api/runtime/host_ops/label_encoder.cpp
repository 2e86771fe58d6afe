// SPDX-License-Identifier: Apache-2.0
// LabelEncoder of ai.onnx.ml: a table from strings or numbers to strings or numbers.
#include <cmath>
#include <cstring>
#include <map>

#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

using kit::operator==;

/// A column of the table, or elements of a tensor: strings, whole numbers or floats.
struct Column {
  std::vector<std::string> strings;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
};

template <class T, class To>
void widen(const void* data, int64_t count, std::vector<To>& out) {
  const auto* from = static_cast<const T*>(data);
  out.assign(from, from + count);
}

void read_elements(chipdock_dtype dtype, const void* data, int64_t count, Column& out) {
  if (dtype == kit::kFloat32) return widen<float>(data, count, out.numbers);
  if (dtype == kit::kFloat64) return widen<double>(data, count, out.numbers);
  if (dtype == kit::kInt64) return widen<int64_t>(data, count, out.integers);
  if (dtype == kit::kInt32) return widen<int32_t>(data, count, out.integers);
  if (dtype == kit::kInt16) return widen<int16_t>(data, count, out.integers);
  kit::fail(CHIPDOCK_UNSUPPORTED, "LabelEncoder has no table of ", kit::dtype_name(dtype));
}

Column read_column(const kit::NodeView& node, const std::string& prefix) {
  Column out;
  // A tensor of strings comes as a list of strings.
  for (const std::string& name : {prefix + "_strings", prefix + "_tensor"}) {
    const chipdock_attribute* found = node.find(name);
    if (found != nullptr && found->kind == CHIPDOCK_ATTRIBUTE_STRINGS && found->count > 0)
      out.strings.assign(found->texts, found->texts + found->count);
  }
  if (node.has(prefix + "_int64s")) out.integers = node.integers(prefix + "_int64s");
  if (node.has(prefix + "_floats")) out.numbers = node.numbers(prefix + "_floats");
  const chipdock_attribute* tensor = node.find(prefix + "_tensor");
  if (tensor != nullptr && tensor->kind == CHIPDOCK_ATTRIBUTE_TENSOR) {
    const chipdock_tensor& value = *tensor->tensor;
    const Dims dims(value.shape, value.shape + value.rank);
    read_elements(value.dtype, value.host, element_count(dims), out);
  }
  return out;
}

/// One number for all NaNs, which the table may have as a key.
std::string key_of(double value) {
  if (std::isnan(value)) return "nan";
  if (value == 0) value = 0;  // -0 as well
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string key_of(int64_t value) { return std::to_string(value); }

std::vector<std::string> keys_of(const Column& column) {
  std::vector<std::string> out = column.strings;
  for (const int64_t value : column.integers) out.push_back(key_of(value));
  for (const double value : column.numbers) out.push_back(key_of(value));
  return out;
}

template <class T, class From>
TensorRef numeric(HostCall& call, const std::vector<From>& values, chipdock_dtype dtype) {
  const std::vector<T> narrow(values.begin(), values.end());
  return call.tensor(dtype, call.input(0).dims, narrow.data());
}

template <class From>
TensorRef as_tensor(HostCall& call, const std::vector<From>& values) {
  const chipdock_dtype dtype = call.output_dtype(0);
  if (dtype == kit::kFloat32) return numeric<float>(call, values, dtype);
  if (dtype == kit::kFloat64) return numeric<double>(call, values, dtype);
  if (dtype == kit::kInt32) return numeric<int32_t>(call, values, dtype);
  if (dtype == kit::kInt16) return numeric<int16_t>(call, values, dtype);
  return numeric<int64_t>(call, values, dtype);
}

template <class T>
std::vector<T> look_up(const std::vector<std::string>& keys, const std::vector<std::string>& table,
                       const std::vector<T>& values, const T& otherwise) {
  kit::require(table.size() == values.size(), "LabelEncoder has ", table.size(), " keys and ",
               values.size(), " values");
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < table.size(); ++i) places.emplace(table[i], i);
  std::vector<T> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto found = places.find(key);
    out.push_back(found == places.end() ? otherwise : values[found->second]);
  }
  return out;
}

void encode(HostCall& call) {
  const kit::NodeView node = call.attributes();
  const TensorRef& x = call.input(0);
  Column given;
  if (is_kind(x, HostKind::kStrings)) {
    given.strings = x.object->strings;
  } else {
    std::vector<char> bytes(x.bytes());
    read_tensor(x, bytes.data(), nullptr);
    read_elements(x.dtype, bytes.data(), x.size(), given);
  }
  const std::vector<std::string> keys = keys_of(given);
  const std::vector<std::string> table = keys_of(read_column(node, "keys"));
  const Column values = read_column(node, "values");
  const Column standard = read_column(node, "default");
  if (is_host_dtype(call.output_dtype(0))) {
    const std::string otherwise =
        standard.strings.empty() ? node.text("default_string", "_Unused") : standard.strings[0];
    call.set(0, make_strings(x.dims, look_up(keys, table, values.strings, otherwise)));
  } else if (!values.numbers.empty()) {
    const double otherwise =
        standard.numbers.empty() ? node.number("default_float", -0.0) : standard.numbers[0];
    call.set(0, as_tensor(call, look_up(keys, table, values.numbers, otherwise)));
  } else {
    const int64_t otherwise =
        standard.integers.empty() ? node.integer("default_int64", -1) : standard.integers[0];
    call.set(0, as_tensor(call, look_up(keys, table, values.integers, otherwise)));
  }
}

}  // namespace

std::vector<HostOp> label_encoder_host_ops() {
  return {{"LabelEncoder", 2, 0, encode, "ai.onnx.ml"}};
}

}  // namespace chipdock::runtime
