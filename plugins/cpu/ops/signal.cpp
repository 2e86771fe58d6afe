// SPDX-License-Identifier: Apache-2.0
// DFT and STFT. A power of two is transformed by halves, any other length by Bluestein's chirp, so
// that no length costs more than n log n. All in double.
#include <cmath>
#include <complex>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

using Complex = std::complex<double>;
constexpr double kTau = 6.283185307179586476925286766559;

Complex turn(double part) { return {std::cos(kTau * part), std::sin(kTau * part)}; }

/// In place; the length is a power of two. `sign` is -1 forwards.
void transform_by_halves(std::vector<Complex>& x, int sign) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  std::vector<Complex> roots(n / 2 + 1);
  for (size_t k = 0; k < roots.size(); ++k)
    roots[k] = turn(sign * static_cast<double>(k) / static_cast<double>(n));
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t first = 0; first < n; first += 2 * half) {
      for (size_t k = 0; k < half; ++k) {
        const Complex odd = x[first + half + k] * roots[k * (n / (2 * half))];
        x[first + half + k] = x[first + k] - odd;
        x[first + k] += odd;
      }
    }
  }
}

/// Transforms of one length, not scaled.
class Transform {
 public:
  Transform(size_t length, int sign) : length_(length), sign_(sign) {
    if (length < 2 || (length & (length - 1)) == 0) return;
    size_t padded = 1;
    while (padded < 2 * length - 1) padded *= 2;
    chirp_.resize(length);
    spectrum_.assign(padded, 0);
    for (size_t k = 0; k < length; ++k) {
      // k^2 modulo 2n keeps the angle exact for long inputs.
      const auto square = static_cast<double>(k * k % (2 * length));
      chirp_[k] = turn(sign * square / static_cast<double>(2 * length));
      spectrum_[k] = std::conj(chirp_[k]);
      if (k > 0) spectrum_[padded - k] = spectrum_[k];
    }
    transform_by_halves(spectrum_, -1);
  }

  void run(std::vector<Complex>& x) const {
    if (chirp_.empty()) return transform_by_halves(x, sign_);
    std::vector<Complex> work(spectrum_.size());
    for (size_t k = 0; k < length_; ++k) work[k] = x[k] * chirp_[k];
    transform_by_halves(work, -1);
    for (size_t k = 0; k < work.size(); ++k) work[k] *= spectrum_[k];
    transform_by_halves(work, 1);
    const double scale = 1.0 / static_cast<double>(work.size());
    for (size_t k = 0; k < length_; ++k) x[k] = work[k] * scale * chirp_[k];
  }

 private:
  size_t length_;
  int sign_;
  std::vector<Complex> chirp_, spectrum_;
};

class Dft final : public Kernel {
 public:
  explicit Dft(const kit::NodeView& node)
      : axis_(node.integer("axis", 1)),
        axis_is_input_(node.since_version() >= 20),
        inverse_(node.integer("inverse", 0) != 0),
        onesided_(node.integer("onesided", 0) != 0) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    int64_t axis = axis_is_input_ ? -2 : axis_;
    if (axis_is_input_ && context.has_input(2)) axis = *context.input(2).as<int64_t>();
    axis = kit::normalize_axis(axis, x.rank, "DFT");
    const int64_t parts = x.shape[x.rank - 1], out_parts = y.shape[y.rank - 1];
    const int64_t given = x.shape[axis], made = y.shape[axis];
    int64_t length = made;
    if (context.has_input(1)) {
      length = static_cast<int64_t>(load<double>(context.input(1)).at(0));
    } else if (onesided_ && !inverse_) {
      length = given;
    }
    if (y.size() == 0) return;
    const std::vector<double> from = load<double>(x);
    std::vector<double> to(static_cast<size_t>(y.size()));
    const Transform transform(static_cast<size_t>(length), inverse_ ? 1 : -1);
    const int64_t inner = x.size(axis + 1, x.rank - 1), lines = x.size(0, axis) * inner;
    const bool mirrored = inverse_ && onesided_;  // the other half is known by symmetry
    over(context, lines, 1, [&](int64_t begin, int64_t end) {
      std::vector<Complex> line(static_cast<size_t>(length));
      for (int64_t at = begin; at < end; ++at) {
        const int64_t o = at / inner, i = at % inner;
        std::fill(line.begin(), line.end(), Complex{});
        const int64_t used = mirrored ? length / 2 + 1 : length;
        for (int64_t k = 0; k < std::min(given, used); ++k) {
          const double* value = &from[((o * given + k) * inner + i) * parts];
          line[k] = {value[0], parts > 1 ? value[1] : 0.0};
        }
        if (mirrored) {
          for (int64_t k = length / 2 + 1; k < length; ++k) line[k] = std::conj(line[length - k]);
          line[0] = line[0].real();
          if (length % 2 == 0) line[length / 2] = line[length / 2].real();
        }
        transform.run(line);
        const double scale = inverse_ ? 1.0 / static_cast<double>(length) : 1.0;
        for (int64_t k = 0; k < made; ++k) {
          double* value = &to[((o * made + k) * inner + i) * out_parts];
          value[0] = line[k].real() * scale;
          if (out_parts > 1) value[1] = line[k].imag() * scale;
        }
      }
    });
    store(to, y);
  }

 private:
  int64_t axis_;
  bool axis_is_input_, inverse_, onesided_;
};

class Stft final : public Kernel {
 public:
  explicit Stft(const kit::NodeView&) {}

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const auto step = static_cast<int64_t>(load<double>(context.input(1)).at(0));
    std::vector<double> window;
    if (context.has_input(2)) window = load<double>(context.input(2));
    const int64_t parts = x.rank > 2 ? x.shape[2] : 1, samples = x.shape[1];
    const int64_t frames = y.shape[1], bins = y.shape[2];
    const int64_t length = context.has_input(3)
                               ? static_cast<int64_t>(load<double>(context.input(3)).at(0))
                               : static_cast<int64_t>(window.size());
    kit::require(window.empty() || static_cast<int64_t>(window.size()) == length,
                 "STFT: window of ", window.size(), " for frames of ", length);
    const std::vector<double> from = load<double>(x);
    std::vector<double> to(static_cast<size_t>(y.size()));
    const Transform transform(static_cast<size_t>(length), -1);
    over(context, y.shape[0] * frames, 1, [&](int64_t begin, int64_t end) {
      std::vector<Complex> line(static_cast<size_t>(length));
      for (int64_t at = begin; at < end; ++at) {
        const int64_t n = at / frames, first = at % frames * step;
        for (int64_t k = 0; k < length; ++k) {
          const double* value = &from[(n * samples + first + k) * parts];
          line[k] =
              Complex{value[0], parts > 1 ? value[1] : 0.0} * (window.empty() ? 1.0 : window[k]);
        }
        transform.run(line);
        for (int64_t k = 0; k < bins; ++k) {
          to[(at * bins + k) * 2] = line[k].real();
          to[(at * bins + k) * 2 + 1] = line[k].imag();
        }
      }
    });
    store(to, y);
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
