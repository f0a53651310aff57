// A forward graph together with the backward that PyTorch's own engine produced for it, and how to split it.
//
// Outputs that other outputs depend on cut the backward into levels (DESIGN 6): the gradient of such an output flows
// through its own edge, so that hooks and retain_grad on it mean what they mean in eager. Most programs have one level.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::autograd {

using graph::Graph;
using graph::ValueId;

/// Where a gradient goes: to an input of the forward, or into an earlier forward output.
struct Edge {
  enum class Kind : std::uint8_t { kPrimal, kOutput };
  Kind kind = Kind::kPrimal;
  std::uint32_t index = 0;  ///< of graph.inputs (a primal) or graph.outputs (a forward output)
  bool operator==(const Edge&) const = default;
};

/// One autograd Node: tangents of `outputs` come in, one gradient per edge goes out.
struct Level {
  std::vector<std::uint32_t> outputs;  ///< indices of forward outputs; tangents[i] is the tangent of outputs[i]
  std::vector<ValueId> tangents;       ///< inputs of the graph
  std::vector<Edge> edges;
  std::vector<ValueId> gradients;  ///< one per edge; none: undefined (unreached), never zeros
};

/// graph.inputs = primals, then all tangents level by level. graph.outputs = forward outputs, then all gradients.
/// nodes[0, forward_nodes) are the forward. Without differentiable outputs there is no level.
struct JointGraph {
  Graph graph;
  std::size_t primals = 0;
  std::size_t forward_outputs = 0;
  std::size_t forward_nodes = 0;
  std::vector<Level> levels;
};

/// A joint graph of one level from its text, by names: inputs named tangent... are the tangents of the first outputs,
/// in order; outputs that depend on them are gradients of the first primals; nodes that depend on them, and all after
/// the first of these, are the backward.
JointGraph read_joint(Graph g);

/// A value that the backward needs and the forward keeps for it.
struct Saved {
  enum class Kind : std::uint8_t { kPrimal, kOutput, kExtra };
  Kind kind = Kind::kPrimal;
  std::uint32_t index = 0;  ///< of primals; of forward outputs; of the extra outputs of `forward`
  bool operator==(const Saved&) const = default;
};

/// backward.inputs = saved values in order, then the level's tangents. backward.outputs = its gradients.
struct Backward {
  Graph graph;
  std::vector<Saved> saved;
  std::vector<std::uint32_t> outputs;  ///< as Level
  std::vector<Edge> edges;             ///< as Level
};

/// forward.inputs = primals. forward.outputs = the forward outputs, then `extras` values saved for the backwards.
struct Partitioned {
  Graph forward;
  std::size_t forward_outputs = 0;
  std::size_t extras = 0;
  std::vector<Backward> backwards;
};

/// Splits by a minimum cut over saved bytes. Cheap fusible operators may be recomputed in the backward; matmuls,
/// convolutions, large reductions and random operators are not. A primal or a forward output is saved or recomputed
/// from only if the traced backward itself uses it (eager saves it too), since the user may change it in between.
Partitioned partition(const JointGraph& joint);

/// The backward for tangents of which only some are defined (mask[i] is outputs[i]'s): dead code removed. Gradients
/// that depend on undefined tangents only become none; a sum with one undefined side becomes the other side.
/// `needed[j]` false drops gradient j. Inputs keep their places.
Graph specialise(const Backward& backward, const std::vector<bool>& defined, const std::vector<bool>& needed);

/// The forward, then each backward, with a line that says where its inputs come from and its gradients go.
std::string to_text(const Partitioned& p);

}  // namespace braze::autograd
