// SPDX-License-Identifier: Apache-2.0
// MatMulInteger, QLinearMatMul and ai.chipdock's QLinearGemm, which has a bias, on products of bytes. Zero points and scales may be those of a
// tensor, of its rows (A, Y) or of its columns (B).
#include <cstring>
#include <string>

#include "gemm_int8.hpp"
#include "ops/matmul_sizes.hpp"
#include "ops/numeric.hpp"
#include "ops/quantization.hpp"
#include "slots.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// The parts of the workspace.
struct Parts {
  int64_t rows, padded, columns, words, packed_a;

  Parts(const Sizes& s, int64_t batch_b)
      : rows(s.batch * s.m),
        padded(dot_padded_columns(s.n)),
        columns(batch_b * padded),
        words(dot_words(s.k)),
        packed_a(dot_packed_a_size(s.m, s.k)) {}
  uint64_t bytes(const Context& context, const Sizes& s) const {
    return dot_scratch_bytes(context, words) + padded_bytes(s.batch_a * packed_a, 4) +
           padded_bytes(dot_packed_a_size(1, s.k), 4) + 6 * padded_bytes(rows, 4) +
           4 * padded_bytes(columns, 4);
  }
};

/// A scale or zero point of one row or column, as far as it is one for all.
bool single(const Context& context, uint32_t i) {
  return !context.has_input(i) || context.input(i).size() == 1;
}

class Product final : public DotWork {
 public:
  Product(const Sizes& sizes, const Parts& parts, DotCode code_b)
      : sizes_(sizes), parts_(parts), code_b_(code_b) {
    m = sizes.m;
    n = sizes.n;
    words = parts.words;
    batch = sizes.batch;
  }
  const int32_t* a(int64_t member) const override {
    return packed_a + sizes_.member(sizes_.step_a, member) * parts_.packed_a;
  }
  DotPanel panel(int64_t member, int64_t column, int cols, int32_t* scratch) const override {
    const int64_t width = dot_isa().cols;
    const int64_t at = sizes_.member(sizes_.step_b, member);
    if (packed_b != nullptr) {
      return {packed_b + at * dot_packed_b_size(sizes_.k, n) + column * words, width};
    }
    dot_pack_panel(b + at * sizes_.k * n + column, n, 1, sizes_.k, cols, code_b_, scratch);
    return {scratch, width};
  }
  void end(DotSums& sums) const override {
    DotEnd& e = sums.end;
    const int64_t row = sums.member * m + sums.row;
    const int64_t column = sizes_.member(sizes_.step_b, sums.member) * parts_.padded + sums.column;
    e.row_term = row_term + row;
    if (column_term != nullptr) e.column_term = column_term + column;
    if (by_column) e.pairs[e.pair_count++] = {row_factor + row, column_zero + column};
    if (by_row) {
      e.pairs[e.pair_count++] = {row_zero + row,
                                 column_sums != nullptr ? column_sums + column : sums.column_sums};
    }
    result.write(e, row * n + sums.column, n, row, column);
  }

  const int32_t* packed_a = nullptr;
  const int32_t* packed_b = nullptr;
  const uint8_t* b = nullptr;
  const int32_t* row_term = nullptr;
  const int32_t* column_term = nullptr;  ///< NULL: none.
  bool by_column = false;                ///< B has a zero point per column,
  const int32_t* row_factor = nullptr;
  const int32_t* column_zero = nullptr;
  bool by_row = false;  ///< A one per row, or the sums of columns are not known before.
  const int32_t* row_zero = nullptr;
  const int32_t* column_sums = nullptr;  ///< NULL: those of the panel.
  DotResult result;

 private:
  const Sizes& sizes_;
  const Parts& parts_;
  DotCode code_b_;
};

template <bool kRequantize>
class ByteMatMul final : public Kernel {
  static constexpr uint32_t kB = kRequantize ? 3 : 1;
  static constexpr uint32_t kZeroA = 2;
  static constexpr uint32_t kZeroB = kRequantize ? 5 : 3;
  static constexpr uint32_t kBias = 8;  // Of QLinearGemm.

 public:
  explicit ByteMatMul(const kit::NodeView&) {}

  uint64_t workspace(const Context& context) const override {
    const Sizes s = matmul_sizes(context.input(0), context.input(kB));
    return Parts(s, s.batch_b).bytes(context, s);
  }

  void run(const Context& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(kB);
    const Sizes s = matmul_sizes(a, b);
    const Parts parts(s, s.batch_b);
    const DotCode code_a = dot_code(is_signed(a.dtype), false);
    const DotCode code_b = dot_code(is_signed(b.dtype), true);
    Carver carver(context.workspace);
    void* const scratch =
        carver.take<char>(static_cast<int64_t>(dot_scratch_bytes(context, parts.words)));
    auto* const packed_a = carver.take<int32_t>(s.batch_a * parts.packed_a);
    auto* const ones = carver.take<int32_t>(dot_packed_a_size(1, s.k));
    Product work(s, parts, code_b);
    work.packed_a = packed_a;
    work.packed_b = static_cast<const int32_t*>(context.packed_input(kB));
    work.b = b.as<uint8_t>();
    pack_a(context, s, code_a, packed_a);
    settle(context, s, parts, code_a, code_b, work, carver);
    if (work.by_row && work.column_sums == nullptr) {
      const uint8_t one = 1;
      dot_pack_a(&one, 0, 0, 1, s.k, {}, ones);
      work.ones = ones;
    }
    dot_run(context, work, scratch);
  }

  void prepack_info(uint32_t input, const chipdock_value& value,
                    chipdock_prepack_info& info) const override {
    if (input != kB || value.rank < 2) return;
    int64_t batch = 1;
    for (int32_t i = 0; i < value.rank - 2; ++i) batch *= value.dims[i];
    const int64_t k = value.dims[value.rank - 2], n = value.dims[value.rank - 1];
    info.size = static_cast<uint64_t>(batch * dot_packed_b_size(k, n)) * sizeof(int32_t);
    const std::string layout = dot_layout("b", dot_code(is_signed(value.dtype), true)) + "_" +
                               std::to_string(k) + "x" + std::to_string(n);
    std::strncpy(info.layout, layout.c_str(), sizeof(info.layout) - 1);
  }

  void prepack(uint32_t, const Tensor& source, void* target) const override {
    const int64_t k = source.dim(source.rank - 2), n = source.dim(source.rank - 1);
    const int64_t batch = source.size(0, source.rank - 2);
    const DotCode code = dot_code(is_signed(source.dtype), true);
    for (int64_t i = 0; i < batch; ++i) {
      dot_pack_b(source.as<uint8_t>() + i * k * n, n, 1, k, n, code,
                 static_cast<int32_t*>(target) + i * dot_packed_b_size(k, n));
    }
  }

 private:
  static void pack_a(const Context& context, const Sizes& s, DotCode code, int32_t* packed) {
    dot_pack_a(context, context.input(0).as<uint8_t>(), s.batch_a, s.m, s.k, code, packed);
  }

  /// Sets what end() adds and multiplies; see gemm_int8.hpp for the sum.
  static void settle(const Context& context, const Sizes& s, const Parts& parts, DotCode code_a,
                     DotCode code_b, Product& work, Carver& carver) {
    const Lines rows = Lines::rows(s, context.input(0));
    const Lines columns = Lines::columns(context.input(kB));
    const auto k = static_cast<uint32_t>(s.k);
    auto* const row_zero = carver.take<int32_t>(parts.rows);
    auto* const row_factor = carver.take<int32_t>(parts.rows);
    auto* const row_term = carver.take<int32_t>(parts.rows);
    auto* const column_zero = carver.take<int32_t>(parts.columns);
    auto* const column_term = carver.take<int32_t>(parts.columns);
    std::fill_n(row_zero, parts.rows, code_a.shift());
    std::fill_n(column_zero, parts.columns, code_b.shift());
    if (context.has_input(kZeroA)) {
      const Tensor& zero = context.input(kZeroA);
      spread_lines(zero, rows, 0, "a_zero_point",
                   [&](int64_t row, int64_t at) { row_zero[row] += byte_at(zero, at); });
    }
    if (context.has_input(kZeroB)) {
      const Tensor& zero = context.input(kZeroB);
      spread_lines(zero, columns, 1, "b_zero_point", [&](int64_t column, int64_t at) {
        column_zero[column / s.n * parts.padded + column % s.n] += byte_at(zero, at);
      });
    }
    bool any_a = false;
    for (int64_t i = 0; i < parts.rows; ++i) {
      any_a = any_a || row_zero[i] != 0;
      const int64_t at = s.member(s.step_a, i / s.m);
      const int32_t sum = dot_row_sums(work.packed_a + at * parts.packed_a, s.m, s.k)[i % s.m];
      row_factor[i] =
          static_cast<int32_t>(k * static_cast<uint32_t>(row_zero[i]) - static_cast<uint32_t>(sum));
    }
    const bool one_a = single(context, kZeroA);
    work.by_column = !single(context, kZeroB);
    const uint32_t zero_b =
        work.by_column || parts.columns == 0 ? 0 : static_cast<uint32_t>(column_zero[0]);
    for (int64_t i = 0; i < parts.rows; ++i) {
      row_term[i] = static_cast<int32_t>(zero_b * static_cast<uint32_t>(row_factor[i]));
    }
    work.row_term = row_term;
    work.row_factor = row_factor;
    work.column_zero = column_zero;
    auto* const column_sums = carver.take<int32_t>(parts.columns);
    if (any_a) settle_columns(s, parts, one_a, row_zero, one_a ? column_term : column_sums, work);
    for (int64_t i = 0; i < parts.rows; ++i) row_zero[i] = -row_zero[i];
    work.row_zero = row_zero;
    if constexpr (kRequantize) {
      if (context.has_input(kBias)) add_bias(context, s, parts, column_term, work);
      scales(context, s, parts, rows, columns, work, carver);
    } else {
      work.result.y32 = context.output(0).mut<int32_t>();
    }
  }

  static void settle_columns(const Sizes& s, const Parts& parts, bool one_a,
                             const int32_t* row_zero, int32_t* room, Product& work) {
    work.by_row = work.packed_b == nullptr || !one_a;
    if (work.packed_b == nullptr) return;
    const auto zero = static_cast<uint32_t>(row_zero[0]);
    for (int64_t i = 0; i < s.batch_b; ++i) {
      const int32_t* sums =
          dot_column_sums(work.packed_b + i * dot_packed_b_size(s.k, s.n), s.k, s.n);
      for (int64_t j = 0; j < parts.padded; ++j) {
        const auto sum = static_cast<uint32_t>(sums[j]);
        room[i * parts.padded + j] = static_cast<int32_t>(one_a ? 0 - zero * sum : sum);
      }
    }
    (one_a ? work.column_term : work.column_sums) = room;
  }

  /// Behind settle_columns, whose term it adds to or takes the place of.
  static void add_bias(const Context& context, const Sizes& s, const Parts& parts,
                       int32_t* column_term, Product& work) {
    const Tensor& bias = context.input(kBias);
    kit::require(bias.size() == s.n, "QLinearGemm: C has ", bias.size(), " elements, Y ", s.n,
                 " columns");
    const auto* const from = bias.as<uint32_t>();
    for (int64_t i = 0; i < parts.columns; ++i) {
      const int64_t j = i % parts.padded;
      const uint32_t term = work.column_term != nullptr ? static_cast<uint32_t>(column_term[i]) : 0;
      column_term[i] = static_cast<int32_t>(term + (j < s.n ? from[j] : 0));
    }
    work.column_term = column_term;
  }

  static void scales(const Context& context, const Sizes& s, const Parts& parts, const Lines& rows,
                     const Lines& columns, Product& work, Carver& carver) {
    const Tensor& scale_a = context.input(1);
    const Tensor& scale_b = context.input(4);
    const Tensor& scale_y = context.input(6);
    const Tensor& zero_y = context.input(7);
    const Tensor& y = context.output(0);
    auto* const row_scale = carver.take<float>(parts.rows);
    auto* const row_point = carver.take<int32_t>(parts.rows);
    auto* const column_scale = carver.take<float>(parts.columns);
    const bool one_row = scale_a.size() == 1 && scale_y.size() == 1;
    const double common =
        one_row ? static_cast<double>(scale_at(scale_a, 0)) / scale_at(scale_y, 0) : 1.0;
    spread_lines(scale_a, rows, 0, "a_scale", [&](int64_t row, int64_t at) {
      row_scale[row] = one_row ? 1.0F : scale_at(scale_a, at);
    });
    if (!one_row) {
      spread_lines(scale_y, rows, 0, "y_scale",
                   [&](int64_t row, int64_t at) { row_scale[row] /= scale_at(scale_y, at); });
    }
    spread_lines(zero_y, rows, 0, "y_zero_point",
                 [&](int64_t row, int64_t at) { row_point[row] = byte_at(zero_y, at); });
    std::fill_n(column_scale, parts.columns, 1.0F);
    spread_lines(scale_b, columns, 1, "b_scale", [&](int64_t column, int64_t at) {
      column_scale[column / s.n * parts.padded + column % s.n] =
          static_cast<float>(common * scale_at(scale_b, at));
    });
    work.result.bytes.y = y.mut<uint8_t>();
    work.result.bytes.is_signed = is_signed(y.dtype);
    work.result.bytes.row_scale = row_scale;
    work.result.bytes.column_scale = column_scale;
    work.result.bytes.zero = row_point;
  }
};

}  // namespace

float scale_at(const Tensor& scales, int64_t i) {
  if (scales.dtype.bits == 32) return scales.as<float>()[i];
  const HalfCodec codec = half_codec(scales.dtype);
  kit::require(static_cast<bool>(codec), "scales are ", kit::dtype_name(scales.dtype),
               ", allowed are float32, float16 and bfloat16");
  float wide = 0;
  codec.widen(scales.as<uint16_t>() + i, &wide, 1);
  return wide;
}

KernelSpan integer_matmul_kernels() {
  const std::vector<chipdock_dtype> bytes = {kit::kInt8, kit::kUint8};
  const std::vector<chipdock_dtype> floats = {kit::kFloat32, kit::kFloat16, kit::kBfloat16};
  KernelSpan span(2);
  span[0].op = "MatMulInteger";
  span[0].since = 10;
  span[0].name = "matmul_integer";
  span[0].create = make<ByteMatMul<false>>;
  span[0].dtypes = {{0, bytes}, {1, bytes}, {-1, {kit::kInt32}}};
  span[1].op = "QLinearMatMul";
  span[1].since = 10;
  span[1].name = "qlinear_matmul";
  span[1].create = make<ByteMatMul<true>>;
  span[1].dtypes = {{0, bytes}, {1, floats}, {2, bytes}, {3, bytes}, {4, floats},
                    {5, bytes}, {6, floats}, {7, bytes}, {-1, bytes}};
  span.push_back(span[1]);
  span[2].op = "QLinearGemm";
  span[2].domain = "ai.chipdock";
  span[2].since = 1;
  span[2].name = "qlinear_gemm";
  span[2].dtypes.insert(span[2].dtypes.end() - 1, {8, {kit::kInt32}});
  return span;
}

}  // namespace chipdock::plugin::cpu
