#include "braze/runtime/compiled_graph.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include "braze/support/check.h"
#include "braze/support/error.h"
#include "braze/support/log.h"
#include "braze/support/options.h"

namespace braze::runtime {

namespace {

std::vector<bool> find_reads(const graph::Graph& g) {
  std::vector<bool> used(g.values.size());
  for (const graph::Node& node : g.nodes)
    graph::for_each_operand(node, [&](const graph::ValueId& v) { used[v.index] = true; });
  for (const graph::ValueId v : g.outputs)
    if (!v.is_none()) used[v.index] = true;
  std::vector<bool> reads;
  for (const graph::ValueId v : g.inputs) reads.push_back(used[v.index]);
  return reads;
}

bool launches_with_checks(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps)
    if (const auto* l = std::get_if<plan::Launch>(&step); l != nullptr && l->checks) return true;
  return false;
}

void warn_of_replay(const char* what) {
  support::warn_once(support::format("a compiled region runs as library calls: {}", what));
}

}  // namespace

CompiledGraph::CompiledGraph(graph::Graph graph, PlanCompiler* compiler)
    : graph_(std::move(graph)), reads_(find_reads(graph_)) {
  if (compiler == nullptr) return;
  const bool strict = support::options().strict;
  try {
    plan::Plan plan = compiler->compile(graph_);
    const PhaseClock clock(compiler, "toolchain");
    executor_.emplace(std::move(plan), kernel_library());
    has_checks_ = launches_with_checks(executor_->plan());
    if (const std::string warning = kernel_library().take_warning(); !warning.empty()) support::warn_once(warning);
  } catch (const support::CompileError& e) {
    if (strict) throw;
    warn_of_replay(e.what());
  } catch (const support::InternalError& e) {
    if (strict) throw;
    warn_of_replay(e.what());
  }
}

std::vector<at::Tensor> CompiledGraph::run(std::vector<at::Tensor> inputs) const {
  if (!executor_) return run_replay(inputs);
  if (!has_checks_) return executor_->run(std::move(inputs));
  try {
    return executor_->run(inputs);
  } catch (const ChecksFailed&) {
    failed_checks_++;
    return run_replay(inputs);  // raises what eager raises
  }
}

const aten::Replay& CompiledGraph::replay() const {
  std::call_once(replay_made_, [this] { replay_.emplace(graph_); });
  return *replay_;
}

std::vector<at::Tensor> CompiledGraph::run_replay(const std::vector<at::Tensor>& inputs) const {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return replay().run(inputs);
}

void CompiledGraph::add_kernels(std::vector<KernelReport>& reports) const {
  if (!executor_) return;
  for (const plan::Kernel& k : executor_->plan().kernels) reports.push_back({k.name, k.source, k.summary, k.origins});
}

}  // namespace braze::runtime
