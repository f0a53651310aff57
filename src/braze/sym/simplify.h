// Simplification with facts about symbols: what makes a flat index of a reshape an index again.
//
//   ranges: 0 <= i0 < 8, 0 <= i1 < 1024:    floordiv(1024*i0 + i1, 1024) == i0,  mod(1024*i0 + i1, 1024) == i1
//   ranges: 0 <= i0 < s0, 0 <= i1 < s1:     floordiv(s1*i0 + i1, s1) == i0
#pragma once

#include <optional>

#include "braze/sym/sym_expr.h"

namespace braze::sym {

/// low <= symbol <= high; and symbol < limit, if there is a limit (a size, constant or symbolic).
struct Range {
  std::string name;
  std::int64_t low = 0;
  std::int64_t high = INT64_MAX;  ///< INT64_MAX: unbounded
  std::optional<SymExpr> limit;
};
/// Few entries, looked up one by one. Symbols without an entry are unbounded.
using Ranges = std::vector<Range>;

/// 0 <= name < extent.
Range index_range(std::string_view name, const SymExpr& extent);

struct Bounds {
  std::int64_t low, high;  ///< inclusive; INT64_MIN, INT64_MAX: unbounded
};
Bounds bounds_of(const SymExpr& e, const Ranges& ranges);

/// An expression with the same value wherever the ranges hold.
SymExpr simplify(const SymExpr& e, const Ranges& ranges);

/// True if it can be shown that a < b, a <= b wherever the ranges hold; false if not, or not known.
bool is_less(const SymExpr& a, const SymExpr& b, const Ranges& ranges);
bool is_less_equal(const SymExpr& a, const SymExpr& b, const Ranges& ranges);

}  // namespace braze::sym
