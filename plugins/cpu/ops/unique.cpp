// SPDX-License-Identifier: Apache-2.0
// Unique over elements or over the slices of an axis: sorts slices by the keys of their elements,
// then numbers the groups by value or by first appearance. -0 equals 0, and all NaN are one value.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/number.hpp"

namespace chipdock::plugin::cpu {
namespace {

struct Groups {
  std::vector<int64_t> first;    // Slice in which each group appears first.
  std::vector<int64_t> counts;   // Slices of each group.
  std::vector<int64_t> inverse;  // Group of each slice.
};

/// `keys` holds `count` slices of `length` keys.
Groups group(const std::vector<uint64_t>& keys, int64_t count, int64_t length, bool sorted) {
  const auto slice = [&](int64_t i) { return keys.begin() + i * length; };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(slice(a), slice(a) + length, slice(b), slice(b) + length);
  });
  Groups out;
  out.inverse.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !std::equal(slice(order[i]), slice(order[i]) + length, slice(order[i - 1]))) {
      out.first.push_back(order[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[order[i]] = static_cast<int64_t>(out.first.size()) - 1;
  }
  if (sorted) return out;
  std::vector<int64_t> by_first(out.first.size()), rank(out.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return out.first[a] < out.first[b]; });
  Groups renamed = out;
  for (size_t i = 0; i < by_first.size(); ++i) {
    rank[by_first[i]] = static_cast<int64_t>(i);
    renamed.first[i] = out.first[by_first[i]];
    renamed.counts[i] = out.counts[by_first[i]];
  }
  for (int64_t& number : renamed.inverse) number = rank[number];
  return renamed;
}

class UniqueKernel : public Kernel {
 public:
  explicit UniqueKernel(const kit::NodeView& node)
      : flat_(!node.has("axis")),
        axis_(node.integer("axis", 0)),
        sorted_(node.integer("sorted", 1) != 0) {}
  void run(const Context& context) const override {
    constexpr const char* kOp = "Unique";
    const Tensor& from = context.input(0);
    const int width = width_of(from, kOp);
    const int64_t axis = flat_ ? 0 : kit::normalize_axis(axis_, from.rank, kOp);
    const int64_t count = flat_ ? from.size() : from.shape[axis];
    const int64_t outer = flat_ ? 1 : from.size(0, axis);
    const int64_t inner = flat_ ? 1 : from.size(axis + 1, from.rank);
    const int64_t length = outer * inner;
    std::vector<uint64_t> keys(static_cast<size_t>(count * length));
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        order_keys(from.dtype, from.as<char>() + (o * count + i) * inner * width, width, inner,
                   keys.data() + i * length + o * inner, kOp);
      }
    }
    const Groups groups = group(keys, count, length, sorted_);
    const int64_t unique = static_cast<int64_t>(groups.first.size());
    if (context.has_output(0)) {
      const int64_t run = inner * width;
      char* out = context.output(0).mut<char>();
      for (int64_t o = 0; o < outer && run > 0; ++o) {
        for (int64_t i : groups.first) {
          std::memcpy(out, from.as<char>() + (o * count + i) * run, static_cast<size_t>(run));
          out += run;
        }
      }
    }
    write(context, 1, groups.first);
    write(context, 2, groups.inverse);
    write(context, 3, groups.counts);
    set_extents(context, axis, unique);
  }

 private:
  static void write(const Context& context, uint32_t output, const std::vector<int64_t>& values) {
    if (!context.has_output(output)) return;
    std::copy(values.begin(), values.end(), context.output(output).mut<int64_t>());
  }
  static void set_extents(const Context& context, int64_t axis, int64_t unique) {
    for (uint32_t i = 0; i < context.output_count; ++i) {
      if (!context.has_output(i)) continue;
      const Tensor& to = context.output(i);
      const int64_t along = i == 0 ? axis : 0;
      const int64_t extent = i == 2 ? to.shape[0] : unique;
      if (context.extents != nullptr && context.extents[i] != nullptr) {
        std::copy(to.shape, to.shape + to.rank, context.extents[i]);
        context.extents[i][along] = extent;
      } else if (to.shape[along] != extent) {
        kit::fail(CHIPDOCK_FAILED_PRECONDITION, "Unique: ", extent, " entries came out, output ", i,
                  " has ", to.shape[along], " and there is no place for the true extents");
      }
    }
  }

  bool flat_;
  int64_t axis_;
  bool sorted_;
};

}  // namespace

KernelSpan unique_kernels() {
  KernelDef def{"Unique", 11, 0, make<UniqueKernel>};
  def.supports = moves_bytes;
  return {def};
}

}  // namespace chipdock::plugin::cpu
