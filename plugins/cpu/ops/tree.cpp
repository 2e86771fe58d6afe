// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble of ai.onnx.ml: decision trees whose leaves are added up per target.
#include <cmath>
#include <limits>
#include <set>

#include "ops/conversion/values.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum Mode { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };
enum Aggregate { kAverage, kSum, kMin, kMax };
enum Transform { kNone, kSoftmax, kLogistic };

std::vector<double> values_of(const kit::NodeView& node, const char* name) {
  const chipdock_tensor* given = node.tensor(name);
  if (given == nullptr) return {};
  Tensor tensor;
  tensor.dtype = given->dtype;
  tensor.rank = given->rank;
  tensor.shape = given->shape;
  tensor.data = given->host;
  return load<double>(tensor);
}

class TreeEnsemble final : public Kernel {
 public:
  explicit TreeEnsemble(const kit::NodeView& node)
      : roots_(node.integers("tree_roots")),
        targets_(node.integer("n_targets", 1)),
        aggregate_(node.integer("aggregate_function", kSum)),
        transform_(node.integer("post_transform", kNone)),
        weights_(values_of(node, "leaf_weights")),
        weight_targets_(node.integers("leaf_targetids")) {
    if (aggregate_ < kAverage || aggregate_ > kMax || transform_ < kNone ||
        transform_ > kLogistic) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "TreeEnsemble: aggregate_function ", aggregate_,
                " and post_transform ", transform_, ", known are 0 to 3 and 0 to 2");
    }
    const std::vector<double> modes = values_of(node, "nodes_modes");
    const std::vector<double> splits = values_of(node, "nodes_splits");
    const std::vector<double> members = values_of(node, "membership_values");
    const std::vector<int64_t> features = node.integers("nodes_featureids");
    const std::vector<int64_t> missing = node.integers("nodes_missing_value_tracks_true");
    const std::vector<int64_t> yes = node.integers("nodes_truenodeids");
    const std::vector<int64_t> no = node.integers("nodes_falsenodeids");
    const std::vector<int64_t> yes_leaf = node.integers("nodes_trueleafs");
    const std::vector<int64_t> no_leaf = node.integers("nodes_falseleafs");
    const size_t count = modes.size();
    kit::require(splits.size() == count && features.size() == count && yes.size() == count &&
                     no.size() == count && yes_leaf.size() == count && no_leaf.size() == count &&
                     (missing.empty() || missing.size() == count) &&
                     weights_.size() == weight_targets_.size(),
                 "TreeEnsemble: the attributes nodes_* or leaf_* differ in length");
    auto member = members.begin();
    for (size_t i = 0; i < count; ++i) {
      Branch branch;
      branch.mode = static_cast<int>(modes[i]);
      branch.split = splits[i];
      branch.feature = features[i];
      branch.missing = !missing.empty() && missing[i] != 0;
      branch.yes = place(yes[i], yes_leaf[i] != 0, count);
      branch.no = place(no[i], no_leaf[i] != 0, count);
      if (branch.mode == kMember) {  // sets follow each other, each ended by a NaN
        for (; member != members.end() && !std::isnan(*member); ++member)
          branch.members.insert(*member);
        if (member != members.end()) ++member;
      }
      branches_.push_back(std::move(branch));
    }
    for (const int64_t root : roots_) place(root, false, count);
    for (const int64_t target : weight_targets_) {
      kit::require(target >= 0 && target < targets_, "TreeEnsemble: target ", target, " of ",
                   targets_);
    }
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const int64_t rows = x.shape[0], features = x.shape[1];
    const std::vector<double> values = load<double>(x);
    std::vector<double> out(static_cast<size_t>(rows * targets_));
    over(context, rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        predict(values.data() + row * features, features, out.data() + row * targets_);
    });
    store(out, context.output(0));
  }

 private:
  struct Branch {
    int mode = 0;
    double split = 0;
    int64_t feature = 0;
    bool missing = false;
    int64_t yes = 0, no = 0;  ///< A node, or -1 - leaf.
    std::set<double> members;
  };

  int64_t place(int64_t id, bool leaf, size_t nodes) const {
    const size_t most = leaf ? weights_.size() : nodes;
    kit::require(id >= 0 && static_cast<size_t>(id) < most, "TreeEnsemble: there is no ",
                 leaf ? "leaf " : "node ", id, ", the attributes have ", most);
    return leaf ? -1 - id : id;
  }

  static bool holds(const Branch& branch, double value) {
    if (std::isnan(value) && branch.missing) return true;
    switch (branch.mode) {
      case kLessEqual:
        return value <= branch.split;
      case kLess:
        return value < branch.split;
      case kGreaterEqual:
        return value >= branch.split;
      case kGreater:
        return value > branch.split;
      case kEqual:
        return value == branch.split;
      case kNotEqual:
        return value != branch.split;
      default:
        return branch.members.count(value) != 0;
    }
  }

  void predict(const double* x, int64_t features, double* out) const {
    const double start = aggregate_ == kMin   ? std::numeric_limits<float>::max()
                         : aggregate_ == kMax ? std::numeric_limits<float>::lowest()
                                              : 0;
    std::fill(out, out + targets_, start);
    for (const int64_t root : roots_) {
      int64_t at = root;
      for (size_t depth = 0; at >= 0; ++depth) {
        const Branch& branch = branches_[static_cast<size_t>(at)];
        kit::require(branch.feature >= 0 && branch.feature < features && depth <= branches_.size(),
                     "TreeEnsemble: feature ", branch.feature, " of ", features,
                     ", or a tree with a cycle");
        at = holds(branch, x[branch.feature]) ? branch.yes : branch.no;
      }
      const auto leaf = static_cast<size_t>(-1 - at);
      double& sum = out[weight_targets_[leaf]];
      if (aggregate_ == kMin) {
        sum = std::min(sum, weights_[leaf]);
      } else if (aggregate_ == kMax) {
        sum = std::max(sum, weights_[leaf]);
      } else {
        sum += aggregate_ == kAverage ? weights_[leaf] / static_cast<double>(roots_.size())
                                      : weights_[leaf];
      }
    }
    if (transform_ == kLogistic) {
      for (int64_t i = 0; i < targets_; ++i) out[i] = 1 / (1 + std::exp(-out[i]));
    } else if (transform_ == kSoftmax) {
      const double largest = *std::max_element(out, out + targets_);
      double sum = 0;
      for (int64_t i = 0; i < targets_; ++i) sum += out[i] = std::exp(out[i] - largest);
      for (int64_t i = 0; i < targets_; ++i) out[i] /= sum;
    }
  }

  std::vector<int64_t> roots_;
  int64_t targets_, aggregate_, transform_;
  std::vector<double> weights_;
  std::vector<int64_t> weight_targets_;
  std::vector<Branch> branches_;
};

}  // namespace

KernelSpan tree_kernels() {
  const auto floats = dtypes_of(FloatTypes{});
  KernelDef def{"TreeEnsemble", 5, 0, make<TreeEnsemble>, {{0, floats}, {-1, floats}}};
  def.domain = "ai.onnx.ml";
  return {def};
}

}  // namespace chipdock::plugin::cpu
