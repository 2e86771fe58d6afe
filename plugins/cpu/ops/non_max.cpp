// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: per image and class, the best boxes that overlap no better one too much.
#include <algorithm>

#include "kernel.hpp"

namespace chipdock::plugin::cpu {
namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box read_box(const float* box, bool center) {
  if (center) {  // x, y of the centre, width, height
    return {box[1] - box[3] / 2, box[0] - box[2] / 2, box[1] + box[3] / 2, box[0] + box[2] / 2};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]),
          std::max(box[1], box[3])};
}

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return 0;
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

class NonMax final : public Kernel {
 public:
  explicit NonMax(const kit::NodeView& node) : center_(node.integer("center_point_box", 0) != 0) {}

  void run(const Context& context) const override {
    const Tensor& boxes = context.input(0);
    const Tensor& scores = context.input(1);
    const int64_t images = scores.shape[0], classes = scores.shape[1], count = scores.shape[2];
    const int64_t most = context.has_input(2) ? *context.input(2).as<int64_t>() : 0;
    const float limit = context.has_input(3) ? *context.input(3).as<float>() : 0.0F;
    const bool bounded = context.has_input(4);
    const float least = bounded ? *context.input(4).as<float>() : 0.0F;
    int64_t* out = context.output(0).mut<int64_t>();
    int64_t rows = 0;
    std::vector<int64_t> order;
    std::vector<Box> chosen;
    for (int64_t line = 0; line < images * classes; ++line) {
      const float* score = scores.as<float>() + line * count;
      const float* box = boxes.as<float>() + line / classes * count * 4;
      order.clear();
      for (int64_t i = 0; i < count; ++i) {
        if (!bounded || score[i] > least) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [score](int64_t a, int64_t b) { return score[a] > score[b]; });
      chosen.clear();
      for (const int64_t i : order) {
        if (static_cast<int64_t>(chosen.size()) >= most) break;
        const Box candidate = read_box(box + i * 4, center_);
        const bool covered = std::any_of(chosen.begin(), chosen.end(), [&](const Box& better) {
          return overlap(candidate, better) > limit;
        });
        if (covered) continue;
        chosen.push_back(candidate);
        out[rows * 3] = line / classes;
        out[rows * 3 + 1] = line % classes;
        out[rows * 3 + 2] = i;
        ++rows;
      }
    }
    if (context.extents != nullptr && context.extents[0] != nullptr) {
      context.extents[0][0] = rows;
      context.extents[0][1] = 3;
    } else {
      kit::require(rows == context.output(0).shape[0], "NonMaxSuppression: ", rows,
                   " boxes came out, the output has ", context.output(0).shape[0],
                   " and there is no place for the true extents");
    }
  }

 private:
  bool center_;
};

}  // namespace

KernelSpan non_max_kernels() {
  KernelDef def{"NonMaxSuppression", 10, 0, make<NonMax>};
  def.dtypes = {{0, {kit::kFloat32}}, {1, {kit::kFloat32}}, {2, {kit::kInt64}},
                {3, {kit::kFloat32}}, {4, {kit::kFloat32}}, {-1, {kit::kInt64}}};
  return {def};
}

}  // namespace chipdock::plugin::cpu
