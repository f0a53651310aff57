// The passes over graphs, in the order in which compile runs them.
#pragma once

#include <array>

#include "braze/graph/graph.h"
#include "braze/support/passes.h"

namespace braze::graph {

using GraphPass = support::Pass<Graph>;

inline constexpr std::array kGraphPasses = {
    GraphPass{"dce", "removes pure and view nodes that no output needs", eliminate_dead_code},
};

}  // namespace braze::graph
