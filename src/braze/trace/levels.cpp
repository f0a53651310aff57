// The graph of grad_fns belongs to this trace alone, so it may be cut: wherever an output flows into another output,
// the edge is turned to an input node. Then each level is an engine run of its own that stops at inputs and at such
// nodes.
#include "braze/trace/levels.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "braze/aten/error.h"
#include "braze/aten/types.h"
#include "braze/py/gil.h"
#include "braze/support/text.h"
#include "braze/trace/fake_tensor.h"
#include "braze/trace/input_node.h"

namespace braze::trace {

using autograd::Edge;
using autograd::Level;
using graph::ValueId;
using torch::autograd::Node;

namespace {

using TorchEdge = torch::autograd::Edge;

/// A place where gradients may arrive.
struct Target {
  Edge edge;
  TorchEdge at;
};

/// torch::autograd::PyNode (a Python autograd.Function): libtorch_python does not export the class.
bool is_python_node(const Node& node) { return std::string_view(typeid(node).name()) == "N5torch8autograd6PyNodeE"; }

/// A C++ autograd::Function: its forward ran without autograd, so no replay could differentiate it.
bool is_custom_node(const Node& node) {
  return std::string_view(typeid(node).name()).find("CppNode") != std::string_view::npos;
}

bool runs_python(Node& node) {
  return is_python_node(node) || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty() ||
         node.tensor_post_acc_grad_hooks() != nullptr;
}

class Backward {
 public:
  Backward(Recorder& r, Inputs& inputs, std::span<const GraphOutput> outputs)
      : r_(r), inputs_(inputs), outputs_(outputs) {}

  std::vector<ValueId> run(autograd::JointGraph& joint) {
    find_outputs();
    if (differentiable_.empty()) return {};
    cut();
    joint.levels = make_levels();
    std::vector<std::vector<at::Tensor>> tangents;
    for (Level& level : joint.levels) tangents.push_back(open_tangents(level));
    std::vector<ValueId> gradients;
    for (std::size_t i = 0; i < joint.levels.size(); ++i) {
      run_level(joint.levels[i], tangents[i]);
      gradients.insert(gradients.end(), joint.levels[i].gradients.begin(), joint.levels[i].gradients.end());
    }
    return gradients;
  }

 private:
  void find_outputs() {
    for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
      const at::Tensor& t = outputs_[i].wrapper;
      if (!t.defined() || !t.requires_grad()) continue;
      edges_[i] = torch::autograd::impl::gradient_edge(t);
      if (!t.is_leaf()) differentiable_.push_back(i);
    }
  }

  std::vector<Node*> reach(std::uint32_t output) const {
    std::vector<Node*> order{edges_.at(output).function.get()};
    std::unordered_set<Node*> seen{order[0]};
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const TorchEdge& e : order[i]->next_edges())
        if (e.is_valid() && seen.insert(e.function.get()).second) order.push_back(e.function.get());
    return order;
  }

  void cut() {
    for (const auto& [i, edge] : edges_) cuts_[i] = {make_input_node(outputs_[i].wrapper), 0};
    for (const std::uint32_t i : differentiable_)
      for (Node* node : reach(i)) {
        if (runs_python(*node)) r_.fail(support::format("the backward runs Python: {}", node->name()));
        if (is_custom_node(*node)) r_.fail(support::format("a custom autograd function: {}", node->name()));
        cut_edges_of(*node);
      }
  }

  void cut_edges_of(Node& node) {
    for (std::uint32_t e = 0; e < node.num_outputs(); ++e)
      for (const auto& [i, edge] : edges_)
        if (node.next_edge(e) == edge) {
          node.next_edges()[e] = cuts_.at(i);  // set_next_edge wants a node without parents
          break;
        }
  }

  /// 0 for an output that depends on no other, else one more than the highest it depends on.
  std::size_t height(std::uint32_t output) {
    if (const auto known = heights_.find(output); known != heights_.end()) return known->second;
    std::size_t h = 0;
    for (Node* node : reach(output))
      for (const auto& [i, cut] : cuts_)
        if (cut.function.get() == node && edges_.contains(i) && !outputs_[i].wrapper.is_leaf())
          h = std::max(h, height(i) + 1);
    return heights_[output] = h;
  }

  std::vector<Level> make_levels() {
    std::map<std::size_t, Level> by_height;
    for (const std::uint32_t i : differentiable_) by_height[height(i)].outputs.push_back(i);
    std::vector<Level> levels;
    for (auto& [h, level] : by_height) levels.push_back(std::move(level));
    return levels;
  }

  std::vector<at::Tensor> open_tangents(Level& level) {
    std::vector<at::Tensor> out;
    for (const std::uint32_t i : level.outputs) {
      const at::Tensor& t = outputs_[i].fake;
      Geometry g{t.sizes().vec(), t.strides().vec(), 0, t.scalar_type(), t.device()};
      if (!t.is_non_overlapping_and_dense()) g.strides = aten::to_ints(op::contiguous_strides(aten::to_exprs(g.sizes)));
      op::TensorType type{*aten::to_dtype(g.dtype), aten::to_exprs(g.sizes), aten::to_exprs(g.strides),
                          aten::to_device(g.device)};
      level.tangents.push_back(graph::add_input(r_.graph, support::format("t{}", i), std::move(type)));
      out.push_back(at::functionalization::impl::to_functional_tensor(make_fake(g, level.tangents.back())));
    }
    return out;
  }

  std::vector<Target> targets() const {
    std::vector<Target> out;
    for (const Input& input : inputs_.all())
      if (input.edge.is_valid()) out.push_back({{Edge::Kind::kPrimal, input.primal}, input.edge});
    for (const auto& [i, cut] : cuts_) out.push_back({{Edge::Kind::kOutput, i}, cut});
    return out;
  }

  std::vector<Target> reached_targets(const Level& level) const {
    std::unordered_set<Node*> reached;
    for (const std::uint32_t i : level.outputs)
      for (Node* node : reach(i)) reached.insert(node);
    std::vector<Target> out = targets();
    std::erase_if(out, [&](const Target& t) { return !reached.contains(t.at.function.get()); });
    return out;
  }

  void run_level(Level& level, const std::vector<at::Tensor>& tangents) {
    const std::vector<Target> targets = reached_targets(level);
    if (targets.empty()) return;
    const auto gradients = run_engine(level, tangents, targets);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (!gradients[i].defined()) continue;
      level.edges.push_back(targets[i].edge);
      level.gradients.push_back(as_fake(final_fake(r_, gradients[i]))->value());
    }
  }

  torch::autograd::variable_list run_engine(const Level& level, const std::vector<at::Tensor>& tangents,
                                            const std::vector<Target>& targets) {
    torch::autograd::edge_list roots, ends;
    for (const std::uint32_t i : level.outputs) roots.push_back(edges_.at(i));
    for (const Target& t : targets) ends.push_back(t.at);
    torch::autograd::variable_list gradients;
    const py::GilRelease others_run;
    const auto failure = aten::failure_of([&] {
      gradients = torch::autograd::Engine::get_default_engine().execute(roots, tangents, /*keep_graph=*/true,
                                                                        /*create_graph=*/false,
                                                                        /*accumulate_grad=*/false, ends);
    });
    if (failure) r_.fail(support::format("the backward raises: {}", *failure));
    return gradients;
  }

  Recorder& r_;
  Inputs& inputs_;
  std::span<const GraphOutput> outputs_;
  std::vector<std::uint32_t> differentiable_;
  std::map<std::uint32_t, TorchEdge> edges_, cuts_;  ///< of outputs that require grad
  std::unordered_map<std::uint32_t, std::size_t> heights_;
};

/// Backward formulas run as they do outside of the program: without autocast, on this thread.
class BackwardMode {
 public:
  explicit BackwardMode(Recorder& r) : r_(r) {
    r_.is_backward = true;
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~BackwardMode() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_);
    r_.is_backward = false;
  }
  BackwardMode(const BackwardMode&) = delete;

 private:
  Recorder& r_;
  bool multithreading_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace

std::vector<ValueId> trace_backward(Recorder& r, Inputs& inputs, std::span<const GraphOutput> outputs,
                                    autograd::JointGraph& joint) {
  const BackwardMode mode(r);
  r.at = {};
  return Backward(r, inputs, outputs).run(joint);
}

}  // namespace braze::trace
