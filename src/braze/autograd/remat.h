// What may be computed again in the backward, and what a kept value costs.
#pragma once

#include "braze/autograd/joint_graph.h"

namespace braze::autograd {

/// True for cheap operators that fuse: pointwise, views, factories. Not matrix products, convolutions, attention,
/// reductions, normalisations, gathers, anything random or unknown.
bool is_recomputable(const graph::Node& node);
/// Runs inside a generated kernel: an operand of such a node need not exist in memory.
bool is_fusible(const graph::Node& node);
bool is_view(const graph::Node& node);

/// Bytes of a value, symbols at their hints.
std::int64_t bytes_of(const Graph& g, ValueId v);

}  // namespace braze::autograd
