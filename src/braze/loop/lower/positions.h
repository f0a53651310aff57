// Positions along a dimension as Python slices and selects count them.
#pragma once

#include "braze/loop/lower/lowering.h"

namespace braze::loop {

/// A slice's start or end: negative ones count from the end, those beyond an end stop there. Nothing if a symbolic
/// one cannot be placed.
std::optional<SymExpr> clamp_position(const Lowering& l, const SymExpr& position, const SymExpr& size);
/// A select's index, counted from the front; nothing if its sign is not known.
std::optional<SymExpr> front_index(const Lowering& l, const SymExpr& index, const SymExpr& size);

}  // namespace braze::loop
