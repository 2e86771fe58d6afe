// SPDX-License-Identifier: Apache-2.0
// Broadcasting of a binary function: equal shapes and scalars go straight through, all else by
// rows, and rows too short to be worth a call are gathered into blocks first.
#include "ops/elementwise/arithmetic.hpp"
#include "ops/elementwise/broadcast.hpp"

namespace chipdock::plugin::cpu {
namespace {

/// Below this many elements a call for each row costs more than copying the row.
constexpr int64_t kShortRow = 32;

struct Pointers {
  const char* a;
  const char* b;
  char* c;
};

void flat(const Context& context, const BinaryFunction& function, const Pointers& p, int64_t n,
          Operands operands) {
  const int64_t step_a = operands == Operands::kScalarLeft ? 0 : function.input_size();
  const int64_t step_b = operands == Operands::kScalarRight ? 0 : function.input_size();
  over(context, n, kGrain, [&](int64_t begin, int64_t end) {
    function.apply(p.a + begin * step_a, p.b + begin * step_b, p.c + begin * function.output_size(),
                   end - begin, operands);
  });
}

void by_rows(const Broadcast<2>& plan, const BinaryFunction& function, const Pointers& p,
             int64_t begin, int64_t end) {
  const Operands operands = plan.still(0)   ? Operands::kScalarLeft
                            : plan.still(1) ? Operands::kScalarRight
                                            : Operands::kBoth;
  const int64_t size = function.input_size();
  plan.walk(begin, end, end, [&](const int64_t* offset, int64_t at, int64_t n) {
    function.apply(p.a + offset[0] * size, p.b + offset[1] * size,
                   p.c + at * function.output_size(), n, operands);
  });
}

template <class U>
void gathered(const Broadcast<2>& plan, const BinaryFunction& function, const Pointers& p,
              int64_t begin, int64_t end) {
  alignas(64) U left[kBlock];
  alignas(64) U right[kBlock];
  const int64_t step_a = plan.still(0) ? 0 : 1;
  const int64_t step_b = plan.still(1) ? 0 : 1;
  for (int64_t start = begin; start < end; start += kBlock) {
    const int64_t stop = std::min(end, start + kBlock);
    plan.walk(start, stop, stop, [&](const int64_t* offset, int64_t at, int64_t n) {
      const U* from_a = reinterpret_cast<const U*>(p.a) + offset[0];
      const U* from_b = reinterpret_cast<const U*>(p.b) + offset[1];
      U* to_a = left + (at - start);
      U* to_b = right + (at - start);
      for (int64_t i = 0; i < n; ++i) to_a[i] = from_a[i * step_a];
      for (int64_t i = 0; i < n; ++i) to_b[i] = from_b[i * step_b];
    });
    function.apply(left, right, p.c + start * function.output_size(), stop - start,
                   Operands::kBoth);
  }
}

void short_rows(const Broadcast<2>& plan, const BinaryFunction& function, const Pointers& p,
                int64_t begin, int64_t end) {
  switch (function.input_size()) {
    case 1:
      return gathered<uint8_t>(plan, function, p, begin, end);
    case 2:
      return gathered<uint16_t>(plan, function, p, begin, end);
    case 4:
      return gathered<uint32_t>(plan, function, p, begin, end);
    default:
      return gathered<uint64_t>(plan, function, p, begin, end);
  }
}

}  // namespace

void apply_broadcast(const Context& context, const BinaryFunction& function, const Tensor& a,
                     const Tensor& b, const Tensor& c, std::string_view op) {
  const int64_t n = c.size();
  if (n == 0) return;
  const int64_t size_a = a.size();
  const int64_t size_b = b.size();
  const Pointers p{a.as<char>(), b.as<char>(), c.mut<char>()};
  if (size_a == n && size_b == n) return flat(context, function, p, n, Operands::kBoth);
  if (size_a == n && size_b == 1) return flat(context, function, p, n, Operands::kScalarRight);
  if (size_a == 1 && size_b == n) return flat(context, function, p, n, Operands::kScalarLeft);
  const Broadcast<2> plan(c, {&a, &b}, op);
  const bool is_short = plan.row_size() < kShortRow;
  over(context, n, kGrain, [&](int64_t begin, int64_t end) {
    if (is_short) {
      short_rows(plan, function, p, begin, end);
    } else {
      by_rows(plan, function, p, begin, end);
    }
  });
}

}  // namespace chipdock::plugin::cpu
