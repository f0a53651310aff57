// One graph ready to run on tensors: as a plan, or operator by operator where there is (or shall be) no plan.
#pragma once

#include <ATen/core/TensorBody.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "braze/aten/replay.h"
#include "braze/runtime/executable.h"
#include "braze/runtime/executor.h"

namespace braze::runtime {

/// Reports its lifetime as one phase of compiling; `compiler` may be null.
class PhaseClock {
 public:
  PhaseClock(PlanCompiler* compiler, const char* phase)
      : compiler_(compiler), phase_(phase), start_(std::chrono::steady_clock::now()) {}
  ~PhaseClock() {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    if (compiler_ != nullptr) compiler_->took(phase_, passed.count());
  }
  PhaseClock(const PhaseClock&) = delete;

 private:
  PlanCompiler* const compiler_;
  const char* const phase_;
  const std::chrono::steady_clock::time_point start_;
};

class CompiledGraph {
 public:
  /// `compiler` null: replayed. A toolchain that fails, or a fault of our own outside strict mode, warns once and
  /// replays. Call without the GIL.
  CompiledGraph(graph::Graph graph, PlanCompiler* compiler);

  /// One tensor per graph input; inputs that no node reads may be undefined. Below autograd and autocast.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;

  bool is_planned() const { return executor_.has_value(); }
  bool reads(std::size_t input) const { return reads_[input]; }
  const graph::Graph& graph() const { return graph_; }
  std::size_t calls() const { return graph_.nodes.size(); }  ///< aten calls of the program that one run stands for
  void add_kernels(std::vector<KernelReport>& reports) const;
  std::size_t bytes_held() const { return executor_ ? executor_->bytes_held() : 0; }
  std::size_t failed_checks() const { return failed_checks_; }

 private:
  const aten::Replay& replay() const;
  std::vector<at::Tensor> run_replay(const std::vector<at::Tensor>& inputs) const;

  graph::Graph graph_;
  std::vector<bool> reads_;
  std::optional<Executor> executor_;
  bool has_checks_ = false;
  mutable std::once_flag replay_made_;
  mutable std::optional<aten::Replay> replay_;
  mutable std::atomic<std::size_t> failed_checks_ = 0;
};

}  // namespace braze::runtime
