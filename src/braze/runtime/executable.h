// A compiled segment: real tensors in, real tensors out, effects committed last. Free of ATen.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braze/autograd/segment.h"
#include "braze/plan/plan.h"
#include "braze/py/ref.h"

namespace braze::runtime {

using py::Owned;

/// Turns a graph into a plan; frame/ gives one (compile::compile behind it), called from the engine's threads too.
class PlanCompiler {
 public:
  virtual ~PlanCompiler() = default;
  virtual plan::Plan compile(const graph::Graph& graph) = 0;
  virtual void took(std::string_view /*phase*/, double /*seconds*/) {}  ///< what the run time does beside that
};

struct KernelReport {
  std::string name, source, summary, origins;
};

class Executable {
 public:
  virtual ~Executable() = default;
  /// inputs: one real tensor per primal, checked by the guards. Returns one tensor per Segment::outputs with its
  /// autograd history. Nothing visible was written if it throws (PyError).
  virtual std::vector<Owned<>> run(std::span<PyObject* const> inputs) = 0;
  virtual std::vector<KernelReport> kernels() const = 0;  ///< forward, and backward variants compiled so far
  virtual std::size_t compiled_ops() const = 0;           ///< aten calls of the program that a plan executes, per run
  virtual std::size_t compiled_backward_ops() const { return 0; }  ///< the same for backwards, over all runs so far
  virtual double replay_seconds() { return 0; }  ///< the forward plan on the last inputs, from C++ (plan_us)
  virtual std::size_t bytes_held() const = 0;
};

enum class Backend {
  kBraze,     ///< plans and generated kernels
  kEager,     ///< forward replayed operator by operator under grad mode: PyTorch's autograd differentiates
  kAotEager,  ///< partitioned graphs replayed operator by operator
};

/// Partitions, compiles the forward, and prepares backwards that compile when their first real tangents arrive.
std::unique_ptr<Executable> make_executable(autograd::Segment segment, Backend backend,
                                            std::shared_ptr<PlanCompiler> compiler);

}  // namespace braze::runtime
