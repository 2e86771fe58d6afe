// SPDX-License-Identifier: Apache-2.0
// Sizes and rules of the blocked layout; see blocked.hpp.
#include "blocked.hpp"

#include <algorithm>

#include "isa.hpp"

namespace chipdock::plugin::cpu {

int64_t channel_block() {
  const Isa isa = active_isa();
  return isa >= Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 0;
}

uint64_t layout_bytes(uint32_t layout, chipdock_dtype dtype, int32_t rank, const int64_t* dims) {
  using kit::operator==;
  const int64_t block = channel_block();
  const bool known = layout == 0 || (layout == kBlocked && block > 0);
  if (!known) kit::fail(CHIPDOCK_UNSUPPORTED, "layout ", layout, " is none of this device");
  if (layout != 0 && (rank < 3 || !(dtype == kit::kFloat32))) {
    kit::fail(CHIPDOCK_UNSUPPORTED, "layout ", layout, " is for float32 of rank 3 or more, not ",
              kit::dtype_name(dtype), " of rank ", rank);
  }
  uint64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) {
    kit::require(dims[i] >= 0, "dim ", i, " is ", dims[i], ", a size needs all dims");
    const bool padded = layout != 0 && i == 1;
    const int64_t dim = padded ? blocks_of(dims[i], block) * block : dims[i];
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) || count >> 60 != 0) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "a tensor of more than 2^60 elements has no size");
    }
  }
  return kit::dtype_bytes(dtype, count);
}

uint64_t Tensor::bytes() const {
  if (layout == 0) return kit::dtype_bytes(dtype, static_cast<uint64_t>(size()));
  return layout_bytes(layout, dtype, rank, shape);
}

void zero_lanes(float* data, int64_t pixels, int64_t block, int64_t used) {
  for (int64_t i = 0; i < pixels; ++i)
    std::fill(data + i * block + used, data + (i + 1) * block, 0);
}

void zero_lanes(const Tensor& tensor) {
  const BlockedShape shape(tensor);
  if (shape.full()) return;
  for (int64_t n = 1; n <= shape.batch; ++n) {
    float* last = tensor.mut<float>() + (n * shape.blocks - 1) * shape.plane();
    zero_lanes(last, shape.pixels, shape.block, shape.used());
  }
}

bool is_blocked(const chipdock_value* value) {
  return channel_block() > 0 && value != nullptr && value->layout == kBlocked && value->rank >= 3 &&
         value->dims[1] > 0;
}

int32_t supports_either_layout(const kit::NodeView& node) {
  using kit::operator==;
  const chipdock_value* x = node.input(0);
  const chipdock_value* y = node.output(0);
  if (x == nullptr || y == nullptr || (x->layout == 0 && y->layout == 0)) {
    return CHIPDOCK_SUPPORTS_YES;
  }
  const bool blocked = is_blocked(x) && is_blocked(y) && x->dtype == kit::kFloat32;
  return blocked ? CHIPDOCK_SUPPORTS_YES : CHIPDOCK_SUPPORTS_NO;
}

std::vector<LayoutRule> blocked_arguments(std::initializer_list<int32_t> arguments) {
  std::vector<LayoutRule> rules;
  const auto [least, most] = std::minmax_element(arguments.begin(), arguments.end());
  // The last rule of a side serves what follows it, so the one behind the last is there too.
  for (int32_t i = std::min(*least, 0) - 1; i <= std::max(*most, -1) + 1; ++i) {
    const bool listed = std::find(arguments.begin(), arguments.end(), i) != arguments.end();
    rules.push_back({i, listed ? std::vector<uint32_t>{kBlocked} : std::vector<uint32_t>{}});
  }
  return rules;
}

}  // namespace chipdock::plugin::cpu
