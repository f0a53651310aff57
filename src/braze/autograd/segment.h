// What one captured segment computes on tensors: the joint graph, what its outputs are, which inputs it writes.
// Pure data, written by trace/, read by runtime/ and frame/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braze/autograd/joint_graph.h"

namespace braze::autograd {

/// How one live tensor of the segment's end comes into being.
struct Output {
  enum class Kind : std::uint8_t {
    kGraph,         ///< forward output `index` of the joint graph, a tensor of its own
    kInput,         ///< primal `index` itself (the same Python object)
    kViewOfInput,   ///< a view of primal `index`: as_strided with `type` and `offset` on it, differentiable
    kViewOfOutput,  ///< likewise of segment output `index` (any other one, itself kGraph)
  };
  Kind kind = Kind::kGraph;
  std::uint32_t index = 0;
  graph::TensorType type;
  graph::SymExpr offset;  ///< of a view: elements from the first element of what it views
  bool requires_grad = false;
  bool is_leaf = false;  ///< made under no_grad or detached: no grad_fn although requires_grad may be set
};

/// In the commit primal `primal` gets the value of forward output `output` (copy_, version counter raised).
struct Mutation {
  std::uint32_t primal = 0;
  std::uint32_t output = 0;
};

/// Facts that the first real tangents or the run must find unchanged.
struct Segment {
  JointGraph joint;
  std::vector<Output> outputs;      ///< one per tensor the outputs recipe asks for, then bases that only views need
  std::vector<Mutation> mutations;  ///< written by the forward
  bool draws_random = false;        ///< has operators of Effect::random
};

}  // namespace braze::autograd
