// The table of contents: a tensor-level graph in, a host program with kernel sources out. Pure: no Python, no ATen.
#pragma once

#include "braze/graph/graph.h"
#include "braze/loop/loop.h"
#include "braze/plan/plan.h"
#include "braze/support/passes.h"
#include "braze/support/target.h"

namespace braze::compile {

using support::Target;

/// Never fails for a graph that verifies: what cannot be lowered becomes a library call.
plan::Plan compile(graph::Graph graph, const Target& target, support::Observer& observer);

/// The part behind lowering.
plan::Plan compile_loops(loop::LoopProgram loops, const Target& target, support::Observer& observer);

}  // namespace braze::compile
