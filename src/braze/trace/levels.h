// The backward: PyTorch's engine runs on fakes with symbolic tangents, one run per level (autograd/joint_graph.h).
#pragma once

#include <span>

#include "braze/autograd/joint_graph.h"
#include "braze/trace/outputs.h"

namespace braze::trace {

/// Appends tangents, backward nodes and gradients to the recorder's graph, and the levels to `joint`, whose graph is
/// not touched yet. Returns the gradients, level by level. Recorder::fail if the backward would run Python or raises.
std::vector<graph::ValueId> trace_backward(Recorder& r, Inputs& inputs, std::span<const GraphOutput> outputs,
                                           autograd::JointGraph& joint);

}  // namespace braze::trace
