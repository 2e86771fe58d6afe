// SPDX-License-Identifier: Apache-2.0
// Help for plugin authors in C++17, header only: the exception guard, struct checks, typed views of
// nodes and attributes. It adds nothing to the ABI; a plugin in C does without it.
#ifndef CHIPDOCK_PLUGIN_KIT_HPP_
#define CHIPDOCK_PLUGIN_KIT_HPP_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chipdock/kernel.h"
#include "chipdock/plugin.h"

namespace chipdock::kit {

inline constexpr const char* kStatusNames[] = {"OK",
                                               "NOT_READY",
                                               "UNSUPPORTED",
                                               "INVALID_ARGUMENT",
                                               "FAILED_PRECONDITION",
                                               "OUT_OF_MEMORY",
                                               "UNAVAILABLE",
                                               "BUSY",
                                               "TIMEOUT",
                                               "ABORTED",
                                               "DEVICE_LOST",
                                               "RESET_REQUIRED",
                                               "PEER_FAILED",
                                               "MISMATCH",
                                               "REVOKED",
                                               "VERSION_MISMATCH",
                                               "SHUTDOWN",
                                               "FORKED",
                                               "INTERNAL"};

/// Name of a status code; "INTERNAL" for one that is not known. [BASE-7]
inline const char* status_name(chipdock_status status) {
  if (status < 0 || status > CHIPDOCK_INTERNAL) return "INTERNAL";
  return kStatusNames[status];
}

/// What a slot throws to fail; guard() turns it into a status and an error record.
class Failure : public std::exception {
 public:
  Failure(chipdock_status code, std::string text, int64_t vendor_code = 0)
      : code_(code),
        vendor_code_(vendor_code),
        text_(std::string(status_name(code)) + ": " + text) {}
  const char* what() const noexcept override { return text_.c_str(); }
  chipdock_status code() const noexcept { return code_; }
  int64_t vendor_code() const noexcept { return vendor_code_; }

 private:
  chipdock_status code_;
  int64_t vendor_code_;
  std::string text_;
};

/// Throws a Failure whose text is the rest of the arguments streamed together.
template <class... Parts>
[[noreturn]] void fail(chipdock_status code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Failure(code, text.str());
}

/// Throws INVALID_ARGUMENT unless `condition`.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail(CHIPDOCK_INVALID_ARGUMENT, parts...);
}

/// Runs `body` and turns whatever it throws into a status. No exception leaves a plugin. [BASE-9]
template <class Body>
chipdock_status guard(chipdock_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return CHIPDOCK_OK;
  } catch (const Failure& failure) {
    chipdock_fail(error, failure.code(), failure.what());
    if (error != nullptr && CHIPDOCK_HAS_FIELD(chipdock_error, vendor_code, error->struct_size)) {
      error->vendor_code = failure.vendor_code();
    }
    return failure.code();
  } catch (const std::bad_alloc&) {
    return chipdock_fail(error, CHIPDOCK_OUT_OF_MEMORY, "OUT_OF_MEMORY: host memory is exhausted");
  } catch (const std::exception& other) {
    return chipdock_fail(error, CHIPDOCK_INTERNAL, other.what());
  } catch (...) {
    return chipdock_fail(error, CHIPDOCK_INTERNAL, "INTERNAL: an unknown exception was thrown");
  }
}

/// A struct that came in, copied to the reader's own size: short ones are zero-extended.
/// [BASE-1] to [BASE-4]
template <class T>
T read_struct(const T* given, size_t first_size, const char* what) {
  const chipdock_status status = chipdock_check_struct(given, first_size, sizeof(T));
  if (status == CHIPDOCK_UNSUPPORTED) {
    fail(status, what, " carries data in fields that this plugin does not know [BASE-3]");
  }
  if (given == nullptr || status != CHIPDOCK_OK)
    fail(status, what, " is NULL or has too small a struct_size [BASE-4]");
  T out{};
  std::memcpy(&out, given, std::min<size_t>(given->struct_size, sizeof(T)));
  out.struct_size = sizeof(T);
  return out;
}

/// Writes `value` into an out struct of the caller, at most its struct_size bytes. [BASE-5]
template <class T>
void write_struct(T* out, const T& value, const char* what) {
  if (out == nullptr || out->struct_size < sizeof(uint32_t) * 2) {
    fail(CHIPDOCK_INVALID_ARGUMENT, what, " is NULL or has too small a struct_size [BASE-5]");
  }
  const uint32_t size = out->struct_size;
  std::memcpy(out, &value, std::min<size_t>(size, sizeof(T)));
  out->struct_size = size;
}

inline bool operator==(chipdock_dtype a, chipdock_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

constexpr chipdock_dtype dtype(int code, int bits) {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}
inline constexpr chipdock_dtype kBool = dtype(CHIPDOCK_DTYPE_BOOL, 8);
inline constexpr chipdock_dtype kInt8 = dtype(CHIPDOCK_DTYPE_INT, 8);
inline constexpr chipdock_dtype kInt16 = dtype(CHIPDOCK_DTYPE_INT, 16);
inline constexpr chipdock_dtype kInt32 = dtype(CHIPDOCK_DTYPE_INT, 32);
inline constexpr chipdock_dtype kInt64 = dtype(CHIPDOCK_DTYPE_INT, 64);
inline constexpr chipdock_dtype kUint8 = dtype(CHIPDOCK_DTYPE_UINT, 8);
inline constexpr chipdock_dtype kUint16 = dtype(CHIPDOCK_DTYPE_UINT, 16);
inline constexpr chipdock_dtype kUint32 = dtype(CHIPDOCK_DTYPE_UINT, 32);
inline constexpr chipdock_dtype kUint64 = dtype(CHIPDOCK_DTYPE_UINT, 64);
inline constexpr chipdock_dtype kFloat16 = dtype(CHIPDOCK_DTYPE_FLOAT, 16);
inline constexpr chipdock_dtype kFloat32 = dtype(CHIPDOCK_DTYPE_FLOAT, 32);
inline constexpr chipdock_dtype kFloat64 = dtype(CHIPDOCK_DTYPE_FLOAT, 64);
inline constexpr chipdock_dtype kBfloat16 = dtype(CHIPDOCK_DTYPE_BFLOAT, 16);

/// Bytes of `count` elements; sub-byte types are packed. [chipdock_dtype]
inline uint64_t dtype_bytes(chipdock_dtype type, uint64_t count) {
  return (count * type.bits * type.lanes + 7) / 8;
}

/// Element i of packed elements of at most 8 bits, in the low bits; it may lie in two bytes.
inline uint8_t packed_element(const void* packed, uint64_t i, int bits) {
  const uint64_t at = i * static_cast<uint64_t>(bits);
  const auto* bytes = static_cast<const uint8_t*>(packed) + at / 8;
  const int shift = static_cast<int>(at % 8);
  const int both = shift + bits > 8 ? bytes[0] | bytes[1] << 8 : bytes[0];
  return static_cast<uint8_t>(both >> shift & ((1 << bits) - 1));
}

/// Packs the low bits of `element` as element i. Its place must be zero before.
inline void pack_element(uint8_t element, uint64_t i, int bits, void* packed) {
  const uint64_t at = i * static_cast<uint64_t>(bits);
  auto* bytes = static_cast<uint8_t*>(packed) + at / 8;
  const int shift = static_cast<int>(at % 8);
  const int both = (element & ((1 << bits) - 1)) << shift;
  bytes[0] = static_cast<uint8_t>(bytes[0] | both);
  if (shift + bits > 8) bytes[1] = static_cast<uint8_t>(bytes[1] | both >> 8);
}

/// "float32", "bfloat16", "int4", … for messages; ml_dtypes' names for the small floats.
inline std::string dtype_name(chipdock_dtype type) {
  static constexpr const char* kFloat8[] = {
      "float8_e3m4",     "float8_e4m3",   "float8_e4m3b11fnuz", "float8_e4m3fn",
      "float8_e4m3fnuz", "float8_e5m2",   "float8_e5m2fnuz",    "float8_e8m0fnu",
      "float6_e2m3fn",   "float6_e3m2fn", "float4_e2m1fn"};
  const std::string bits = std::to_string(type.bits);
  switch (type.code) {
    case CHIPDOCK_DTYPE_INT:
      return "int" + bits;
    case CHIPDOCK_DTYPE_UINT:
      return "uint" + bits;
    case CHIPDOCK_DTYPE_FLOAT:
      return "float" + bits;
    case CHIPDOCK_DTYPE_BFLOAT:
      return "bfloat" + bits;
    case CHIPDOCK_DTYPE_COMPLEX:
      return "complex" + bits;
    case CHIPDOCK_DTYPE_BOOL:
      return "bool";
    default:
      break;
  }
  if (type.code >= CHIPDOCK_DTYPE_FLOAT8_E3M4 && type.code <= CHIPDOCK_DTYPE_FLOAT4_E2M1FN) {
    return kFloat8[type.code - CHIPDOCK_DTYPE_FLOAT8_E3M4];
  }
  return "dtype(" + std::to_string(type.code) + "," + bits + ")";
}

/// A node's attributes by name. Holds a pointer only; the node outlives the view.
class NodeView {
 public:
  explicit NodeView(const chipdock_node& node) : node_(&node) {}

  const chipdock_node& raw() const { return *node_; }
  std::string_view op() const { return node_->op; }
  int32_t since_version() const { return node_->since_version; }
  uint32_t input_count() const { return node_->input_count; }
  uint32_t output_count() const { return node_->output_count; }
  /// NULL if the optional input is not given.
  const chipdock_value* input(uint32_t i) const {
    return i < node_->input_count ? node_->inputs[i] : nullptr;
  }
  const chipdock_value* output(uint32_t i) const {
    return i < node_->output_count ? node_->outputs[i] : nullptr;
  }
  bool has_input(uint32_t i) const { return input(i) != nullptr; }
  chipdock_dtype input_dtype(uint32_t i) const {
    require(has_input(i), node_->op, " needs input ", i);
    return input(i)->dtype;
  }

  const chipdock_attribute* find(std::string_view name) const {
    for (uint32_t i = 0; i < node_->attribute_count; ++i) {
      if (name == node_->attributes[i]->name) return node_->attributes[i];
    }
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_INT);
    return found != nullptr ? found->integer : otherwise;
  }
  double number(std::string_view name, double otherwise) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_FLOAT);
    return found != nullptr ? found->number : otherwise;
  }
  std::string text(std::string_view name, std::string_view otherwise) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_STRING);
    return found != nullptr ? std::string(found->text, found->count) : std::string(otherwise);
  }
  std::vector<int64_t> integers(std::string_view name) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_INTS);
    if (found == nullptr) return {};
    return {found->integers, found->integers + found->count};
  }
  std::vector<double> numbers(std::string_view name) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_FLOATS);
    if (found == nullptr) return {};
    return {found->numbers, found->numbers + found->count};
  }
  /// NULL if not given.
  const chipdock_tensor* tensor(std::string_view name) const {
    const auto* found = find(name, CHIPDOCK_ATTRIBUTE_TENSOR);
    return found != nullptr ? found->tensor : nullptr;
  }

 private:
  const chipdock_attribute* find(std::string_view name, int32_t kind) const {
    const auto* found = find(name);
    require(found == nullptr || found->kind == kind, "attribute ", name, " of ", node_->op,
            " has kind ", found != nullptr ? found->kind : 0, ", the operator's schema says ",
            kind);
    return found;
  }
  const chipdock_node* node_;
};

/// Turns a negative axis into 0..rank-1, or fails naming it.
inline int64_t normalize_axis(int64_t axis, int64_t rank, const char* op) {
  require(axis >= -rank && axis < rank, op, ": axis ", axis, " is outside [", -rank, ", ", rank - 1,
          "] for rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace chipdock::kit

#endif  // CHIPDOCK_PLUGIN_KIT_HPP_
