// SPDX-License-Identifier: Apache-2.0
// Einsum. Two floating-point operands are multiplied as matrices (contraction/product.hpp); the rest
// goes by loops over all labels, right for every equation and dtype. Labels of the output run
// outside, those summed over inside; "..." stands for axes counted from the last.
#include <algorithm>
#include <map>
#include <string>

#include "ops/contraction/product.hpp"
#include "ops/conversion/values.hpp"
#include "ops/movement/element.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Labels of one term, "..." as that many upper-case stand-ins numbered from the last.
std::vector<int> labels_of(const std::string& term, int64_t rank) {
  std::vector<int> out;
  const size_t dots = term.find("...");
  const int64_t named = static_cast<int64_t>(term.size()) - (dots == std::string::npos ? 0 : 3);
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int64_t k = rank - named; k-- > 0;) out.push_back(-1 - static_cast<int>(k));
      i += 2;
    } else {
      out.push_back(term[i]);
    }
  }
  kit::require(static_cast<int64_t>(out.size()) == rank, "Einsum: term '", term, "' names ",
               out.size(), " axes of a tensor of rank ", rank);
  return out;
}

struct Loop {
  int64_t extent = 1;
  std::vector<int64_t> strides;  ///< Per input; 0 where the input does not have the label.
};

class Einsum final : public Kernel {
 public:
  explicit Einsum(const kit::NodeView& node) {
    std::string text;
    for (const char c : node.text("equation", "")) {
      if (c != ' ') text.push_back(c);
    }
    const size_t arrow = text.find("->");
    std::string term;
    for (const char c : text.substr(0, arrow)) {
      if (c == ',') {
        terms_.push_back(term);
        term.clear();
      } else {
        term.push_back(c);
      }
    }
    terms_.push_back(term);
    if (arrow != std::string::npos) {
      result_ = text.substr(arrow + 2);
      return;
    }
    std::map<char, int> seen;  // labels that occur once, in order, behind "..."
    bool dots = false;
    for (const std::string& one : terms_) {
      for (const char c : one) (c == '.' ? void(dots = true) : void(++seen[c]));
    }
    if (dots) result_ = "...";
    for (const auto& [label, count] : seen) {
      if (count == 1) result_.push_back(label);
    }
  }

  uint64_t workspace(const Context& context) const override {
    uint64_t bytes = 0;
    with_product(context, [&](const ProductPlan& plan, auto tag) {
      bytes = product_bytes<typename decltype(tag)::type>(context, plan);
    });
    return bytes;
  }

  void run(const Context& context) const override {
    kit::require(context.input_count == terms_.size(), "Einsum: ", terms_.size(), " terms for ",
                 context.input_count, " inputs");
    if (with_product(context, [&](const ProductPlan& plan, auto tag) {
          run_product<typename decltype(tag)::type>(context, plan);
        })) {
      return;
    }
    if (terms_.size() == 1 && rearrange(context)) return;
    const chipdock_dtype type = context.input(0).dtype;
    in_float_or_double(type, [&](auto tag) {
      using Float = typename decltype(tag)::type;
      const bool whole = type.code == CHIPDOCK_DTYPE_INT || type.code == CHIPDOCK_DTYPE_UINT;
      if (whole && type.bits == 64) return compute<int64_t>(context);
      compute<Float>(context);
    });
  }

 private:
  /// Calls body(plan, tag of float or double) if the call is a product of matrices.
  template <class Body>
  bool with_product(const Context& context, const Body& body) const {
    const Tensor& y = context.output(0);
    if (terms_.size() != 2 || context.input_count != 2 || y.size() == 0) return false;
    if (y.dtype.code != CHIPDOCK_DTYPE_FLOAT && y.dtype.code != CHIPDOCK_DTYPE_BFLOAT) return false;
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    const ProductPlan plan(a, labels_of(terms_[0], a.rank), b, labels_of(terms_[1], b.rank), y,
                           labels_of(result_, y.rank));
    if (!plan.fits()) return false;
    if (is(y.dtype, kit::kFloat64)) {
      body(plan, Tag<double>{});
    } else {
      body(plan, Tag<float>{});
    }
    return true;
  }

  /// One operand without sums: elements move, also those of a diagonal.
  bool rearrange(const Context& context) const {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const std::vector<int> from = labels_of(terms_[0], x.rank), to = labels_of(result_, y.rank);
    std::map<int, int64_t> steps;
    int64_t strides[kMaxRank];
    strides_of(x, strides);
    for (int32_t axis = 0; axis < x.rank; ++axis) {
      if (std::find(to.begin(), to.end(), from[axis]) == to.end()) return false;
      if (x.shape[axis] != 1) steps[from[axis]] += strides[axis];
    }
    strides_of(y, strides);
    Box box;
    for (int32_t i = 0; i < y.rank; ++i) box.add(y.shape[i], steps[to[i]], strides[i]);
    copy_box(context, box, x.data, y.data, width_of(x, "Einsum"));
    return true;
  }

  template <class T>
  void compute(const Context& context) const {
    std::map<int, Loop> loops;
    std::vector<std::vector<T>> values;
    for (uint32_t i = 0; i < context.input_count; ++i) {
      const Tensor& x = context.input(i);
      if constexpr (std::is_same_v<T, int64_t>) {
        values.emplace_back(x.as<int64_t>(), x.as<int64_t>() + x.size());
      } else {
        values.push_back(load<T>(x));
      }
      int64_t strides[kMaxRank];
      strides_of(x, strides);
      const std::vector<int> labels = labels_of(terms_[i], x.rank);
      for (int32_t axis = 0; axis < x.rank; ++axis) {
        Loop& loop = loops[labels[axis]];
        loop.strides.resize(context.input_count, 0);
        if (x.shape[axis] == 1) continue;
        loop.extent = x.shape[axis];
        loop.strides[i] += strides[axis];  // a label that is there twice walks the diagonal
      }
    }
    std::vector<Loop> outer, inner;
    for (const int label : labels_of(result_, context.output(0).rank)) {
      const auto found = loops.find(label);
      if (found == loops.end()) {
        outer.push_back({1, std::vector<int64_t>(context.input_count, 0)});
        continue;
      }
      outer.push_back(found->second);
      loops.erase(found);
    }
    for (const auto& [label, loop] : loops) inner.push_back(loop);
    std::vector<T> out(static_cast<size_t>(context.output(0).size()));
    int64_t terms = 1;
    for (const Loop& loop : inner) terms *= loop.extent;
    const int64_t grain = std::max<int64_t>(1, 4096 / (terms + 1));
    over(context, context.output(0).size(), grain, [&](int64_t begin, int64_t end) {
      std::vector<const T*> from(values.size());
      for (int64_t at = begin; at < end; ++at) {
        for (size_t i = 0; i < from.size(); ++i) from[i] = values[i].data();
        int64_t rest = at;
        for (size_t axis = outer.size(); axis-- > 0;) {
          const int64_t index = rest % outer[axis].extent;
          rest /= outer[axis].extent;
          for (size_t i = 0; i < from.size(); ++i) from[i] += index * outer[axis].strides[i];
        }
        out[at] = sum(inner, from, 0);
      }
    });
    if constexpr (std::is_same_v<T, int64_t>) {
      std::copy(out.begin(), out.end(), context.output(0).mut<int64_t>());
    } else {
      store(out, context.output(0));
    }
  }

  /// `from` is as it was when this returns.
  template <class T>
  static T sum(const std::vector<Loop>& inner, std::vector<const T*>& from, size_t depth) {
    if (depth == inner.size()) {
      T product = *from[0];
      for (size_t i = 1; i < from.size(); ++i) product *= *from[i];
      return product;
    }
    const Loop& loop = inner[depth];
    T total = 0;
    if (depth + 1 == inner.size() && from.size() <= 2) {
      const T* a = from[0];
      const T* b = from.back();
      const int64_t step_a = loop.strides[0], step_b = loop.strides[from.size() - 1];
      for (int64_t k = 0; k < loop.extent; ++k, a += step_a, b += step_b) {
        total += from.size() == 2 ? *a * *b : *a;
      }
      return total;
    }
    for (int64_t k = 0; k < loop.extent; ++k) {
      total += sum(inner, from, depth + 1);
      for (size_t i = 0; i < from.size(); ++i) from[i] += loop.strides[i];
    }
    for (size_t i = 0; i < from.size(); ++i) from[i] -= loop.extent * loop.strides[i];
    return total;
  }

  std::vector<std::string> terms_;
  std::string result_;
};

}  // namespace

KernelSpan einsum_kernels() {
  const auto numbers = dtypes_of(NumberTypes{});
  return {{"Einsum", 12, 0, make<Einsum>, {{0, numbers}, {-1, numbers}}}};
}

}  // namespace chipdock::plugin::cpu
