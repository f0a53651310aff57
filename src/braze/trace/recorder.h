// The graph under construction and what has gone wrong with it. Shared by the dispatch mode (which appends) and the
// Tracer (which opens inputs and closes the graph).
#pragma once

#include <ATen/core/TensorBody.h>

#include <optional>
#include <string>
#include <unordered_set>

#include "braze/graph/graph.h"

namespace braze::trace {

/// Thrown through PyTorch to leave the operator under way; the reason waits in Recorder::poison.
struct Poisoned : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Recorder {
  graph::Graph graph;
  graph::Location at;                              ///< of the nodes to come
  std::vector<at::Tensor> inputs;                  ///< real tensors behind graph.inputs, tangents aside
  std::vector<bool> is_constant;                   ///< of inputs: made by the program itself (torch.tensor([...]))
  std::unordered_set<const void*> input_storages;  ///< of the fakes of inputs
  bool draws_random = false;
  bool is_backward = false;   ///< the autograd engine runs
  bool had_grad_mode = true;  ///< when the trace began

  std::optional<std::string> poison;
  at::Tensor poison_tensor;

  [[noreturn]] void fail(std::string reason, at::Tensor tensor = {});
};

/// The recorder of this thread; null if it is not tracing.
Recorder* current_recorder() noexcept;
Recorder* exchange_recorder(Recorder* next) noexcept;

/// Pushes the native dispatch mode that records to current_recorder(), and turns functionalization on, both for this
/// thread. Whoever restores the thread's state takes them off.
void enter_dispatch_mode();

/// Adds a node of one result and gives its fake, outside of the dispatcher.
at::Tensor record(Recorder& r, std::string_view name, std::vector<graph::Arg> args, const at::Tensor& like);

}  // namespace braze::trace
