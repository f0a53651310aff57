// One level of a segment's backward as a Node of PyTorch's autograd engine.
#pragma once

#include <torch/csrc/autograd/saved_variable.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braze/autograd/joint_graph.h"
#include "braze/runtime/compat/autograd_node.h"
#include "braze/runtime/compiled_graph.h"

namespace braze::runtime {

/// The programs of one level, shared by all its Nodes: one per mask of defined tangents and needed gradients, compiled
/// when first met. Thread-safe.
class LevelPrograms {
 public:
  /// `compiler` null: replayed.
  LevelPrograms(autograd::Backward backward, std::shared_ptr<PlanCompiler> compiler)
      : backward_(std::move(backward)), compiler_(std::move(compiler)) {}

  const autograd::Backward& backward() const { return backward_; }
  std::shared_ptr<const CompiledGraph> find(const std::vector<bool>& defined, const std::vector<bool>& needed);
  void add_kernels(std::vector<KernelReport>& reports) const;
  std::size_t bytes_held() const;
  void count_run(const CompiledGraph& program) { planned_calls_ += program.is_planned() ? program.calls() : 0; }
  std::size_t planned_calls() const { return planned_calls_; }  ///< aten calls that plans of this level executed so far

 private:
  graph::Graph specialised(const std::vector<bool>& defined, const std::vector<bool>& needed) const;

  const autograd::Backward backward_;
  const std::shared_ptr<PlanCompiler> compiler_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::vector<bool>, std::vector<bool>>, std::shared_ptr<const CompiledGraph>> programs_;
  std::atomic<std::size_t> planned_calls_ = 0;
};

/// Holds saved tensors as eager's Nodes do: versions are checked, tensors freed after use unless the graph is retained,
/// saved-tensor hooks honoured.
class BackwardNode final : public torch::autograd::Node {
 public:
  explicit BackwardNode(std::shared_ptr<LevelPrograms> level) : level_(std::move(level)) {}

  /// Once, after the outputs got this Node as their history. `is_output[i]`: saved[i] is an output of this Node.
  void save(const std::vector<at::Tensor>& saved, const std::vector<bool>& is_output);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  std::string name() const override { return "BrazeBackward"; }
  void release_variables() override;

 private:
  std::vector<at::Tensor> unpack(const CompiledGraph& program);
  void forget();

  const std::shared_ptr<LevelPrograms> level_;
  std::vector<torch::autograd::SavedVariable> saved_;
  bool released_ = false;
};

}  // namespace braze::runtime
