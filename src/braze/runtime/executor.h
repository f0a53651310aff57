// Runs plans: about 60 ns per step besides the work itself. Any thread may run one executor at the same time.
#pragma once

#include <ATen/core/TensorBody.h>

#include <exception>
#include <memory>
#include <vector>

#include "braze/plan/plan.h"
#include "braze/runtime/process_library.h"

namespace braze::runtime {

/// A kernel met data on which eager would raise (an index out of range ...): nothing that the plan computed counts.
struct ChecksFailed : std::exception {
  const char* what() const noexcept override { return "a check inside a compiled kernel failed"; }
};

class Executor {
 public:
  /// Compiles or finds the kernels. CompileError. Call without the GIL.
  Executor(plan::Plan plan, KernelLibrary& library);
  ~Executor();

  /// One tensor per plan input; what the plan does not read may be undefined. One fresh tensor per output; an output
  /// may share memory with an input if the plan says so. Below autograd and autocast. Nothing outside is written.
  /// An input whose strides differ from the plan's is copied first.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;

  const plan::Plan& plan() const;
  std::size_t bytes_held() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braze::runtime
