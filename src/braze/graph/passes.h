// The passes over graphs, in the order in which compile runs them: on forwards and backwards, never on a joint graph.
// There a copy that the backward keeps must stay one, because its original may be written in between.
#pragma once

#include <array>

#include "braze/graph/graph.h"
#include "braze/support/passes.h"

namespace braze::graph {

void fold_likes(Graph& g);
void fold_noops(Graph& g);
void merge_common_nodes(Graph& g);

using GraphPass = support::Pass<Graph>;

inline constexpr std::array kGraphPasses = {
    GraphPass{"likes", "zeros_like and its kin become full: they need the type only", fold_likes},
    GraphPass{"noops", "removes views of the same type, unobservable copies and exact identities", fold_noops},
    GraphPass{"cse", "computes like expressions once; outputs stay distinct in memory", merge_common_nodes},
    GraphPass{"dce", "removes pure and view nodes that no output needs", eliminate_dead_code},
};

}  // namespace braze::graph
