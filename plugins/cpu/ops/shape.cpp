// SPDX-License-Identifier: Apache-2.0
// Shape and Size: read nothing of the input but its extents.
#include <algorithm>
#include <cstring>

#include "kernel.hpp"
#include "ops/movement/element.hpp"

namespace chipdock::plugin::cpu {
namespace {

class ShapeKernel : public Kernel {
 public:
  explicit ShapeKernel(const kit::NodeView& node)
      : start_(node.integer("start", 0)), end_(node.integer("end", INT64_MAX)) {}
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int64_t rank = from.rank;
    const int64_t start = std::clamp(start_ < 0 ? start_ + rank : start_, int64_t{0}, rank);
    const int64_t end = std::clamp(end_ < 0 ? end_ + rank : end_, start, rank);
    if (to.size() != end - start) {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Shape: output has ", to.size(), " elements, dims ",
                start, " to ", end, " of ", shape_text(from), " make ", end - start);
    }
    std::copy(from.shape + start, from.shape + end, to.mut<int64_t>());
  }

 private:
  int64_t start_, end_;
};

class SizeKernel : public Kernel {
 public:
  explicit SizeKernel(const kit::NodeView&) {}
  void run(const Context& context) const override {
    *context.output(0).mut<int64_t>() = context.input(0).size();
  }
};

}  // namespace

KernelSpan shape_kernels() {
  return {{"Shape", 1, 0, make<ShapeKernel>, {{-1, {kit::kInt64}}}},
          {"Size", 1, 0, make<SizeKernel>, {{-1, {kit::kInt64}}}}};
}

}  // namespace chipdock::plugin::cpu
