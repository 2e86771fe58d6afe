// SPDX-License-Identifier: Apache-2.0
#include "ops/conversion/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace chipdock::plugin::cpu {
namespace {

/// Nearest even, held to what an integer dtype can have; other values as they are.
template <class T>
void round_for(chipdock_dtype type, std::vector<T>& values) {
  if (type.code != CHIPDOCK_DTYPE_INT && type.code != CHIPDOCK_DTYPE_UINT) return;
  const bool is_signed = type.code == CHIPDOCK_DTYPE_INT;
  // The largest value below 2^bits that T has, so that the conversion stays in range.
  const T end = std::ldexp(T{1}, is_signed ? type.bits - 1 : type.bits);
  const T high = std::nextafter(end, T{0});
  const T low = is_signed ? -end : T{0};
  for (T& value : values) value = std::clamp(std::nearbyint(value), low, std::floor(high));
}

}  // namespace

float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  if (back == x || x != x || std::isinf(nearest)) return nearest;
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  if ((bits & 1) != 0) return nearest;
  bits += std::fabs(back) < std::fabs(x) ? 1u : -1u;
  float odd;
  std::memcpy(&odd, &bits, sizeof(odd));
  return odd;
}

Native native_of(chipdock_dtype type) {
  if (is(type, kit::kBool)) return Native::kBool;
  if (is(type, kit::kFloat32)) return Native::kFloat32;
  if (is(type, kit::kFloat64)) return Native::kFloat64;
  const int log_bytes = type.bits == 8 ? 0 : type.bits == 16 ? 1 : type.bits == 32 ? 2 : 3;
  if (type.bits < 8) return Native::kCount;
  if (type.code == CHIPDOCK_DTYPE_INT) return static_cast<Native>(log_bytes);
  if (type.code == CHIPDOCK_DTYPE_UINT) return static_cast<Native>(4 + log_bytes);
  return Native::kCount;
}

FloatCodec::FloatCodec(chipdock_dtype type)
    : type_(type), half_(half_codec(type)), small_(SmallFormat::find(type)) {
  if (!half_ && small_ == nullptr && native_of(type) == Native::kCount) no_dtype("a kernel", type);
}

void FloatCodec::read(const void* data, int64_t at, int64_t n, float* out) const {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (half_) {
    half_.widen(reinterpret_cast<const uint16_t*>(bytes) + at, out, n);
  } else if (small_ != nullptr) {
    small_->decode(bytes, at, n, out);
  } else {
    CHIPDOCK_CPU_DISPATCH(cast_loop)
    (native_of(type_), Native::kFloat32)(bytes + at * type_.bits / 8, out, n);
  }
}

void FloatCodec::write(const float* in, int64_t at, int64_t n, void* data,
                       const NarrowOptions& options) const {
  auto* bytes = static_cast<uint8_t*>(data);
  if (half_) {
    half_.narrow(in, reinterpret_cast<uint16_t*>(bytes) + at, n);
  } else if (small_ != nullptr) {
    small_->encode(in, at, n, bytes, options);
  } else {
    CHIPDOCK_CPU_DISPATCH(cast_loop)
    (Native::kFloat32, native_of(type_))(in, bytes + at * type_.bits / 8, n);
  }
}

template <>
std::vector<float> load<float>(const Tensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.size()));
  if (!out.empty()) FloatCodec(tensor.dtype).read(tensor.data, 0, tensor.size(), out.data());
  return out;
}

template <>
std::vector<double> load<double>(const Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.size()));
  const Native native = native_of(tensor.dtype);
  if (out.empty()) return out;
  if (native != Native::kCount) {
    CHIPDOCK_CPU_DISPATCH(cast_loop)
    (native, Native::kFloat64)(tensor.data, out.data(), tensor.size());
    return out;
  }
  const std::vector<float> narrow = load<float>(tensor);
  std::copy(narrow.begin(), narrow.end(), out.begin());
  return out;
}

template <>
void store<float>(const std::vector<float>& values, const Tensor& tensor) {
  if (values.empty()) return;
  std::vector<float> rounded = values;
  round_for(tensor.dtype, rounded);
  FloatCodec(tensor.dtype).write(rounded.data(), 0, tensor.size(), tensor.data);
}

template <>
void store<double>(const std::vector<double>& values, const Tensor& tensor) {
  if (values.empty()) return;
  const Native native = native_of(tensor.dtype);
  std::vector<double> rounded = values;
  round_for(tensor.dtype, rounded);
  if (native != Native::kCount) {
    CHIPDOCK_CPU_DISPATCH(cast_loop)
    (Native::kFloat64, native)(rounded.data(), tensor.data, tensor.size());
    return;
  }
  std::vector<float> narrow(rounded.size());
  std::transform(rounded.begin(), rounded.end(), narrow.begin(), round_to_odd);
  FloatCodec(tensor.dtype).write(narrow.data(), 0, tensor.size(), tensor.data);
}

}  // namespace chipdock::plugin::cpu
