// SPDX-License-Identifier: Apache-2.0
// DFT and STFT. A power of two is transformed by halves, any other length by Bluestein's chirp, so
// that no length costs more than n log n. All in double, several lines at a time (simd/fft.cpp).
#include <cmath>

#include "ops/conversion/values.hpp"
#include "simd/fft.hpp"
#include "slots.hpp"
#include "widen.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr double kTau = 6.283185307179586476925286766559;

/// exp(2 pi i part), as a pair.
void add_turn(std::vector<double>& pairs, double part) {
  pairs.push_back(std::cos(kTau * part));
  pairs.push_back(std::sin(kTau * part));
}

/// Transforms of one length, not scaled.
class Transform {
 public:
  Transform(int64_t length, bool inverse, int64_t lines)
      : length_(length),
        padded_(length),
        inverse_(inverse),
        lanes_(lines == 1 ? 1 : kFftLines),
        functions_(CHIPDOCK_CPU_DISPATCH(fft_functions)(lines == 1)) {
    const bool chirps = length >= 2 && (length & (length - 1)) != 0;
    if (chirps) {
      for (padded_ = 1; padded_ < 2 * length - 1;) padded_ *= 2;
    }
    for (int64_t half = 1; half < padded_; half *= 2) {
      for (int64_t k = 0; k < half; ++k) {
        add_turn(roots_, -static_cast<double>(k) / static_cast<double>(2 * half));
      }
    }
    if (chirps) make_chirp();
  }

  /// Lines that one call of run() transforms.
  int64_t lanes() const { return lanes_; }
  /// Numbers in the buffer of run().
  int64_t buffer() const { return 2 * lanes_ * padded_; }
  /// No fewer than buffer() gives for a length up to this.
  static int64_t most_buffer(int64_t length, int64_t lines) {
    return (lines == 1 ? 2 : 2 * kFftLines) * 4 * length;
  }
  /// `x` has buffer() numbers, and as many elements as the length count.
  void run(double* x) const {
    if (chirp_.empty()) return functions_.transform(x, length_, roots_.data(), inverse_);
    functions_.multiply(x, length_, chirp_.data());
    std::fill(x + 2 * lanes_ * length_, x + 2 * lanes_ * padded_, 0.0);
    functions_.transform(x, padded_, roots_.data(), false);
    functions_.multiply(x, padded_, spectrum_.data());
    functions_.transform(x, padded_, roots_.data(), true);
    functions_.multiply(x, length_, end_.data());
  }

 private:
  void make_chirp() {
    spectrum_.assign(static_cast<size_t>(2 * padded_), 0);
    const double sign = inverse_ ? 1 : -1;
    for (int64_t k = 0; k < length_; ++k) {
      // k^2 modulo 2n keeps the angle exact for long inputs.
      const auto square = static_cast<double>(k * k % (2 * length_));
      add_turn(chirp_, sign * square / static_cast<double>(2 * length_));
      for (const int64_t at : {k, (padded_ - k) % padded_}) {
        spectrum_[static_cast<size_t>(2 * at)] = chirp_[static_cast<size_t>(2 * k)];
        spectrum_[static_cast<size_t>(2 * at + 1)] = -chirp_[static_cast<size_t>(2 * k + 1)];
      }
    }
    CHIPDOCK_CPU_DISPATCH(fft_functions)
    (true).transform(spectrum_.data(), padded_, roots_.data(), false);
    end_ = chirp_;
    for (double& part : end_) part /= static_cast<double>(padded_);
  }

  int64_t length_, padded_;
  bool inverse_;
  int64_t lanes_;
  FftFunctions functions_;
  std::vector<double> roots_, chirp_, spectrum_, end_;
};

/// Calls fill(first, count, x) for up to `lanes` lines, then the transform, then take(first, count,
/// x): element k of line first + i has its real part at x[2 k lanes + i] and its imaginary one
/// `lanes` behind. All begin as zeros. `scratch` has a buffer for each slot.
template <class Fill, class Take>
void transform_lines(const Context& context, const Transform& transform, int64_t lines,
                     double* scratch, const Fill& fill, const Take& take) {
  const int64_t lanes = transform.lanes(), size = transform.buffer();
  parallel_slots(context, (lines + lanes - 1) / lanes, slot_count(context),
                 [&](int64_t chunk, int64_t slot) {
                   double* x = scratch + slot * size;
                   const int64_t first = chunk * lanes, count = std::min(lanes, lines - first);
                   std::fill(x, x + size, 0.0);
                   fill(first, count, x);
                   transform.run(x);
                   take(first, count, x);
                 });
}

/// Scratch of the operators here: buffers for slots, and halves widened.
uint64_t signal_bytes(const Context& context, int64_t most_buffer) {
  const Tensor& x = context.input(0);
  uint64_t bytes = padded_bytes(slot_capacity(context) * most_buffer, sizeof(double));
  if (is_half(x.dtype)) {
    bytes += padded_bytes(x.size(), sizeof(float)) +
             padded_bytes(context.output(0).size(), sizeof(float));
  }
  return bytes;
}

/// Calls body(x, y, buffers) with the elements of input 0 and output 0 as float or double.
template <class Body>
void with_elements(const Context& context, int64_t most_buffer, const Body& body) {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  Carver carver(context.workspace);
  auto* buffers = carver.take<double>(slot_capacity(context) * most_buffer);
  if (is(x.dtype, kit::kFloat64)) return body(x.as<double>(), y.mut<double>(), buffers);
  const bool half = is_half(x.dtype);
  const float* from = widened(x, half ? carver.take<float>(x.size()) : nullptr);
  float* to = half ? carver.take<float>(y.size()) : y.mut<float>();
  body(from, to, buffers);
  if (half) narrow(y.dtype, to, y.size(), y.data);
}

class Dft final : public Kernel {
 public:
  explicit Dft(const kit::NodeView& node)
      : axis_(node.integer("axis", 1)),
        axis_is_input_(node.since_version() >= 20),
        inverse_(node.integer("inverse", 0) != 0),
        onesided_(node.integer("onesided", 0) != 0) {}

  uint64_t workspace(const Context& context) const override {
    return context.output(0).size() == 0 ? 0 : signal_bytes(context, most_buffer(context));
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    int64_t axis = axis_is_input_ ? -2 : axis_;
    if (axis_is_input_ && context.has_input(2)) axis = *context.input(2).as<int64_t>();
    axis = kit::normalize_axis(axis, x.rank, "DFT");
    int64_t length = y.shape[axis];
    if (context.has_input(1)) {
      length = static_cast<int64_t>(load<double>(context.input(1)).at(0));
    } else if (onesided_ && !inverse_) {
      length = x.shape[axis];
    }
    if (y.size() == 0) return;
    with_elements(context, most_buffer(context), [&](const auto* from, auto* to, double* buffers) {
      compute(context, axis, length, from, to, buffers);
    });
  }

 private:
  /// Which axis it is, and how long a line, may be known at run() only.
  int64_t most_buffer(const Context& context) const {
    const Tensor& y = context.output(0);
    int64_t most = 0;
    for (int64_t axis = 0; axis + 1 < y.rank; ++axis) {
      const int64_t extent = y.dim(axis), lines = y.size(0, y.rank - 1) / extent;
      most = std::max(most, Transform::most_buffer(onesided_ ? 2 * extent : extent, lines));
    }
    return most;
  }

  template <class T>
  void compute(const Context& context, int64_t axis, int64_t length, const T* from, T* to,
               double* buffers) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const int64_t parts = x.shape[x.rank - 1], out_parts = y.shape[y.rank - 1];
    const int64_t given = x.shape[axis], made = y.shape[axis];
    const int64_t inner = x.size(axis + 1, x.rank - 1), lines = x.size(0, axis) * inner;
    const Transform transform(length, inverse_, lines);
    const int64_t lanes = transform.lanes();
    const bool mirrored = inverse_ && onesided_;  // the other half is known by symmetry
    const auto fill = [&](int64_t first, int64_t count, double* to_real) {
      const int64_t used = std::min(given, mirrored ? length / 2 + 1 : length);
      for (int64_t k = 0; k < used; ++k) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t o = (first + i) / inner, column = (first + i) % inner;
          const T* value = from + ((o * given + k) * inner + column) * parts;
          double* line = to_real + 2 * k * lanes + i;
          line[0] = static_cast<double>(value[0]);
          if (parts > 1) line[lanes] = static_cast<double>(value[1]);
        }
      }
      if (!mirrored) return;
      for (int64_t k = length / 2 + 1; k < length; ++k) {
        for (int64_t i = 0; i < lanes; ++i) {
          const double* other = to_real + 2 * (length - k) * lanes + i;
          to_real[2 * k * lanes + i] = other[0];
          to_real[(2 * k + 1) * lanes + i] = -other[lanes];
        }
      }
      std::fill_n(to_real + lanes, lanes, 0.0);
      if (length % 2 == 0) std::fill_n(to_real + (length + 1) * lanes, lanes, 0.0);
    };
    const double scale = inverse_ ? 1.0 / static_cast<double>(length) : 1.0;
    const auto take = [&](int64_t first, int64_t count, const double* real) {
      for (int64_t k = 0; k < made; ++k) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t o = (first + i) / inner, column = (first + i) % inner;
          T* value = to + ((o * made + k) * inner + column) * out_parts;
          value[0] = static_cast<T>(real[2 * k * lanes + i] * scale);
          if (out_parts > 1) value[1] = static_cast<T>(real[(2 * k + 1) * lanes + i] * scale);
        }
      }
    };
    transform_lines(context, transform, lines, buffers, fill, take);
  }

  int64_t axis_;
  bool axis_is_input_, inverse_, onesided_;
};

class Stft final : public Kernel {
 public:
  explicit Stft(const kit::NodeView&) {}

  uint64_t workspace(const Context& context) const override {
    return context.output(0).size() == 0 ? 0 : signal_bytes(context, most_buffer(context));
  }

  void run(const Context& context) const override {
    const auto step = static_cast<int64_t>(load<double>(context.input(1)).at(0));
    std::vector<double> window;
    if (context.has_input(2)) window = load<double>(context.input(2));
    const int64_t length = context.has_input(3)
                               ? static_cast<int64_t>(load<double>(context.input(3)).at(0))
                               : static_cast<int64_t>(window.size());
    kit::require(window.empty() || static_cast<int64_t>(window.size()) == length,
                 "STFT: window of ", window.size(), " for frames of ", length);
    if (window.empty()) window.assign(static_cast<size_t>(length), 1.0);
    if (context.output(0).size() == 0) return;
    with_elements(context, most_buffer(context), [&](const auto* from, auto* to, double* buffers) {
      compute(context, step, window, from, to, buffers);
    });
  }

 private:
  static int64_t most_buffer(const Context& context) {
    const Tensor& y = context.output(0);
    return Transform::most_buffer(2 * y.dim(2), y.dim(0) * y.dim(1));
  }

  template <class T>
  void compute(const Context& context, int64_t step, const std::vector<double>& window,
               const T* from, T* to, double* buffers) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const int64_t parts = x.rank > 2 ? x.shape[2] : 1, samples = x.shape[1];
    const int64_t frames = y.shape[1], bins = y.shape[2], lines = y.shape[0] * frames;
    const auto length = static_cast<int64_t>(window.size());
    const Transform transform(length, false, lines);
    const int64_t lanes = transform.lanes();
    const auto fill = [&](int64_t first, int64_t count, double* to_real) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t n = (first + i) / frames, frame = (first + i) % frames;
        const T* value = from + (n * samples + frame * step) * parts;
        for (int64_t k = 0; k < length; ++k, value += parts) {
          double* line = to_real + 2 * k * lanes + i;
          line[0] = static_cast<double>(value[0]) * window[k];
          if (parts > 1) line[lanes] = static_cast<double>(value[1]) * window[k];
        }
      }
    };
    const auto take = [&](int64_t first, int64_t count, const double* real) {
      for (int64_t k = 0; k < bins; ++k) {
        for (int64_t i = 0; i < count; ++i) {
          T* value = to + ((first + i) * bins + k) * 2;
          value[0] = static_cast<T>(real[2 * k * lanes + i]);
          value[1] = static_cast<T>(real[(2 * k + 1) * lanes + i]);
        }
      }
    };
    transform_lines(context, transform, lines, buffers, fill, take);
  }
};

}  // namespace

KernelSpan signal_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  KernelDef dft{"DFT", 17, 0, make<Dft>, {{0, floats}, {-1, floats}}};
  const std::vector<chipdock_dtype> sizes = {kit::kInt32, kit::kInt64};
  dft.dtypes = {{0, floats}, {1, sizes}, {-1, floats}};
  KernelDef stft{"STFT", 17, 0, make<Stft>, {{0, floats}, {1, sizes}, {2, floats}, {3, sizes}}};
  return {dft, stft};
}

}  // namespace chipdock::plugin::cpu
