// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: counts n-grams, with gaps allowed, of integers or strings against a pool.
// Source: ONNX TfIdfVectorizer-9.
#include <map>

#include "host_ops/host_op.hpp"

namespace chipdock::runtime {
namespace {

using kit::operator==;

/// The n-grams of the pool that have the wanted lengths, by content; the value is their number.
template <class T>
using Grams = std::map<std::vector<T>, size_t>;

template <class T>
Grams<T> read_pool(const std::vector<T>& pool, const std::vector<int64_t>& starts, int64_t shortest,
                   int64_t longest) {
  Grams<T> grams;
  size_t number = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const size_t length = k + 1;
    const int64_t end = k + 1 < starts.size() ? starts[k + 1] : static_cast<int64_t>(pool.size());
    kit::require(starts[k] >= 0 && starts[k] <= end && end <= static_cast<int64_t>(pool.size()),
                 "ngram_counts has ", starts[k], ", a pool of ", pool.size(), " has no such place");
    const auto last = static_cast<size_t>(end);
    for (auto at = static_cast<size_t>(starts[k]); at + length <= last; at += length, ++number) {
      if (static_cast<int64_t>(length) < shortest || static_cast<int64_t>(length) > longest)
        continue;
      const auto from = pool.begin() + static_cast<std::ptrdiff_t>(at);
      grams[{from, from + static_cast<std::ptrdiff_t>(length)}] = number;
    }
  }
  return grams;
}

class Counter {
 public:
  explicit Counter(HostCall& call)
      : view_(call.attributes()),
        shortest_(view_.integer("min_gram_length", 1)),
        longest_(view_.integer("max_gram_length", 1)),
        gaps_(view_.integer("max_skip_count", 0)),
        places_(view_.integers("ngram_indexes")),
        weights_(view_.numbers("weights")),
        mode_(view_.text("mode", "TF")) {
    for (const int64_t place : places_) width_ = std::max(width_, place + 1);
    kit::require(weights_.empty() || weights_.size() == places_.size(), weights_.size(),
                 " weights for ", places_.size(), " n-grams");
    kit::require(mode_ == "TF" || mode_ == "IDF" || mode_ == "TFIDF", "mode '", mode_,
                 "', allowed are TF, IDF and TFIDF");
  }
  int64_t width() const { return width_; }
  kit::NodeView view() const { return view_; }

  template <class T>
  std::vector<float> count(const std::vector<T>& items, const std::vector<T>& pool, int64_t rows) {
    const Grams<T> grams = read_pool(pool, view_.integers("ngram_counts"), shortest_, longest_);
    std::vector<float> out(static_cast<size_t>(rows * width_));
    const size_t length = rows == 0 ? 0 : items.size() / static_cast<size_t>(rows);
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
      count_row(items.data() + row * length, length, grams,
                out.data() + row * static_cast<size_t>(width_));
    return out;
  }

 private:
  template <class T>
  void count_row(const T* items, size_t length, const Grams<T>& grams, float* out) const {
    for (int64_t n = shortest_; n <= longest_; ++n) {
      // A single item has no gaps: it is counted once.
      for (int64_t gap = 0; gap <= (n == 1 ? 0 : gaps_); ++gap) {
        const auto step = static_cast<size_t>(gap + 1);
        const size_t reach = static_cast<size_t>(n - 1) * step;
        for (size_t from = 0; from + reach < length; ++from) {
          std::vector<T> gram;
          gram.reserve(static_cast<size_t>(n));
          for (size_t k = 0; k < static_cast<size_t>(n); ++k)
            gram.push_back(items[from + k * step]);
          if (const auto found = grams.find(gram); found != grams.end()) add(found->second, out);
        }
      }
    }
  }

  void add(size_t gram, float* out) const {
    kit::require(gram < places_.size(), "n-gram ", gram, " has no place in ngram_indexes");
    float& sum = out[places_[gram]];
    const float weight = weights_.empty() ? 1.0F : static_cast<float>(weights_[gram]);
    if (mode_ == "TF") {
      sum += 1;
    } else if (mode_ == "IDF") {
      sum = weight;
    } else {
      sum += weight;
    }
  }

  kit::NodeView view_;
  int64_t shortest_, longest_, gaps_;
  std::vector<int64_t> places_;
  std::vector<double> weights_;
  std::string mode_;
  int64_t width_ = 0;
};

void vectorize(HostCall& call) {
  const TensorRef& given = call.input(0);
  kit::require(given.dims.size() <= 2, "shape ", to_string(given.dims),
               ", allowed are [C] and [N,C]");
  const int64_t rows = given.dims.size() == 2 ? given.dims[0] : 1;
  Counter counter(call);
  std::vector<float> out;
  if (is_kind(given, HostKind::kStrings)) {
    std::vector<std::string> pool;
    if (const auto* found = counter.view().find("pool_strings"); found != nullptr)
      pool.assign(found->texts, found->texts + found->count);
    out = counter.count(call.strings(0), pool, rows);
  } else {
    out = counter.count(call.integers(0), counter.view().integers("pool_int64s"), rows);
  }
  Dims dims = given.dims.size() == 2 ? Dims{rows, counter.width()} : Dims{counter.width()};
  call.set(0, call.tensor(kit::kFloat32, dims, out.data()));
}

}  // namespace

std::vector<HostOp> tf_idf_host_ops() { return {{"TfIdfVectorizer", 9, 0, vectorize}}; }

}  // namespace chipdock::runtime
