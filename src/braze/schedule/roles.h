// What a member does in its group: the role that its loop variables give it, and which axes become outer.
#pragma once

#include <optional>

#include "braze/schedule/match.h"

namespace braze::schedule {

/// The role of the operator in the group after the match, or nothing with a reason. A reduction in a group without
/// roles decides them (in `group`, to which the splits were applied).
struct Fit {
  std::optional<Role> role;
  std::string reason;
};
Fit fit(const LoopProgram& program, const loop::LoopOp& op, const std::vector<SymExpr>& variables, Group& group,
        const support::Target& target);

}  // namespace braze::schedule
