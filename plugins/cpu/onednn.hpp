// SPDX-License-Identifier: Apache-2.0
// oneDNN as an accelerator behind our own threads: every primitive runs on one OpenMP thread, on a
// slab of output rows, with private scratch. Without CHIPDOCK_HAVE_ONEDNN nothing here is offered.
#ifndef CHIPDOCK_PLUGIN_CPU_ONEDNN_HPP_
#define CHIPDOCK_PLUGIN_CPU_ONEDNN_HPP_

#include <cstdint>
#include <memory>
#include <string>

namespace chipdock::plugin::cpu::onednn {

/// True if oneDNN is built in and the ISA in force is AVX2 or better and the one oneDNN started
/// with.
bool available();

/// One dense fp32 convolution of a slab. Plain data: its bytes are the key of the primitive cache.
struct ConvShape {
  int64_t in_channels, out_channels;
  int64_t in_height, in_width;    ///< Of the slab.
  int64_t out_height, out_width;  ///< Of the slab.
  int64_t in_plane, out_plane;    ///< Elements between channels of the whole tensors.
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad[2], pad_end[2];
  int64_t bias;      ///< 1: with bias.
  int64_t residual;  ///< 1: with a residual.
};

/// Bytes of the packed filters, and the name of their form, which depends on channels, kernel,
/// stride and dilation only.
uint64_t filter_bytes(const ConvShape& shape);
std::string filter_layout();
/// Packs row-major filters (out, in, height, width).
void pack_filters(const ConvShape& shape, const float* filters, void* packed);

/// A primitive with the reorders around it. Immutable and shared; run() may be called from many
/// threads.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual uint64_t scratch_bytes() const = 0;
  /// `x`, `residual` and `y` point to the slab's first element in row-major tensors; `residual` may
  /// be `y`; `scratch` is 64-byte aligned.
  virtual void run(const float* x, const void* packed, const float* bias, const float* residual,
                   float* y, void* scratch) const = 0;
};

/// From a bounded cache, or made now (about a millisecond). Throws UNSUPPORTED if oneDNN declines.
std::shared_ptr<const Convolution> convolution(const ConvShape& shape);

}  // namespace chipdock::plugin::cpu::onednn

#endif  // CHIPDOCK_PLUGIN_CPU_ONEDNN_HPP_
