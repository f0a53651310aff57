// Runs a graph on real tensors, operator by operator, through PyTorch's dispatcher: the oracle, the backends eager and
// aot_eager, and every fallback.
#pragma once

#include <ATen/core/TensorBody.h>

#include <memory>
#include <span>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::aten {

/// A graph prepared once (operators looked up, arguments boxed, last uses known) and run many times, by any thread.
/// Autograd records if grad mode is on: `aten.detach` stands where the program left autograd. Autocast is off
/// meanwhile: its casts are nodes. Needs no GIL. Errors of operators pass as c10::Error.
class Replay {
 public:
  explicit Replay(graph::Graph g);
  ~Replay();
  Replay(Replay&&) noexcept;

  /// One tensor per graph input; an undefined tensor per none output. Outputs may alias inputs, as the graph says.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs) const;
  const graph::Graph& graph() const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

std::vector<at::Tensor> replay(const graph::Graph& g, std::span<const at::Tensor> inputs);

}  // namespace braze::aten
