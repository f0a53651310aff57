// Finds how an operator's loop variables lie in the axes of a group, splitting axes where a reshape requires it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braze/schedule/schedule.h"
#include "braze/sym/simplify.h"

namespace braze::schedule {

/// axis := size * outer + inner, where 0 <= inner < size.
struct Split {
  std::string axis, outer, inner;
  SymExpr outer_extent, size;
};

struct Match {
  std::vector<SymExpr> variables;  ///< of the operator, over the axes after the splits
  std::vector<Split> splits;       ///< in order
};

/// One pair of positions that must be the same element: of the operator over its variables, of the group over its axes.
struct Meeting {
  SymExpr of_operator, of_group;
};

/// The meeting fixes the variables it mentions; the other variables lie in the other axes in order, if the sizes agree.
/// With `leave_axes` the other axes may stay without a variable.
std::optional<Match> match(const loop::LoopOp& op, const Group& group, const Meeting& meeting, bool leave_axes);

void apply(const std::vector<Split>& splits, Group& group);
SymExpr apply(const std::vector<Split>& splits, SymExpr e);

/// Ranges of the axes, for simplify.
sym::Ranges ranges_of(const std::vector<Axis>& axes);

}  // namespace braze::schedule
