// SPDX-License-Identifier: Apache-2.0
// ConvInteger and QLinearConv on products of bytes: filters are A, and panels of B are cut from an
// image whose words hold neighbouring channels of one pixel. Padding is the image's zero point.
#include <cstring>
#include <string>

#include "depthwise_int8.hpp"
#include "gemm_int8.hpp"
#include "ops/numeric.hpp"
#include "ops/quantization.hpp"
#include "ops/window.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Channels of one group as words, and filters in the same order: word, kernel position, part.
struct Order {
  int64_t channels, taps, blocks;  ///< Blocks of channels that share a word.

  Order(int64_t channels_of_group, int64_t kernel_positions)
      : channels(channels_of_group), taps(kernel_positions), blocks(dot_words(channels_of_group)) {}
  int64_t words() const { return blocks * taps; }
  /// Values in all words, those of missing channels too.
  int64_t k() const { return words() * dot_isa().parts; }
};

/// Brings filters (channel, kernel position) into the order of words; missing channels are `fill`.
void reorder(const Order& order, const uint8_t* from, uint8_t fill, uint8_t* to) {
  const int parts = dot_isa().parts;
  for (int64_t block = 0; block < order.blocks; ++block) {
    for (int64_t tap = 0; tap < order.taps; ++tap) {
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t channel = block * parts + part;
        *to++ = channel < order.channels ? from[channel * order.taps + tap] : fill;
      }
    }
  }
}

/// Packs `m` filters of one group.
void pack_filters(const Order& order, const uint8_t* from, int64_t m, DotCode code,
                  int32_t* target) {
  const int64_t k = order.k();
  std::vector<uint8_t> ordered(static_cast<size_t>(m * k));
  const uint8_t nothing = code.flip ? 0x80 : 0;  // Encoded, it is zero.
  for (int64_t i = 0; i < m; ++i) {
    reorder(order, from + i * order.channels * order.taps, nothing, ordered.data() + i * k);
  }
  dot_pack_a(ordered.data(), k, 1, m, k, code, target);
}

class Patches final : public DotWork {
 public:
  Patches(const Space& space, const Order& order, int64_t images, int64_t groups, int64_t filters)
      : space_(space), order_(order), groups_(groups), direct_(space.pointwise()) {
    m = filters / groups;
    n = space.out_size();
    words = order.words();
    batch = images * groups;
    a_signed = true;
  }
  const int32_t* a(int64_t member) const override {
    return packed + member % groups_ * dot_packed_a_size(m, order_.k());
  }
  DotPanel panel(int64_t member, int64_t column, int cols, int32_t* scratch) const override {
    const int32_t* from = image + member * order_.blocks * space_.in_size();
    const int width = dot_isa().cols;
    // Rows are best read where they are, unless they all fall into the same few sets of the caches
    // and are used often enough to pay for a copy.
    const bool whole = cols == width || cols == dot_isa().width;
    if (direct_ && whole && (n % 512 != 0 || m <= int64_t{2} * dot_isa().rows))
      return {from + column, n};
    CHIPDOCK_CPU_DISPATCH(fill_patches_i32)
    (space_, {from, 0, words, column, cols, width, scratch, pad});
    return {scratch, width};
  }
  void end(DotSums& sums) const override {
    DotEnd& e = sums.end;
    const int64_t row = sums.member % groups_ * m + sums.row;
    e.row_term = row_term + row;
    if (ones != nullptr) e.pairs[e.pair_count++] = {row_zero + row, sums.column_sums};
    result.write(e, (sums.member * m + sums.row) * n + sums.column, n, row, sums.column);
  }

  const int32_t* packed = nullptr;
  const int32_t* image = nullptr;
  int32_t pad = 0;
  const int32_t* row_term = nullptr;
  const int32_t* row_zero = nullptr;  ///< Of the filters, negated.
  DotResult result;

 private:
  const Space& space_;
  const Order& order_;
  int64_t groups_;
  bool direct_;
};

template <bool kRequantize>
class ByteConv final : public Kernel {
  static constexpr uint32_t kW = kRequantize ? 3 : 1;
  static constexpr uint32_t kZeroX = 2;
  static constexpr uint32_t kZeroW = kRequantize ? 5 : 3;
  static constexpr uint32_t kBias = 8;  // Of QLinearConv.

 public:
  explicit ByteConv(const kit::NodeView& node) : window_(node), groups_(node.integer("group", 1)) {
    kit::require(groups_ > 0, node.op(), ": group ", groups_, " must be 1 or more");
  }

  uint64_t workspace(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(kW);
    const Space s = space(context);
    const Order order = order_of(w);
    const int64_t m = w.dim(0);
    if (by_plane(w, s)) return byte_depthwise_scratch(context, s) + 4 * padded_bytes(m, 4);
    return dot_scratch_bytes(context, order.words()) +
           padded_bytes(x.dim(0) * groups_ * order.blocks * s.in_size(), 4) +
           padded_bytes(groups_ * dot_packed_a_size(m / groups_, order.k()), 4) +
           padded_bytes(dot_packed_a_size(1, order.k()), 4) + 4 * padded_bytes(m, 4);
  }

  void run(const Context& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(kW);
    const Tensor& y = context.output(0);
    if (y.size() == 0) return;
    const Space s = space(context);
    const Order order = order_of(w);
    kit::require(x.dim(1) == w.dim(1) * groups_ && w.dim(0) % groups_ == 0, "X has ", x.dim(1),
                 " channels, W ", w.dim(0), "x", w.dim(1), ", group is ", groups_);
    if (by_plane(w, s)) {
      run_planes(context, s);
      return;
    }
    Carver carver(context.workspace);
    void* const scratch =
        carver.take<char>(static_cast<int64_t>(dot_scratch_bytes(context, order.words())));
    auto* const image = carver.take<int32_t>(x.dim(0) * groups_ * order.blocks * s.in_size());
    const int64_t m = w.dim(0) / groups_;
    auto* const room = carver.take<int32_t>(groups_ * dot_packed_a_size(m, order.k()));
    auto* const ones = carver.take<int32_t>(dot_packed_a_size(1, order.k()));
    const DotCode code_x = dot_code(is_signed(x.dtype), false);
    Patches work(s, order, x.dim(0), groups_, w.dim(0));
    work.packed = static_cast<const int32_t*>(context.packed_input(kW));
    if (work.packed == nullptr) {
      pack(w, order, room);
      work.packed = room;
    }
    const int32_t zero_x =
        code_x.shift() + (context.has_input(kZeroX) ? byte_at(context.input(kZeroX), 0) : 0);
    work.pad = dot_filled_word(zero_x);
    fill_image(context, s, order, code_x, image);
    work.image = image;
    if (settle(context, order, zero_x, work, carver)) {
      const std::vector<uint8_t> all(static_cast<size_t>(order.channels * order.taps), 1);
      pack_filters(order, all.data(), 1, {}, ones);
      work.ones = ones;
    }
    dot_run(context, work, scratch);
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != kW || value.rank < 3 || value.rank > 5 || value.dims[0] % groups_ != 0) return;
    const Tensor w = {value.dtype, value.rank, value.dims, nullptr};
    if (of_one_channel(w)) return;  // Used as they are.
    const Order order = order_of(w);
    const int64_t m = w.dim(0) / groups_;
    info.size = static_cast<uint64_t>(groups_ * dot_packed_a_size(m, order.k())) * sizeof(int32_t);
    const std::string layout = dot_layout("w", dot_code(is_signed(w.dtype), true)) + "_" +
                               std::to_string(m) + "x" + std::to_string(order.channels) + "x" +
                               std::to_string(order.taps);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }

  void prepack(uint32_t, const Tensor& source, void* target) const override {
    pack(source, order_of(source), static_cast<int32_t*>(target));
  }

 private:
  Space space(const Context& context) const {
    const Tensor& w = context.input(kW);
    kit::require(w.rank == context.input(0).rank, "X of rank ", context.input(0).rank,
                 " and W of rank ", w.rank, " must have one rank");
    Space s = window_.resolve(context.input(0), context.output(0), w.shape + 2, false);
    // A plane filter has its vectors along the width already, unless there is none.
    if (!by_plane(w, s) || s.in[2] == 1) s.merge_flat_width();
    return s;
  }
  bool of_one_channel(const Tensor& w) const { return w.rank <= 4 && groups_ > 1 && w.dim(1) == 1; }
  bool by_plane(const Tensor& w, const Space& s) const {
    return of_one_channel(w) && fits_byte_depthwise(s);
  }

  void run_planes(const Context& context, const Space& s) const {
    const Tensor& x = context.input(0);
    const Tensor& w = context.input(kW);
    const int64_t filters = w.dim(0);
    Carver carver(context.workspace);
    void* const scratch =
        carver.take<char>(static_cast<int64_t>(byte_depthwise_scratch(context, s)));
    auto* const zero_w = carver.take<int32_t>(filters);
    auto* const term = carver.take<int32_t>(filters);
    std::fill_n(zero_w, filters, 0);
    std::fill_n(term, filters, 0);
    if (context.has_input(kZeroW)) {
      const Tensor& zero = context.input(kZeroW);
      spread_lines(zero, Lines::of(filters), 0, "w_zero_point",
                   [&](int64_t row, int64_t at) { zero_w[row] = byte_at(zero, at); });
    }
    const int32_t zero_x = context.has_input(kZeroX) ? byte_at(context.input(kZeroX), 0) : 0;
    ByteDepthwise work = {s, x.dim(0), x.dim(1), filters, x, w, zero_x, zero_w, term, nullptr, {}};
    if constexpr (kRequantize) {
      if (context.has_input(kBias)) {
        std::copy_n(context.input(kBias).as<int32_t>(), filters, term);
      }
      work.bytes = scales(context, filters, carver);
    } else {
      work.y32 = context.output(0).mut<int32_t>();
    }
    byte_depthwise(context, work, scratch);
  }
  static Order order_of(const Tensor& w) { return {w.dim(1), w.size(2, w.rank)}; }

  void pack(const Tensor& w, const Order& order, int32_t* target) const {
    const int64_t m = w.dim(0) / groups_;
    const DotCode code = dot_code(is_signed(w.dtype), true);
    for (int64_t g = 0; g < groups_; ++g) {
      pack_filters(order, w.as<uint8_t>() + g * m * order.channels * order.taps, m, code,
                   target + g * dot_packed_a_size(m, order.k()));
    }
  }

  void fill_image(const Context& context, const Space& s, const Order& order, DotCode code,
                  int32_t* image) const {
    const DotIsa& isa = dot_isa();
    const int64_t size = s.in_size();
    const auto* const x = context.input(0).as<uint8_t>();
    const int64_t planes = context.input(0).dim(0) * groups_ * order.blocks;
    context.parallel_for(
        planes, std::max<int64_t>(1, kGrain / (size + 1)), [&](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const int64_t first = plane % order.blocks * isa.parts;
            const uint8_t* from = x + (plane / order.blocks * order.channels + first) * size;
            DotRows rows = {{}, 0, 1, size, image + plane * size, 1, code};
            rows.count = static_cast<int>(std::min<int64_t>(isa.parts, order.channels - first));
            for (int p = 0; p < rows.count; ++p) rows.rows[p] = from + p * size;
            isa.pack(rows);
          }
        });
  }

  /// Sets what end() adds and multiplies. True if it needs the sums of columns.
  bool settle(const Context& context, const Order& order, int32_t zero_x, Patches& work,
              Carver& carver) const {
    const Tensor& w = context.input(kW);
    const int64_t filters = w.dim(0);
    const int64_t m = filters / groups_;
    const DotCode code = dot_code(is_signed(w.dtype), true);
    auto* const row_zero = carver.take<int32_t>(filters);
    auto* const row_term = carver.take<int32_t>(filters);
    std::fill_n(row_zero, filters, code.shift());
    if (context.has_input(kZeroW)) {
      const Tensor& zero = context.input(kZeroW);
      spread_lines(zero, Lines::of(filters), 0, "w_zero_point",
                   [&](int64_t row, int64_t at) { row_zero[row] += byte_at(zero, at); });
    }
    const auto k = static_cast<uint32_t>(order.channels * order.taps);
    bool any = false;
    for (int64_t i = 0; i < filters; ++i) {
      const int32_t* packed = work.packed + i / m * dot_packed_a_size(m, order.k());
      const auto sum = static_cast<uint32_t>(dot_row_sums(packed, m, order.k())[i % m]);
      uint32_t term =
          static_cast<uint32_t>(zero_x) * (k * static_cast<uint32_t>(row_zero[i]) - sum);
      if (kRequantize && context.has_input(kBias)) {
        term += static_cast<uint32_t>(context.input(kBias).as<int32_t>()[i]);
      }
      row_term[i] = static_cast<int32_t>(term);
      any = any || row_zero[i] != 0;
      row_zero[i] = -row_zero[i];
    }
    work.row_zero = row_zero;
    work.row_term = row_term;
    if constexpr (kRequantize) {
      work.result.bytes = scales(context, filters, carver);
    } else {
      work.result.y32 = context.output(0).mut<int32_t>();
    }
    return any;
  }

  static DotBytes scales(const Context& context, int64_t filters, Carver& carver) {
    const Tensor& scale_w = context.input(4);
    const Tensor& y = context.output(0);
    auto* const row_scale = carver.take<float>(filters);
    auto* const row_point = carver.take<int32_t>(filters);
    const double common =
        static_cast<double>(scale_at(context.input(1), 0)) / scale_at(context.input(6), 0);
    spread_lines(scale_w, Lines::of(filters), 0, "w_scale", [&](int64_t row, int64_t at) {
      row_scale[row] = static_cast<float>(common * scale_at(scale_w, at));
    });
    std::fill_n(row_point, filters, byte_at(context.input(7), 0));
    DotBytes bytes;
    bytes.y = y.mut<uint8_t>();
    bytes.is_signed = is_signed(y.dtype);
    bytes.row_scale = row_scale;
    bytes.zero = row_point;
    return bytes;
  }

  WindowAttributes window_;
  int64_t groups_;
};

}  // namespace

KernelSpan integer_conv_kernels() {
  const std::vector<chipdock_dtype> bytes = {kit::kInt8, kit::kUint8};
  const std::vector<chipdock_dtype> scale = {kit::kFloat32};
  KernelSpan span(2);
  span[0].op = "ConvInteger";
  span[0].since = 10;
  span[0].name = "conv_integer";
  span[0].create = make<ByteConv<false>>;
  span[0].dtypes = {{0, bytes}, {1, bytes}, {-1, {kit::kInt32}}};
  span[1].op = "QLinearConv";
  span[1].since = 10;
  span[1].name = "qlinear_conv";
  span[1].create = make<ByteConv<true>>;
  span[1].dtypes = {{0, bytes}, {1, scale}, {2, bytes}, {3, bytes},         {4, scale},
                    {5, bytes}, {6, scale}, {7, bytes}, {8, {kit::kInt32}}, {-1, bytes}};
  return span;
}

}  // namespace chipdock::plugin::cpu
