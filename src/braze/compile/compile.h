// The table of contents: a tensor-level graph in, a host program with kernel sources out. Pure: no Python, no ATen.
#pragma once

#include "braze/graph/graph.h"
#include "braze/plan/plan.h"
#include "braze/support/passes.h"

namespace braze::compile {

/// What the code is for. `features` are resolved names ("avx512f", ...), never "native".
struct Target {
  std::vector<std::string> features;
  int threads = 1;
  bool strict = false;  ///< bitwise equal to eager: no kernels that reorder sums or keep wider values
};

/// Never fails for a graph that verifies: what cannot be lowered becomes a library call.
plan::Plan compile(graph::Graph graph, const Target& target, support::Observer& observer);

}  // namespace braze::compile
