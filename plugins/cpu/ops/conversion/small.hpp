// SPDX-License-Identifier: Apache-2.0
// Floats of 8 and 4 bits and integers of 4 and 2 bits, to float and back. Sub-byte elements lie low
// bits first in each byte.
#ifndef CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_SMALL_HPP_
#define CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_SMALL_HPP_

#include <cstdint>
#include <vector>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {

enum class RoundScale { kUp, kDown, kNearest };

/// What Cast's attributes choose for values that the format cannot hold.
struct NarrowOptions {
  bool saturate = true;
  RoundScale scale = RoundScale::kUp;  ///< float8_e8m0fnu only.
};

/// One small dtype. `element` holds one element in its low bits.
class SmallFormat {
 public:
  /// NULL if `type` is none of the small dtypes.
  static const SmallFormat* find(chipdock_dtype type);
  static std::vector<chipdock_dtype> all();

  float decode(uint8_t element) const;
  /// Rounds to nearest even. Integers are cut off towards zero and lose their high bits.
  uint8_t encode(float value, const NarrowOptions& options) const;

  /// Elements [first, first + n) of a packed array; `first` lies on a byte.
  void decode(const uint8_t* packed, int64_t first, int64_t n, float* out) const;
  void encode(const float* in, int64_t first, int64_t n, uint8_t* packed,
              const NarrowOptions& options) const;

  enum class Kind : uint8_t { kFloat, kScale, kSigned, kUnsigned };

  chipdock_dtype type;
  Kind kind;
  int mantissa = 0;
  int bias = 0;
  uint8_t largest = 0;   ///< Code of the largest finite magnitude.
  uint8_t infinity = 0;  ///< Code of what a magnitude above that becomes if it is not saturated.
  uint8_t nan = 0;       ///< Code of NaN without sign.
  bool zero_unsigned = false;  ///< There is no -0; its code is NaN.

 private:
  uint8_t encode_float(float value, const NarrowOptions& options) const;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_OPS_CONVERSION_SMALL_HPP_
