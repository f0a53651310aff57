// How a value's logical indices become indices of the tensor it is read from: what views turn into.
//
//   y = x.view(s0, 12, 64).transpose(0, 1), x: [s0, 768]:    y[i0, i1, i2] = x[i1, 64*i0 + i2]
#pragma once

#include <span>

#include "braze/loop/loop.h"
#include "braze/sym/simplify.h"

namespace braze::loop {

/// An index as a function of a value's own indices i0, i1, ...: one of them, or an expression over them.
struct Index {
  int var = -1;  ///< >= 0: i<var>
  SymExpr expr;

  static Index of_var(std::size_t position) { return {static_cast<int>(position), SymExpr()}; }
  static Index of(SymExpr e) { return {-1, std::move(e)}; }
  SymExpr to_expr() const { return var >= 0 ? space_var(static_cast<std::size_t>(var)) : expr; }
};
using IndexMap = std::vector<Index>;

/// i0, i1, ... where the extent is not 1, else 0.
IndexMap identity_map(std::span<const SymExpr> sizes);
std::vector<SymExpr> space_vars(std::span<const SymExpr> extents);
std::vector<SymExpr> reduced_vars(std::span<const SymExpr> extents);

/// The map at given indices. `ranges`: what is known of the symbols in `at`.
std::vector<SymExpr> apply(const IndexMap& map, std::span<const SymExpr> at, const sym::Ranges& ranges);
SymExpr apply(const SymExpr& content, std::span<const SymExpr> at, const sym::Ranges& ranges);

/// First `inner`, then `outer`. `ranges` belong to the indices of `inner`.
IndexMap compose(const IndexMap& outer, const IndexMap& inner, const sym::Ranges& ranges);

/// Adds 0 <= i_k < space[k], 0 <= r_k < reduced[k].
void add_ranges(sym::Ranges& ranges, std::span<const SymExpr> space, std::span<const SymExpr> reduced);
/// True if applying the map calls for simplification.
bool has_arithmetic(const IndexMap& map);

/// Row-major relinearisation: indices of a tensor of `from` sizes, over the indices of the same data in `to` sizes.
IndexMap reshape_map(std::span<const SymExpr> from, std::span<const SymExpr> to, const sym::Ranges& ranges);

/// Indices of an operand of sizes `from` in a space of sizes `to` (dimensions from the right).
IndexMap broadcast_map(std::span<const SymExpr> from, std::span<const SymExpr> to);

}  // namespace braze::loop
