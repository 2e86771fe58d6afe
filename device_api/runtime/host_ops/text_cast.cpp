// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike where one side is strings. Numbers are written with as few digits as bring the
// float32 or float64 back, in NumPy's form; 16-bit floats and narrower are written as float32.
// Source: ONNX Cast-28, "string" rules.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

using kit::operator==;

/// Numbers of ONNX's TensorProto.DataType.
int64_t onnx_number(chipdock_dtype dtype) {
  const struct {
    chipdock_dtype dtype;
    int64_t number;
  } table[] = {{kit::kFloat32, 1},
               {kit::kUint8, 2},
               {kit::kInt8, 3},
               {kit::dtype(CHIPDOCK_DTYPE_UINT, 16), 4},
               {kit::kInt16, 5},
               {kit::kInt32, 6},
               {kit::kInt64, 7},
               {kit::kBool, 9},
               {kit::kFloat16, 10},
               {kit::kFloat64, 11},
               {kit::dtype(CHIPDOCK_DTYPE_UINT, 32), 12},
               {kit::dtype(CHIPDOCK_DTYPE_UINT, 64), 13},
               {kit::kBfloat16, 16},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FN, 8), 17},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E4M3FNUZ, 8), 18},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2, 8), 19},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E5M2FNUZ, 8), 20},
               {kit::dtype(CHIPDOCK_DTYPE_UINT, 4), 21},
               {kit::dtype(CHIPDOCK_DTYPE_INT, 4), 22},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT4_E2M1FN, 4), 23},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT8_E8M0FNU, 8), 24},
               {kit::dtype(CHIPDOCK_DTYPE_UINT, 2), 25},
               {kit::dtype(CHIPDOCK_DTYPE_INT, 2), 26},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT6_E2M3FN, 6), 27},
               {kit::dtype(CHIPDOCK_DTYPE_FLOAT6_E3M2FN, 6), 28}};
  for (const auto& entry : table) {
    if (entry.dtype == dtype) return entry.number;
  }
  kit::fail(CHIPDOCK_UNSUPPORTED, "a cast between strings and ", kit::dtype_name(dtype));
}

/// A numeric cast, by the operator.
TensorRef convert(HostCall& call, const TensorRef& from, chipdock_dtype to) {
  if (from.dtype == to) return call.own(from);
  IrNode node;
  node.op = "Cast";
  node.name = call.node().name;
  node.since_version = 25;
  node.attributes.add_integer("to", onnx_number(to));
  node.attributes.add_integer("saturate", call.attributes().integer("saturate", 1));
  node.outputs = {0};
  return call.apply(node, {&from}, {to})[0];
}

template <class T>
std::vector<T> elements(HostCall& call, chipdock_dtype dtype) {
  const TensorRef values = convert(call, call.input(0), dtype);
  std::vector<T> out(static_cast<size_t>(values.size()));
  read_tensor(values, out.data(), nullptr);
  return out;
}

template <class T>
std::string text_of(T value) {
  char buffer[64];
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
    std::string text(buffer, end.ptr);
    const int64_t exponent = std::strtol(text.c_str() + text.find('e') + 1, nullptr, 10);
    if (exponent < -4 || exponent >= 16) return text;
    end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
    text.assign(buffer, end.ptr);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  } else {
    return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
  }
}

template <class T>
std::vector<std::string> texts(HostCall& call, chipdock_dtype dtype) {
  std::vector<std::string> out;
  for (const T value : elements<T>(call, dtype)) out.push_back(text_of(value));
  return out;
}

std::vector<std::string> written(HostCall& call) {
  const chipdock_dtype from = call.input(0).dtype;
  if (from == kit::kBool) {
    std::vector<std::string> out;
    for (const uint8_t value : elements<uint8_t>(call, kit::kUint8))
      out.emplace_back(value != 0 ? "True" : "False");
    return out;
  }
  if (from.code == CHIPDOCK_DTYPE_INT) return texts<int64_t>(call, kit::kInt64);
  if (from.code == CHIPDOCK_DTYPE_UINT)
    return texts<uint64_t>(call, kit::dtype(CHIPDOCK_DTYPE_UINT, 64));
  if (from == kit::kFloat64) return texts<double>(call, kit::kFloat64);
  return texts<float>(call, kit::kFloat32);
}

/// A number with spaces around it and a plus in front, as Python reads it.
template <class T>
T number_of(const std::string& text) {
  const char* blanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(blanks);
  std::string_view rest;
  if (first != std::string::npos)
    rest = std::string_view(text).substr(first, text.find_last_not_of(blanks) + 1 - first);
  if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
  T value{};
  const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  bool good = end.ec == std::errc() && end.ptr == rest.data() + rest.size() && !rest.empty();
  if constexpr (std::is_floating_point_v<T>) {
    if (end.ec == std::errc::result_out_of_range && !rest.empty()) {
      char* stop = nullptr;
      const std::string whole(rest);
      value = static_cast<T>(std::strtod(whole.c_str(), &stop));  // a huge or a tiny number
      good = *stop == '\0';
    }
  }
  kit::require(good, "'", text, "' is not ",
               std::is_floating_point_v<T> ? "a number" : "a whole number that the dtype can hold");
  return value;
}

template <class T>
TensorRef parsed(HostCall& call, chipdock_dtype by, chipdock_dtype to) {
  std::vector<T> values;
  for (const std::string& text : call.strings(0)) values.push_back(number_of<T>(text));
  return convert(call, call.tensor(by, call.input(0).dims, values.data()), to);
}

TensorRef read(HostCall& call, chipdock_dtype to) {
  if (to.code == CHIPDOCK_DTYPE_INT) return parsed<int64_t>(call, kit::kInt64, to);
  if (to.code == CHIPDOCK_DTYPE_UINT)
    return parsed<uint64_t>(call, kit::dtype(CHIPDOCK_DTYPE_UINT, 64), to);
  if (to == kit::kFloat64 || to == kit::kBool) return parsed<double>(call, kit::kFloat64, to);
  return parsed<float>(call, kit::kFloat32, to);
}

void cast(HostCall& call) {
  const TensorRef& from = call.input(0);
  const chipdock_dtype to = call.output_dtype(0);
  if (is_kind(from, HostKind::kStrings)) {
    call.set(0, is_host_dtype(to) ? from : read(call, to));
  } else {
    call.set(0, make_strings(from.dims, written(call)));
  }
}

}  // namespace

std::vector<HostOp> text_cast_host_ops() {
  return {{"Cast", 6, 0, cast}, {"CastLike", 15, 0, cast}};
}

}  // namespace chipdock::runtime
