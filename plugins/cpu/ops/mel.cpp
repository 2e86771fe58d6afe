// SPDX-License-Identifier: Apache-2.0
// MelWeightMatrix: triangles over the bins of a spectrum, evenly spaced in mel.
#include <cmath>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10.0, mel / 2595) - 1); }

class MelWeightMatrix final : public Kernel {
 public:
  explicit MelWeightMatrix(const kit::NodeView&) {}
  void run(const Context& context) const override {
    const auto scalar = [&context](uint32_t i) { return load<double>(context.input(i)).at(0); };
    const auto triangles = static_cast<int64_t>(scalar(0));
    const double length = scalar(1), rate = scalar(2);
    const int64_t bins = context.output(0).shape[0];
    const double low = to_mel(scalar(3)), high = to_mel(scalar(4));
    const double step = (high - low) / static_cast<double>(triangles + 2);
    const auto bin = [&](int64_t i) {
      const double hertz = to_hertz(low + static_cast<double>(i) * step);
      const double at = std::floor((length + 1) * hertz / rate);
      kit::require(at >= 0 && at < static_cast<double>(bins), "MelWeightMatrix: ", hertz,
                   " Hz is bin ", at, " of a spectrum of ", bins);
      return static_cast<int64_t>(at);
    };
    std::vector<double> out(static_cast<size_t>(context.output(0).size()));
    for (int64_t i = 0; i < triangles; ++i) {
      const int64_t left = bin(i), center = bin(i + 1), right = bin(i + 2);
      if (left == center) out[center * triangles + i] = 1;
      for (int64_t k = left; k <= center && left < center; ++k)
        out[k * triangles + i] = static_cast<double>(k - left) / static_cast<double>(center - left);
      for (int64_t k = center; k < right; ++k) {
        out[k * triangles + i] =
            static_cast<double>(right - k) / static_cast<double>(right - center);
      }
    }
    store(out, context.output(0));
  }
};

}  // namespace

KernelSpan mel_kernels() {
  KernelDef def{"MelWeightMatrix", 17, 0, make<MelWeightMatrix>};
  def.dtypes = {{-1, dtypes_of(NumberTypes{})}};
  return {def};
}

}  // namespace chipdock::plugin::cpu
