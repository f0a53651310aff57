// Reductions over some dimensions of a value: which loops run over what, and how results with keepdim are indexed.
#pragma once

#include "braze/loop/lower/pointwise.h"

namespace braze::loop {

/// Dimensions of a value that are folded. Results have the other dimensions, with or without 1s in their places.
struct Folded {
  std::vector<SymExpr> space;    ///< sizes of the result
  std::vector<SymExpr> reduced;  ///< extents of the folded dimensions; never empty
  std::vector<int> from;         ///< per dimension of the value: position k in space, or -1 - position in reduced
  bool keeps = false;            ///< the folded dimensions stay as 1s

  /// Indices of the value in a loop over space and reduced.
  std::vector<SymExpr> at(const Loop& loop) const;
  /// Indices of a result in a loop over the value's own space.
  std::vector<SymExpr> result_at(std::span<const SymExpr> i) const;
  SymExpr count() const { return sym::product(reduced); }
};

Folded fold_dims(const std::vector<SymExpr>& sizes, const std::vector<bool>& folded, bool keep);
/// dims as in a schema: none or empty means all.
std::vector<bool> dims_arg(const Node& node, std::size_t position, std::size_t rank);
std::vector<bool> all_dims(std::size_t rank);

/// An integer expression as a float of this type.
Term count_term(Loop& loop, const SymExpr& count, DType type);

}  // namespace braze::loop
