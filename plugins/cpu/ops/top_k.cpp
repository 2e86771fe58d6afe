// SPDX-License-Identifier: Apache-2.0
// TopK of any ordered dtype. Among equal values the lower index comes first, and a NaN counts as
// the largest value; unsorted results are sorted too, which the operator allows.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/number.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

using Entry =
    std::pair<uint64_t, int64_t>;  // Key, index: the pair's own order is the result's order.

/// Few out of many: a sorted list of the best so far, to which most entries do not get.
void pick_few(const std::vector<uint64_t>& keys, int64_t k, std::vector<Entry>& out) {
  out.clear();
  for (int64_t i = 0; i < static_cast<int64_t>(keys.size()); ++i) {
    if (static_cast<int64_t>(out.size()) == k) {
      if (keys[i] >= out.back().first) continue;
      out.pop_back();
    }
    const Entry entry(keys[i], i);
    out.insert(std::upper_bound(out.begin(), out.end(), entry), entry);
  }
}

void pick_many(const std::vector<uint64_t>& keys, int64_t k, std::vector<Entry>& out) {
  out.clear();
  for (int64_t i = 0; i < static_cast<int64_t>(keys.size()); ++i) out.emplace_back(keys[i], i);
  if (k < static_cast<int64_t>(out.size()))
    std::nth_element(out.begin(), out.begin() + k, out.end());
  std::sort(out.begin(), out.begin() + k);
}

class TopKKernel : public Kernel {
 public:
  explicit TopKKernel(const kit::NodeView& node)
      : axis_(node.integer("axis", -1)), largest_(node.integer("largest", 1) != 0) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "TopK";
    const Tensor& from = context.input(0);
    const Tensor& shape = context.has_output(0) ? context.output(0) : context.output(1);
    const int64_t axis = kit::normalize_axis(axis_, from.rank, kOp);
    const int width = width_of(from, kOp);
    const int64_t extent = from.shape[axis], k = shape.shape[axis];
    const int64_t inner = from.size(axis + 1, from.rank);
    const int64_t lines = from.size(0, axis) * inner;
    kit::require(k <= extent && shape.size() == lines * k, kOp, ": k is ", k, ", axis ", axis,
                 " of input ", shape_text(from), " has ", extent);
    if (lines * k == 0) return;
    for_units(context, lines, extent * 32, [&](int64_t begin, int64_t end) {
      std::vector<uint64_t> keys(static_cast<size_t>(extent));
      std::vector<Entry> best;
      for (int64_t line = begin; line < end; ++line) {
        const int64_t row = line / inner, column = line % inner;
        const char* in = from.as<char>() + (row * extent * inner + column) * width;
        order_keys(from.dtype, in, inner * width, extent, keys.data(), kOp);
        if (largest_) {
          for (uint64_t& key : keys) key = ~key;
        }
        if (k <= 32 && k * 4 <= extent) {
          pick_few(keys, k, best);
        } else {
          pick_many(keys, k, best);
        }
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at = (row * k + i) * inner + column;
          const int64_t index = best[i].second;
          if (context.has_output(0)) {
            std::memcpy(context.output(0).mut<char>() + at * width, in + index * inner * width,
                        static_cast<size_t>(width));
          }
          if (context.has_output(1)) context.output(1).mut<int64_t>()[at] = index;
        }
      }
    });
  }

 private:
  int64_t axis_;
  bool largest_;
};

}  // namespace

KernelSpan top_k_kernels() {
  KernelDef def{"TopK", 1, 0, make<TopKKernel>};
  def.supports = moves_bytes;
  def.host_inputs = 1 << 1;
  return {def};
}

}  // namespace chipdock::plugin::cpu
