// An operator call on its way to becoming a node.
#pragma once

#include <optional>
#include <vector>

#include "braze/trace/fake_tensor.h"
#include "braze/trace/operator_facts.h"
#include "braze/trace/recorder.h"

namespace braze::trace {

struct Call {
  Recorder& r;
  const c10::OperatorHandle& op;
  const OperatorFacts& facts;
  torch::jit::Stack& stack;
  std::size_t base;                  ///< of the arguments in the stack
  std::vector<graph::Arg> args;      ///< converted
  std::vector<at::Tensor> operands;  ///< the fakes among them
  std::optional<at::Device> device;  ///< where results live
};

/// Finds the result types, appends the node and replaces the arguments on the stack by fakes of the results.
void append_node(Call& c);

Geometry geometry_of(const at::Tensor& t);
op::TensorType type_of(const Geometry& g);

}  // namespace braze::trace
