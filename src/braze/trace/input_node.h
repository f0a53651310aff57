// The autograd node behind a fake whose real tensor has history: gradients are caught here, nothing lies beyond.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace braze::trace {

/// However this version of PyTorch counts references to nodes.
using NodeRef = decltype(torch::autograd::Edge::function);

/// A node with one input that looks like `t`. Running it is an error: the engine only captures its input.
NodeRef make_input_node(const at::Tensor& t);

}  // namespace braze::trace
