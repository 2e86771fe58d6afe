// SPDX-License-Identifier: Apache-2.0
// Pad in all modes: each output row is a left edge, a run of the input, and a right edge. Negative
// pads crop. Trailing dims that are not padded join the element, leading ones join each other.
#include <algorithm>
#include <cstring>
#include <string>

#include "kernel.hpp"
#include "ops/movement/element.hpp"
#include "ops/movement/number.hpp"
#include "ops/movement/strided_copy.hpp"
#include "ops/movement/unpacked.hpp"

namespace chipdock::plugin::cpu {
namespace {

enum class Mode { kConstant, kReflect, kEdge, kWrap };

struct PadDim {
  int64_t extent;  // Of the input.
  int64_t padded;  // Of the output.
  int64_t begin;   // Where the input starts in the output; negative: cropped.
};

/// Position in the input that output position `at` shows, or -1 for the constant.
inline int64_t source_of(Mode mode, const PadDim& dim, int64_t at) {
  const int64_t n = dim.extent;
  int64_t s = at - dim.begin;
  if (s >= 0 && s < n) return s;
  switch (mode) {
    case Mode::kConstant:
      return -1;
    case Mode::kEdge:
      return s < 0 ? 0 : n - 1;
    case Mode::kWrap:
      s %= n;
      return s < 0 ? s + n : s;
    default:
      break;
  }
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  s %= period;
  if (s < 0) s += period;
  return s < n ? s : period - s;
}

class PadKernel : public Kernel {
 public:
  explicit PadKernel(const kit::NodeView& node)
      : by_attribute_(node.since_version() < 11),
        pads_(node.integers("pads")),
        value_(node.number("value", 0)) {
    const std::string mode = node.text("mode", "constant");
    if (mode == "constant") {
      mode_ = Mode::kConstant;
    } else if (mode == "reflect") {
      mode_ = Mode::kReflect;
    } else if (mode == "edge") {
      mode_ = Mode::kEdge;
    } else if (mode == "wrap") {
      mode_ = Mode::kWrap;
    } else {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Pad: mode is ", mode,
                ", constant, reflect, edge and wrap are allowed");
    }
  }

  void run(const Context& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& to = context.output(0);
    const int width = width_of(from, "Pad");
    require_same_dtype(from, to, "Pad");
    int64_t begin[kMaxRank] = {};
    read(context, from, to, begin);
    if (to.size() == 0) return;

    PadDim dims[kMaxRank];
    int rank = 0;
    int64_t chunk = width;
    int32_t last = from.rank - 1;
    const auto plain = [&](int32_t i) { return begin[i] == 0 && from.shape[i] == to.shape[i]; };
    while (last >= 0 && plain(last)) chunk *= from.shape[last--];
    if (last < 0) {
      copy_bytes(context, from.data, to.data, to.bytes());
      return;
    }
    bool joins = false;
    for (int32_t i = 0; i <= last; ++i) {
      if (joins && plain(i)) {
        dims[rank - 1].extent = dims[rank - 1].padded *= from.shape[i];
      } else {
        dims[rank++] = {from.shape[i], to.shape[i], begin[i]};
      }
      joins = plain(i);
    }
    char value[16] = {};
    constant(context, to, width, value);
    fill(context, from, to, dims, rank, chunk, value, width);
  }

 private:
  void read(const Context& context, const Tensor& from, const Tensor& to, int64_t* begin) const {
    kit::require(to.rank == from.rank, "Pad: output has rank ", to.rank, ", input ", from.rank);
    int64_t count = from.rank;
    int64_t end[kMaxRank] = {};
    if (by_attribute_) {
      kit::require(static_cast<int64_t>(pads_.size()) == 2 * count, "Pad: pads has ", pads_.size(),
                   " entries, must be ", 2 * count);
      std::copy_n(pads_.begin(), count, begin);
      std::copy_n(pads_.begin() + count, count, end);
    } else {
      const Integers pads(context.input(1), "Pad");
      if (context.has_input(3)) count = context.input(3).size();
      kit::require(pads.size() == 2 * count, "Pad: pads has ", pads.size(), " entries, must be ",
                   2 * count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t axis =
            context.has_input(3)
                ? kit::normalize_axis(Integers(context.input(3), "Pad")[i], from.rank, "Pad")
                : i;
        begin[axis] = pads[i];
        end[axis] = pads[count + i];
      }
    }
    for (int32_t i = 0; i < from.rank; ++i) {
      if (from.shape[i] + begin[i] + end[i] != to.shape[i]) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Pad: output ", shape_text(to), " is not input ",
                  shape_text(from), " padded by ", begin[i], " and ", end[i], " on axis ", i);
      }
      if (from.shape[i] == 0 && to.shape[i] != 0 && mode_ != Mode::kConstant) {
        kit::fail(CHIPDOCK_INVALID_ARGUMENT, "Pad: axis ", i, " of input ", shape_text(from),
                  " is empty, only mode constant can pad it");
      }
    }
  }

  void constant(const Context& context, const Tensor& to, int width, char* value) const {
    if (mode_ != Mode::kConstant) return;
    if (by_attribute_) {
      encode_number(to.dtype, value_, value, "Pad");
    } else if (context.has_input(2)) {
      require_same_dtype(context.input(2), to, "Pad");
      kit::require(context.input(2).size() == 1, "Pad: constant_value has ",
                   context.input(2).size(), " elements, must be 1");
      std::memcpy(value, context.input(2).data, static_cast<size_t>(width));
    }
  }

  void fill(const Context& context, const Tensor& from, const Tensor& to, const PadDim* dims,
            int rank, int64_t chunk, const char* value, int width) const {
    const PadDim& inner = dims[rank - 1];
    const int64_t low = std::clamp(inner.begin, int64_t{0}, inner.padded);
    const int64_t high = std::clamp(inner.begin + inner.extent, low, inner.padded);
    const int64_t row_bytes = inner.padded * chunk;
    const int64_t rows = static_cast<int64_t>(to.bytes()) / row_bytes;
    for_units(context, rows, row_bytes, [&](int64_t first, int64_t stop) {
      for (int64_t row = first; row < stop; ++row) {
        char* out = to.mut<char>() + row * row_bytes;
        int64_t rest = row, base = 0, step = 1;
        bool outside = false;
        for (int d = rank - 2; d >= 0 && !outside; --d) {
          const int64_t s = source_of(mode_, dims[d], rest % dims[d].padded);
          outside = s < 0;
          base += s * step;
          step *= dims[d].extent;
          rest /= dims[d].padded;
        }
        if (outside) {
          fill_run(out, row_bytes / width, value, width);
          continue;
        }
        const char* in = from.as<char>() + base * inner.extent * chunk;
        edge(inner, 0, low, in, out, chunk, value, width);
        if (high > low) {
          std::memcpy(out + low * chunk, in + (low - inner.begin) * chunk,
                      static_cast<size_t>((high - low) * chunk));
        }
        edge(inner, high, inner.padded, in, out, chunk, value, width);
      }
    });
  }

  void edge(const PadDim& inner, int64_t first, int64_t stop, const char* in, char* out,
            int64_t chunk, const char* value, int width) const {
    if (mode_ == Mode::kConstant) {
      fill_run(out + first * chunk, (stop - first) * chunk / width, value, width);
      return;
    }
    for (int64_t i = first; i < stop; ++i) {
      std::memcpy(out + i * chunk, in + source_of(mode_, inner, i) * chunk,
                  static_cast<size_t>(chunk));
    }
  }

  bool by_attribute_;
  std::vector<int64_t> pads_;
  double value_;
  Mode mode_;
};

}  // namespace

KernelSpan pad_kernels() {
  KernelDef def{"Pad", 2, 0, make<PadKernel>};
  def.supports = moves_bytes;
  def.host_inputs = 0b1010;
  return {def, unpacked<PadKernel>(def, "Pad_packed")};
}

}  // namespace chipdock::plugin::cpu
