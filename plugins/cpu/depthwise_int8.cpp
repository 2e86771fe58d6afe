// SPDX-License-Identifier: Apache-2.0
// Planes of bytes by the filter for planes of floats; see depthwise_int8.hpp.
#include "depthwise_int8.hpp"

#include <algorithm>

#include "ops/quantization.hpp"
#include "simd/depthwise.hpp"
#include "simd/quantize.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

// Products of differences of bytes are below 2^16, floats are exact up to 2^24.
constexpr int64_t kMostTaps = 256;
constexpr int64_t kMostElements = int64_t{1} << 24;

/// A slot's scratch: the plane with padding, the sums, the filter, the plane as floats.
struct PlaneSizes {
  explicit PlaneSizes(const Space& s)
      : row(row_of(s)),
        rows((s.out[1] - 1) * s.stride[1] + s.span(1)),
        padded(rows * row + kDepthwiseSlack * s.stride[2]),
        sums(s.out_size()),
        plane(s.in_size()) {}
  int64_t slot() const { return up(padded) + up(sums) + up(kMostTaps) + up(plane); }
  static int64_t row_of(const Space& s) {
    const int64_t row = s.in[2] + s.pad[2] + s.pad_end[2] + s.stride[2] - 1;
    return depthwise_splits(s.stride[2]) ? row + row % 2 : row;
  }
  static int64_t up(int64_t count) { return (count + 15) / 16 * 16; }

  int64_t row, rows, padded, sums, plane;
};

void fill_filter(const ByteDepthwise& work, int64_t filter, float* to) {
  const int64_t taps = work.space.kernel_size();
  for (int64_t i = 0; i < taps; ++i) {
    to[i] = static_cast<float>(byte_at(work.w, filter * taps + i) - work.zero_w[filter]);
  }
}

/// Without the zero point, inside the zeros of the padding; `plane` takes the floats before.
void fill_plane(const ByteDepthwise& work, const PlaneSizes& sizes, int64_t channel, bool zeroed,
                float* plane, float* padded) {
  const Space& s = work.space;
  const ByteScale by = {1.0F, static_cast<float>(work.zero_x), is_signed(work.x.dtype)};
  const uint8_t* const from = work.x.as<uint8_t>() + channel * s.in_size();
  CHIPDOCK_CPU_DISPATCH(dequantize_bytes)(from, s.in_size(), by, plane);
  DepthwisePad pad;
  pad.plane = plane;
  pad.height = s.in[1], pad.width = s.in[2];
  pad.first = -s.pad[1], pad.rows = sizes.rows;
  pad.pad = s.pad[2];
  pad.row = sizes.row;
  pad.split = depthwise_splits(s.stride[2]);
  pad.zeroed = zeroed;
  pad.target = padded;
  CHIPDOCK_CPU_DISPATCH(depthwise_pad)(pad);
}

void filter_plane(const ByteDepthwise& work, const PlaneSizes& sizes, int64_t plane, bool zeroed,
                  float* scratch) {
  const Space& s = work.space;
  const int64_t filter = plane % work.filters;
  const int64_t channel =
      plane / work.filters * work.channels + filter / (work.filters / work.channels);
  float* const padded = scratch;
  float* const sums = padded + PlaneSizes::up(sizes.padded);
  float* const taps = sums + PlaneSizes::up(sizes.sums);
  fill_filter(work, filter, taps);
  fill_plane(work, sizes, channel, zeroed, taps + PlaneSizes::up(kMostTaps), padded);
  DepthwisePlane p = {};
  p.plane = padded;
  p.row = sizes.row;
  p.filter = taps;
  p.out = sums;
  p.height = s.out[1], p.width = s.out[2];
  p.kernel_y = s.kernel[1], p.kernel_x = s.kernel[2];
  p.stride_y = s.stride[1], p.stride_x = s.stride[2];
  p.dilation_y = s.dilation[1], p.dilation_x = s.dilation[2];
  CHIPDOCK_CPU_DISPATCH(depthwise_plane)(p);
  const int64_t at = plane * sizes.sums;
  if (work.y32 != nullptr) {
    CHIPDOCK_CPU_DISPATCH(plane_store)
    (sums, sizes.sums, work.row_term[filter], work.y32 + at);
    return;
  }
  DotBytes to = work.bytes;
  to.y += at;
  to.row_scale += filter;
  to.zero += filter;
  CHIPDOCK_CPU_DISPATCH(plane_requantize)(sums, sizes.sums, work.row_term[filter], to);
}

}  // namespace

bool fits_byte_depthwise(const Space& s) {
  if (s.kernel[0] != 1 || s.in[0] != 1 || s.kernel_size() > kMostTaps) return false;
  const auto wide = [](int64_t value) { return static_cast<double>(value); };
  const double row = wide(s.in[2]) + wide(s.pad[2]) + wide(s.pad_end[2]) + wide(s.stride[2]);
  const double rows = wide(s.out[1]) * wide(s.stride[1]) + wide(s.kernel[1]) * wide(s.dilation[1]);
  return rows * row + wide(kDepthwiseSlack) * wide(s.stride[2]) < wide(kMostElements);
}

uint64_t byte_depthwise_scratch(const Context& context, const Space& space) {
  return static_cast<uint64_t>(slot_capacity(context)) *
         padded_bytes(PlaneSizes(space).slot(), sizeof(float));
}

void byte_depthwise(const Context& context, const ByteDepthwise& work, void* scratch) {
  const PlaneSizes sizes(work.space);
  const int64_t planes = work.images * work.filters;
  const int64_t each = sizes.sums * (work.space.kernel_size() + 4) + work.space.in_size();
  const int64_t merge =
      std::clamp<int64_t>(int64_t{64} * 1024 / (each + 1), 1, std::max<int64_t>(planes, 1));
  auto* const floats = static_cast<float*>(scratch);
  parallel_slots(context, (planes + merge - 1) / merge, slot_count(context),
                 [&](int64_t group, int64_t slot) {
                   const int64_t first = group * merge;
                   const int64_t end = std::min(planes, first + merge);
                   for (int64_t plane = first; plane < end; ++plane) {
                     filter_plane(work, sizes, plane, plane > first, floats + slot * sizes.slot());
                   }
                 });
}

}  // namespace chipdock::plugin::cpu
