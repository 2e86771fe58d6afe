// SPDX-License-Identifier: Apache-2.0
// The table of operators, collected from the families beside this file, and what their shape
// functions share. families.inc is made by the build from the file names.
#include "ops/op.hpp"

#include <cstring>
#include <unordered_map>

namespace chipdock::runtime {

#define FAMILY(stem) std::vector<Op> stem##_ops();
#include "families.inc"
#undef FAMILY

namespace {

std::vector<Op> collect() {
  std::vector<Op> all;
  const auto add = [&all](const std::vector<Op>& family) {
    all.insert(all.end(), family.begin(), family.end());
  };
#define FAMILY(stem) add(stem##_ops());
#include "families.inc"
#undef FAMILY
  return all;
}

using Index = std::unordered_multimap<std::string_view, const Op*>;

// Both live until the process ends: a thread may still ask while others are being torn down.
const Index& index() {
  static const Index* const kIndex = [] {
    auto* made = new Index;
    for (const Op& op : all_ops()) made->emplace(op.name, &op);
    return made;
  }();
  return *kIndex;
}

template <class To, class From>
void widen(const void* data, int64_t count, std::vector<To>& out) {
  const auto* from = static_cast<const From*>(data);
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<To>(from[i]));
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  uint32_t bits = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 31) bits = sign | 0x7f800000u | mantissa << 13;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  if (exponent != 0) return value;
  value = static_cast<float>(mantissa) / 16777216.0f;
  return sign != 0 ? -value : value;
}

float bfloat_to_float(uint16_t given) {
  const uint32_t bits = static_cast<uint32_t>(given) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

const std::vector<Op>& all_ops() {
  static const auto* const kAll = new std::vector<Op>(collect());
  return *kAll;
}

const Op* find_op(std::string_view domain, std::string_view name, int32_t since_version) {
  const auto [first, last] = index().equal_range(name);
  const Op* best = nullptr;
  for (auto at = first; at != last; ++at) {
    const Op& op = *at->second;
    if (domain != op.domain || since_version < op.since) continue;
    if (op.until != 0 && since_version > op.until) continue;
    if (best == nullptr || op.since > best->since) best = &op;
  }
  return best;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

Dims broadcast(const Dims& a, const Dims& b, std::string_view op) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[lead + i];
    const int64_t y = shorter[i];
    kit::require(x == y || x == 1 || y == 1, op, ": shapes ", to_string(a), " and ", to_string(b),
                 " do not broadcast: ", x, " meets ", y, " at dim ", lead + i,
                 ", allowed are equal dims or a 1");
    out[lead + i] = x == 1 ? y : x;
  }
  return out;
}

int64_t checked_size(const Dims& dims, std::string_view op) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  int64_t size = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    // The text is made only when it is needed: this runs for every tensor of every call.
    if (dim < 0)
      kit::require(false, op, ": shape ", to_string(dims), " has the negative dim ", dim);
    empty = empty || dim == 0;
  }
  if (empty) return 0;
  for (const int64_t dim : dims) {
    if (size > kLimit / dim)
      kit::require(false, op, ": shape ", to_string(dims), " has more than 2^62 elements");
    size *= dim;
  }
  return size;
}

std::vector<int64_t> ShapeContext::integers(size_t i) const {
  using kit::operator==;
  const ShapeInput& given = input(i);
  const int64_t count = given.size();
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count));
  kit::require(count == 0 || given.data != nullptr, node_.op(), " needs the elements of input ", i,
               " on the host to know its shapes");
  if (given.dtype == kit::kInt64) {
    widen<int64_t, int64_t>(given.data, count, out);
  } else if (given.dtype == kit::kInt32) {
    widen<int64_t, int32_t>(given.data, count, out);
  } else {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, node_.op(), ": input ", i, " is ",
              kit::dtype_name(given.dtype), ", allowed are int64 and int32");
  }
  return out;
}

std::vector<double> ShapeContext::numbers(size_t i) const {
  using kit::operator==;
  const ShapeInput& given = input(i);
  const int64_t count = given.size();
  std::vector<double> out;
  out.reserve(static_cast<size_t>(count));
  kit::require(count == 0 || given.data != nullptr, node_.op(), " needs the elements of input ", i,
               " on the host to know its shapes");
  const auto* halves = static_cast<const uint16_t*>(given.data);
  if (given.dtype == kit::kFloat32) {
    widen<double, float>(given.data, count, out);
  } else if (given.dtype == kit::kFloat64) {
    widen<double, double>(given.data, count, out);
  } else if (given.dtype == kit::kFloat16) {
    for (int64_t k = 0; k < count; ++k) out.push_back(half_to_float(halves[k]));
  } else if (given.dtype == kit::kBfloat16) {
    for (int64_t k = 0; k < count; ++k) out.push_back(bfloat_to_float(halves[k]));
  } else {
    kit::fail(CHIPDOCK_INVALID_ARGUMENT, node_.op(), ": input ", i, " is ",
              kit::dtype_name(given.dtype), ", allowed are float32, float64, float16, bfloat16");
  }
  return out;
}

}  // namespace chipdock::runtime
