// Two replays: the joint graph, and its forward part.
#include "braze/trace/eager_oracle.h"

#include <ATen/core/grad_mode.h>

#include "braze/aten/error.h"
#include "braze/aten/python_tensor.h"
#include "braze/aten/replay.h"
#include "braze/py/gil.h"

namespace braze::trace {

using py::Borrowed;
using py::Owned;

namespace {

graph::Graph forward_of(const autograd::JointGraph& joint) {
  graph::Graph g = joint.graph;
  g.inputs.resize(joint.primals);
  g.outputs.resize(joint.forward_outputs);
  g.nodes.resize(joint.forward_nodes);
  return g;
}

std::vector<Owned<>> replay(const aten::Replay& replay, std::span<const Borrowed<>> objects) {
  std::vector<at::Tensor> inputs;
  for (const Borrowed<> o : objects) inputs.push_back(aten::unwrap(o));
  const std::vector<at::Tensor> results = aten::translated([&] {
    const py::GilRelease others_run;
    return replay.run(inputs);
  });
  std::vector<Owned<>> out;
  for (const at::Tensor& t : results) out.push_back(aten::wrap(t));
  return out;
}

}  // namespace

struct EagerOracle::State {
  aten::Replay joint, forward;
};

EagerOracle::EagerOracle(const autograd::Segment& segment)
    : state_(new State{aten::Replay(segment.joint.graph), aten::Replay(forward_of(segment.joint))}) {}

EagerOracle::~EagerOracle() = default;

std::vector<Owned<>> EagerOracle::run(std::span<const Borrowed<>> inputs) const {
  const at::NoGradGuard no_grad;
  return replay(state_->joint, inputs);
}

std::vector<Owned<>> EagerOracle::run_forward(std::span<const Borrowed<>> inputs) const {
  return replay(state_->forward, inputs);
}

}  // namespace braze::trace
