// A traced segment run on real tensors, operator by operator: what tests compare with eager. Free of ATen.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "braze/autograd/segment.h"
#include "braze/py/ref.h"

namespace braze::trace {

class EagerOracle {
 public:
  explicit EagerOracle(const autograd::Segment& segment);
  ~EagerOracle();

  /// Runs the joint graph without autograd: one tensor per primal, then the tangents level by level. Gives the values
  /// of joint.graph.outputs, None for none. Nothing is written back.
  std::vector<py::Owned<>> run(std::span<const py::Borrowed<>> inputs) const;
  /// The forward alone, under the thread's grad mode.
  std::vector<py::Owned<>> run_forward(std::span<const py::Borrowed<>> inputs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braze::trace
