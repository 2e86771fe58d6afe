// SPDX-License-Identifier: Apache-2.0
// Random operators and Dropout on Philox 4x32-10: number i follows from seed, offset and i alone,
// so the result does not depend on threads. Source: J. K. Salmon et al., "Parallel Random Numbers:
// As Easy as 1, 2, 3", SC11.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/number.hpp"
#include "ops/movement/strided_copy.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// A sequence of 64-bit numbers that can be entered anywhere.
class Philox {
 public:
  Philox(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}

  /// Numbers 2 * block and 2 * block + 1 of the sequence, as uniform doubles in [0, 1).
  void pair(uint64_t block, double* out) const {
    uint32_t c[4] = {low(block), high(block), low(offset_), high(offset_)};
    uint32_t key0 = low(seed_), key1 = high(seed_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0];
      const uint64_t b = uint64_t{0xCD9E8D57u} * c[2];
      const uint32_t next[4] = {high(b) ^ c[1] ^ key0, low(b), high(a) ^ c[3] ^ key1, low(a)};
      std::copy(next, next + 4, c);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    out[0] = unit(c[0], c[1]);
    out[1] = unit(c[2], c[3]);
  }

 private:
  static uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  static double unit(uint32_t a, uint32_t b) {
    return static_cast<double>((uint64_t{a} << 32 | b) >> 11) * 0x1p-53;
  }
  uint64_t seed_, offset_;
};

/// The node's own seed if it has one, else the run's.
class RandomKernel : public Kernel {
 public:
  explicit RandomKernel(const kit::NodeView& node) {
    const chipdock_attribute* given = node.find("seed");
    own_seed_ = given != nullptr;
    if (!own_seed_) return;
    // Dropout's seed is an integer, that of the others a float.
    if (given->kind == CHIPDOCK_ATTRIBUTE_INT) {
      seed_ = static_cast<uint64_t>(given->integer);
    } else {
      std::memcpy(&seed_, &given->number, sizeof(seed_));
    }
  }

 protected:
  Philox generator(const Context& context) const {
    return {own_seed_ ? seed_ : context.seed, context.seed_offset};
  }
  /// Calls make(first element, pair of uniforms) for each two elements of `count`.
  template <class Make>
  void each_pair(const Context& context, int64_t count, const Make& make) const {
    const Philox philox = generator(context);
    for_units(context, (count + 1) / 2, 256, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        double drawn[2];
        philox.pair(static_cast<uint64_t>(block), drawn);
        make(2 * block, std::min<int64_t>(2, count - 2 * block), drawn);
      }
    });
  }

 private:
  bool own_seed_ = false;
  uint64_t seed_ = 0;
};

class UniformKernel : public RandomKernel {
 public:
  explicit UniformKernel(const kit::NodeView& node)
      : RandomKernel(node), low_(node.number("low", 0)), high_(node.number("high", 1)) {}
  void run(const Context& context) const override {
    const Tensor& to = context.output(0);
    const int width = width_of(to, "RandomUniform");
    each_pair(context, to.size(), [&](int64_t first, int64_t count, const double* drawn) {
      for (int64_t i = 0; i < count; ++i) {
        encode_number(to.dtype, low_ + drawn[i] * (high_ - low_),
                      to.mut<char>() + (first + i) * width, "RandomUniform");
      }
    });
  }

 private:
  double low_, high_;
};

class NormalKernel : public RandomKernel {
 public:
  explicit NormalKernel(const kit::NodeView& node)
      : RandomKernel(node), mean_(node.number("mean", 0)), scale_(node.number("scale", 1)) {}
  void run(const Context& context) const override {
    constexpr double kTwoPi = 6.283185307179586;
    const Tensor& to = context.output(0);
    const int width = width_of(to, "RandomNormal");
    each_pair(context, to.size(), [&](int64_t first, int64_t count, const double* drawn) {
      // Box-Muller; 1 - u is never 0.
      const double radius = std::sqrt(-2 * std::log(1 - drawn[0]));
      const double normal[2] = {radius * std::cos(kTwoPi * drawn[1]),
                                radius * std::sin(kTwoPi * drawn[1])};
      for (int64_t i = 0; i < count; ++i) {
        encode_number(to.dtype, mean_ + scale_ * normal[i], to.mut<char>() + (first + i) * width,
                      "RandomNormal");
      }
    });
  }

 private:
  double mean_, scale_;
};

class BernoulliKernel : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    require_same_shape(to, from, "Bernoulli", "output");
    const int in = width_of(from, "Bernoulli"), out = width_of(to, "Bernoulli");
    each_pair(context, to.size(), [&](int64_t first, int64_t count, const double* drawn) {
      for (int64_t i = 0; i < count; ++i) {
        const double chance =
            decode_number(from.dtype, from.as<char>() + (first + i) * in, "Bernoulli");
        encode_number(to.dtype, drawn[i] < chance ? 1 : 0, to.mut<char>() + (first + i) * out,
                      "Bernoulli");
      }
    });
  }
};

/// The identity in inference. In training elements are zeroed with probability `ratio` and the
/// others scaled by 1 / (1 - ratio).
class DropoutKernel : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  void run(const Context& context) const override {
    constexpr const char* kOp = "Dropout";
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    require_same_shape(to, from, kOp, "output");
    require_same_dtype(from, to, kOp);
    const Tensor* mask = context.has_output(1) ? &context.output(1) : nullptr;
    double ratio = 0.5;
    if (context.has_input(1))
      ratio = decode_number(context.input(1).dtype, context.input(1).data, kOp);
    kit::require(ratio >= 0 && ratio < 1, kOp, ": ratio is ", ratio, ", must be in [0, 1)");
    if (!context.has_input(2) || *context.input(2).as<uint8_t>() == 0 || ratio == 0) {
      copy_bytes(context, from.data, to.data, from.bytes());
      if (mask == nullptr || mask->size() == 0) return;
      // Before version 10 the mask has the dtype of the data, and inference leaves it open.
      std::memset(mask->data, kit::operator==(mask->dtype, kit::kBool) ? 1 : 0, mask->bytes());
      return;
    }
    const int width = width_of(from, kOp);
    const double scale = 1 / (1 - ratio);
    each_pair(context, to.size(), [&](int64_t first, int64_t count, const double* drawn) {
      for (int64_t i = 0; i < count; ++i) {
        const bool keep = drawn[i] >= ratio;
        const double value = decode_number(from.dtype, from.as<char>() + (first + i) * width, kOp);
        encode_number(to.dtype, keep ? value * scale : 0, to.mut<char>() + (first + i) * width,
                      kOp);
        if (mask != nullptr) mask->mut<bool>()[first + i] = keep;
      }
    });
  }
};

/// Classes drawn by unnormalised log-probabilities.
class MultinomialKernel : public RandomKernel {
 public:
  using RandomKernel::RandomKernel;
  void run(const Context& context) const override {
    constexpr const char* kOp = "Multinomial";
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    kit::require(from.rank == 2 && to.rank == 2 && from.shape[0] == to.shape[0], kOp, ": input ",
                 shape_text(from), " and output ", shape_text(to), " must be [batch, …]");
    const int64_t classes = from.shape[1], samples = to.shape[1];
    const int in = width_of(from, kOp), out = width_of(to, kOp);
    kit::require(classes > 0 || to.size() == 0, kOp, ": there are 0 classes to draw from");
    const Philox philox = generator(context);
    std::vector<double> sums(static_cast<size_t>(classes));
    for (int64_t row = 0; row < (samples > 0 ? to.shape[0] : 0); ++row) {
      double top = -INFINITY, total = 0;
      for (int64_t i = 0; i < classes; ++i) {
        sums[i] = decode_number(from.dtype, from.as<char>() + (row * classes + i) * in, kOp);
        top = std::max(top, sums[i]);
      }
      for (double& sum : sums) sum = total += std::exp(sum - top);
      for (int64_t i = 0; i < samples; ++i) {
        const uint64_t number = static_cast<uint64_t>(row * samples + i);
        double drawn[2];
        philox.pair(number / 2, drawn);
        const auto found = std::upper_bound(sums.begin(), sums.end(), drawn[number % 2] * total);
        const int64_t picked = std::min<int64_t>(found - sums.begin(), classes - 1);
        encode_number(to.dtype, static_cast<double>(picked), to.mut<char>() + number * out, kOp);
      }
    }
  }
};

}  // namespace

KernelSpan random_kernels() {
  KernelDef dropout{"Dropout", 7, 0, make<DropoutKernel>};
  dropout.aliases = {{0, 0}};
  return {dropout,
          {"RandomUniform", 1, 0, make<UniformKernel>},
          {"RandomUniformLike", 1, 0, make<UniformKernel>},
          {"RandomNormal", 1, 0, make<NormalKernel>},
          {"RandomNormalLike", 1, 0, make<NormalKernel>},
          {"Bernoulli", 15, 0, make<BernoulliKernel>},
          {"Multinomial", 7, 0, make<MultinomialKernel>}};
}

}  // namespace chipdock::plugin::cpu
