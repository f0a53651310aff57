// What the tensors alive at a segment's end are: inputs, views of inputs, views of each other, or values of the graph.
#pragma once

#include <ATen/core/TensorBody.h>

#include <span>
#include <vector>

#include "braze/autograd/segment.h"
#include "braze/trace/inputs.h"

namespace braze::trace {

struct GraphOutput {
  at::Tensor wrapper;  ///< what the program holds, with its autograd history; undefined for a written input's value
  at::Tensor fake;     ///< the fake below, final
};

struct Outputs {
  std::vector<autograd::Output> outputs;  ///< the tensors asked for, then hidden bases that some are views of
  std::vector<GraphOutput> graph;         ///< of kind kGraph, in the order of Output::index
};

/// Recorder::fail for outputs that cannot be described.
Outputs classify_outputs(Recorder& r, Inputs& inputs, std::span<const at::Tensor> tensors);

/// The fake below PyTorch's functionalization, pending writes applied.
at::Tensor final_fake(Recorder& r, const at::Tensor& wrapper);

/// A node that copies: what leaves the graph owns its memory.
at::Tensor own_copy(Recorder& r, const at::Tensor& fake);

}  // namespace braze::trace
