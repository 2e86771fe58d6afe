// SPDX-License-Identifier: Apache-2.0
// AffineGrid: where each pixel of the wanted image lies in the given one. Computed in float, or in
// double for doubles. The function body of ONNX 1.23 squeezes the batch away where it is 1.
#include <array>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

class AffineGrid final : public Kernel {
 public:
  explicit AffineGrid(const kit::NodeView& node) : align_(node.integer("align_corners", 0) != 0) {}

  void run(const Context& context) const override {
    in_float_or_double(context.input(0).dtype,
                       [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  /// The middle of pixel `at` of `extent` where the image reaches from -1 to 1. With align_corners
  /// -1 and 1 are the middles of the outermost pixels; of one pixel alone it is -1.
  template <class T>
  T middle(int64_t at, int64_t extent) const {
    if (!align_) return static_cast<T>(2 * at + 1) / static_cast<T>(extent) - T{1};
    return extent == 1 ? T{-1} : static_cast<T>(2 * at) / static_cast<T>(extent - 1) - T{1};
  }

  template <class T>
  void compute(const Context& context) const {
    const Tensor& y = context.output(0);
    const int64_t axes = y.dim(y.rank - 1), columns = axes + 1;
    const int64_t places = y.size(1, y.rank - 1);
    const std::vector<T> theta = load<T>(context.input(0));
    std::vector<T> out(static_cast<size_t>(y.size()));
    over(context, y.dim(0) * places, 256, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        // The last axis of the image is the first coordinate; after them comes a 1.
        std::array<T, 4> place = {};
        int64_t rest = at % places;
        for (int64_t i = 0; i < axes; ++i) {
          const int64_t extent = y.dim(axes - i);
          place[static_cast<size_t>(i)] = middle<T>(rest % extent, extent);
          rest /= extent;
        }
        place[static_cast<size_t>(axes)] = T{1};
        const T* rows = theta.data() + at / places * axes * columns;
        for (int64_t i = 0; i < axes; ++i) {
          T sum = 0;
          for (int64_t k = 0; k < columns; ++k) {
            sum += rows[i * columns + k] * place[static_cast<size_t>(k)];
          }
          out[static_cast<size_t>(at * axes + i)] = sum;
        }
      }
    });
    store(out, y);
  }

  bool align_;
};

}  // namespace

KernelSpan affine_grid_kernels() {
  KernelDef def{"AffineGrid", 20};
  def.create = make<AffineGrid>;
  const auto floats = dtypes_of(FloatTypes{});
  def.dtypes = {{0, floats}, {1, {kit::kInt64}}, {-1, floats}};
  def.host_inputs = 1 << 1;
  return {def};
}

}  // namespace chipdock::plugin::cpu
