// The real tensors that a trace has met, their fakes, and what the program may not do to them.
#pragma once

#include <ATen/core/TensorBody.h>
#include <torch/csrc/autograd/function.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "braze/py/ref.h"
#include "braze/trace/recorder.h"

namespace braze::trace {

using py::Borrowed;
using py::Owned;

struct Input {
  std::uint32_t primal = 0;  ///< index into graph.inputs
  Owned<> real, fake;
  at::Tensor real_tensor, wrapper;
  graph::ValueId value;
  torch::autograd::Edge edge;     ///< where gradients of the fake arrive; invalid if it requires none
  const void* storage = nullptr;  ///< of the wrapper
  const void* inner_storage = nullptr;
  bool written = false;
};

class Inputs {
 public:
  /// Why a tensor cannot be an input; nothing if it can.
  static std::optional<std::string> refusal(Borrowed<> real);

  /// Makes the fake, opens a graph input for it.
  Input& add(Recorder& r, Borrowed<> real);
  Input* find_real(Borrowed<> real);
  Input* find_fake(const at::Tensor& fake);
  Input* find_storage(const void* wrapper_storage);

  /// Notes which inputs were written, and says what was done to one that a compiled segment cannot do: metadata
  /// changed, history changed, an alias of another input written. Cheap: called after every torch call.
  std::optional<std::string> check();

  std::vector<Input>& all() { return inputs_; }

 private:
  std::optional<std::string> check_written(const Input& input) const;
  std::optional<std::string> check_input(Input& input) const;

  std::vector<Input> inputs_;
  std::unordered_map<const void*, std::size_t> by_real_, by_fake_, by_storage_;
};

}  // namespace braze::trace
